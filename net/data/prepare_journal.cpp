#include "net/data/prepare_journal.h"

#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/base/json_reader.h"

namespace atl {
namespace {

constexpr std::size_t kMaxJournalBytes = 64u << 20;
constexpr int kMaxJournalDepth = 6;
constexpr std::size_t kMaxJournalShards = 1u << 18;

nlohmann::json written_to_json(const WrittenShards& written) {
  nlohmann::json shards = nlohmann::json::array();
  for (const ShardEntry& shard : written.shards) {
    shards.push_back(
        {{"file", shard.file}, {"tokens", shard.tokens}, {"bytes", shard.bytes}, {"sha256", shard.sha256}});
  }
  return {{"shards", std::move(shards)}, {"open_tokens", written.open_tokens}};
}

void read_written(JsonReader& reader, const char* name, WrittenShards& written) {
  const nlohmann::json* found = reader.find(name);
  if (found == nullptr) return;
  JsonReader one(*found, name);
  one.field("open_tokens", written.open_tokens);
  const nlohmann::json* shards = one.entries("shards", kMaxJournalShards);
  for (std::size_t i = 0; shards != nullptr && i < shards->size() && one.status().ok(); ++i) {
    JsonReader entry((*shards)[i], one.element_path("shards", i));
    ShardEntry& shard = written.shards.emplace_back();
    entry.bounded("file", shard.file, 64);
    entry.field("tokens", shard.tokens);
    entry.field("bytes", shard.bytes);
    entry.hash("sha256", shard.sha256);
    if (!entry.status().ok()) one.fail(entry.status().error());
  }
  if (!one.status().ok()) reader.fail(one.status().error());
}

void read_journal(JsonReader& reader, PrepareJournal& journal) {
  reader.hash("key", journal.key);
  reader.field("writing", journal.writing);
  reader.field("file", journal.next.file);
  reader.field("block", journal.next.block);
  reader.field("documents", journal.documents);
  reader.field("blocks", journal.blocks);
  reader.field("text_bytes", journal.text_bytes);
  reader.field("done_bytes", journal.done_bytes);
  read_written(reader, "train", journal.train);
  read_written(reader, "validation", journal.validation);
  if (const nlohmann::json* found = reader.find("statistics")) {
    JsonReader one(*found, "statistics");
    read_statistics(one, journal.statistics);
    if (!one.status().ok()) reader.fail(one.status().error());
  }
}

}  // namespace

Status PrepareJournal::save(const std::filesystem::path& directory) const {
  const nlohmann::json json = {{"key", key},
                               {"writing", writing},
                               {"file", next.file},
                               {"block", next.block},
                               {"documents", documents},
                               {"blocks", blocks},
                               {"text_bytes", text_bytes},
                               {"done_bytes", done_bytes},
                               {"train", written_to_json(train)},
                               {"validation", written_to_json(validation)},
                               {"statistics", statistics_to_json(statistics)}};
  return write_file_atomically(directory / kPrepareJournalFile, dump_json(json) + "\n", FileMode::kPublic);
}

Result<std::optional<PrepareJournal>> PrepareJournal::load(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kPrepareJournalFile;
  const auto text = read_file(path, kMaxJournalBytes);
  if (!text.ok() && text.error().code == ErrorCode::kNotFound) return std::optional<PrepareJournal>();
  if (!text.ok()) return text.error();
  const auto json = parse_bounded_json(*text, kMaxJournalBytes, kMaxJournalDepth);
  Status read = json.ok() ? ok_status() : Status(json.error());
  PrepareJournal journal;
  if (json.ok()) {
    JsonReader reader(*json);
    read_journal(reader, journal);
    read = reader.status();
  }
  if (!read.ok())
    return read.error().with_context(path.string() + " cannot be gone on from; start anew with --restart");
  return std::optional(std::move(journal));
}

}  // namespace atl
