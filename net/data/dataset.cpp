#include "net/data/dataset.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "net/base/json_reader.h"
#include "net/base/plain_name.h"
#include "net/base/sha256.h"
#include "net/data/token_shard.h"
#include "net/tokenizer/load_tokenizer.h"

namespace atl {
namespace {

// A run's welcome carries one of at most 512 KiB (net/wire/run_config.h), some 3,000 shards; a dataset may be larger.
constexpr std::size_t kMaxManifestBytes = 64u << 20;
constexpr int kMaxManifestDepth = 5;
constexpr std::size_t kMaxShards = 1u << 18;
constexpr std::size_t kMaxFileName = kMaxPlainName;
constexpr std::uint64_t kMaxShardTokens = std::uint64_t{1} << 40;

Error bad_manifest(std::string_view why) {
  return Error{ErrorCode::kCorrupt, fmt::format("the dataset's manifest {}", why)};
}

Error damaged(const std::filesystem::path& path) {
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} does not have the SHA-256 that the manifest says; the file was damaged or exchanged: "
                           "delete it, it will be fetched or prepared again",
                           path.string())};
}

nlohmann::json shards_to_json(const std::vector<ShardEntry>& shards) {
  nlohmann::json json = nlohmann::json::array();
  for (const ShardEntry& shard : shards) {
    json.push_back({{"file", shard.file}, {"tokens", shard.tokens}, {"bytes", shard.bytes}, {"sha256", shard.sha256}});
  }
  return json;
}

void read_shard(JsonReader& reader, ShardEntry& shard) {
  reader.bounded("file", shard.file, kMaxFileName);
  reader.field("tokens", shard.tokens);
  reader.field("bytes", shard.bytes);
  reader.hash("sha256", shard.sha256);
  if (!reader.status().ok()) return;
  if (!is_plain_name(shard.file)) return reader.fail_field("file", "names a directory or has odd characters in it");
  const std::uint64_t payload = shard.bytes - std::min<std::uint64_t>(shard.bytes, kTokenShardHeaderBytes);
  if (shard.tokens == 0 || shard.tokens > kMaxShardTokens) {
    return reader.fail_field("tokens", fmt::format("is not from 1 to {}", kMaxShardTokens));
  }
  if (payload != 2 * shard.tokens && payload != 4 * shard.tokens) {
    reader.fail_field("bytes", fmt::format("says {} for {} tokens", shard.bytes, shard.tokens));
  }
}

void read_shards(JsonReader& reader, const char* name, std::vector<ShardEntry>& shards) {
  const nlohmann::json* list = reader.entries(name, kMaxShards);
  if (list == nullptr) return;
  if (list->empty()) return reader.fail_field(name, "lists no shard");
  for (std::size_t i = 0; i < list->size(); ++i) {
    JsonReader one((*list)[i], reader.element_path(name, i));
    read_shard(one, shards.emplace_back());
    if (!one.status().ok()) return reader.fail(one.status().error());
  }
}

void read_second_version(JsonReader& reader, DatasetManifest& manifest) {
  reader.field("end_of_text", manifest.end_of_text);
  if (reader.has("begin_of_text")) reader.field("begin_of_text", manifest.begin_of_text.emplace());
  if (reader.has("marked_labels")) reader.field("marked_labels", manifest.marked_labels);
  if (reader.has("statistics")) {
    if (const nlohmann::json* found = reader.find("statistics")) {
      JsonReader one(*found, reader.path_of("statistics"));
      read_statistics(one, manifest.statistics.emplace());
      if (!one.status().ok()) reader.fail(one.status().error());
    }
  }
  if (!reader.has("tokenizer_file")) return;
  const nlohmann::json* found = reader.find("tokenizer_file");
  if (found == nullptr) return;
  JsonReader one(*found, reader.path_of("tokenizer_file"));
  read_tokenizer_entry(one, manifest.tokenizer_file.emplace());
  if (!one.status().ok()) reader.fail(one.status().error());
}

}  // namespace

bool is_license(std::string_view text) {
  constexpr std::size_t kMost = 128;
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view(" .+-:()").find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= kMost && std::ranges::all_of(text, fits) && text.front() != ' ' &&
         text.back() != ' ';
}

void read_license(JsonReader& reader, std::string& license) {
  reader.bounded("license", license, kMaxFileName);
  if (reader.status().ok() && !is_license(license)) reader.fail_field("license", "is no SPDX expression");
}

nlohmann::json tokenizer_entry_to_json(const TokenizerEntry& entry) {
  return {{"file", entry.file}, {"bytes", entry.bytes}, {"sha256", entry.sha256}};
}

void read_tokenizer_entry(JsonReader& reader, TokenizerEntry& entry) {
  reader.bounded("file", entry.file, kMaxFileName);
  reader.field("bytes", entry.bytes);
  reader.hash("sha256", entry.sha256);
  if (!reader.status().ok()) return;
  if (!is_plain_name(entry.file)) return reader.fail_field("file", "names a directory or has odd characters");
  if (entry.bytes > kMaxTokenizerFile) reader.fail_field("bytes", "is too large for a tokenizer");
}

std::string DatasetManifest::to_json() const {
  const bool first_version = tokenizer == "bytes" && !tokenizer_file && !statistics && !marked_labels;
  nlohmann::json json = {{"format", "atoll-dataset"},      {"version", first_version ? 1 : 2},
                         {"tokenizer", tokenizer},         {"vocab_size", vocab_size},
                         {"train", shards_to_json(train)}, {"validation", shards_to_json(validation)}};
  if (!first_version) json["end_of_text"] = end_of_text;
  if (begin_of_text) json["begin_of_text"] = *begin_of_text;
  if (marked_labels) json["marked_labels"] = true;
  if (!license.empty()) json["license"] = license;
  if (statistics) json["statistics"] = statistics_to_json(*statistics);
  if (tokenizer_file) json["tokenizer_file"] = tokenizer_entry_to_json(*tokenizer_file);
  return dump_json(json);
}

Result<DatasetManifest> DatasetManifest::from_json(std::string_view text) {
  const auto json = parse_bounded_json(text, kMaxManifestBytes, kMaxManifestDepth);
  if (!json.ok()) return bad_manifest("cannot be read: " + json.error().message);
  JsonReader reader(*json);
  std::string format;
  std::uint64_t version = 0;
  reader.bounded("format", format, kMaxFileName);
  reader.field("version", version);
  if (!reader.status().ok() || format != "atoll-dataset") return bad_manifest("is not one of Atoll's");
  if (version != 1 && version != 2) {
    return Error{ErrorCode::kVersionUnsupported, "the dataset's manifest is of a newer version; use a newer Atoll"};
  }
  const DatasetManifest bytes;
  DatasetManifest manifest;
  reader.bounded("tokenizer", manifest.tokenizer, kMaxFileName);
  reader.field("vocab_size", manifest.vocab_size);
  if (version == 2) read_second_version(reader, manifest);
  if (reader.has("license")) read_license(reader, manifest.license);
  const bool byte_level = manifest.tokenizer == bytes.tokenizer;
  const bool known = byte_level ? manifest.vocab_size == bytes.vocab_size &&
                                      manifest.end_of_text == bytes.end_of_text && !manifest.begin_of_text
                                : manifest.tokenizer_file.has_value();
  const bool ends_known = std::max(manifest.end_of_text, manifest.begin_of_text.value_or(0)) < manifest.vocab_size;
  if (reader.status().ok() && (!known || !ends_known)) {
    return bad_manifest(
        "has a tokenizer without its file, or one that this version does not know (it knows 'bytes', 257 "
        "tokens)");
  }
  read_shards(reader, "train", manifest.train);
  read_shards(reader, "validation", manifest.validation);
  if (!reader.status().ok()) return bad_manifest("is wrong: " + reader.status().error().message);
  return manifest;
}

std::uint64_t DatasetManifest::tokens(Split split) const {
  std::uint64_t sum = 0;
  for (const ShardEntry& shard : shards(split)) sum += shard.tokens;
  return sum;
}

Result<DatasetManifest> DatasetManifest::load(const std::filesystem::path& directory) {
  const auto text = read_file(directory / "dataset.json", kMaxManifestBytes);
  if (!text.ok()) {
    if (text.error().code != ErrorCode::kNotFound) return text.error();
    return Error{
        ErrorCode::kNotFound,
        fmt::format("{} holds no dataset (no dataset.json in it); make one with: atoll data prepare TEXT --output DIR",
                    directory.string())};
  }
  auto manifest = DatasetManifest::from_json(*text);
  if (!manifest.ok()) return manifest.error().with_context((directory / "dataset.json").string());
  return manifest;
}

Result<Dataset> Dataset::open(const std::filesystem::path& directory) {
  ATOLL_ASSIGN_OR_RETURN(DatasetManifest manifest, DatasetManifest::load(directory));
  return open(directory, std::move(manifest));
}

Result<Dataset> Dataset::open(const std::filesystem::path& directory, DatasetManifest manifest) {
  Dataset dataset;
  dataset.directory_ = directory;
  dataset.manifest_ = std::move(manifest);
  for (const Split split : {Split::kTrain, Split::kValidation}) {
    const bool train = split == Split::kTrain;
    std::uint64_t first_token = 0;
    for (const ShardEntry& entry : train ? dataset.manifest_.train : dataset.manifest_.validation) {
      ATOLL_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(directory / entry.file));
      const auto header = decode_token_shard_header(file.bytes());
      if (!header.ok()) return header.error().with_context((directory / entry.file).string());
      if (header->token_count != entry.tokens || file.bytes().size() != entry.bytes ||
          header->vocab_size != dataset.manifest_.vocab_size || header->marked != dataset.manifest_.marked_labels) {
        return Error{ErrorCode::kCorrupt,
                     fmt::format("{} is not the file that the manifest describes", (directory / entry.file).string())};
      }
      (train ? dataset.train_ : dataset.validation_)
          .push_back({first_token, entry.tokens, header->token_bytes, std::move(file)});
      first_token += entry.tokens;
    }
  }
  return dataset;
}

Status Dataset::verify() const {
  ATOLL_RETURN_IF_ERROR(verify_tokenizer());
  ATOLL_RETURN_IF_ERROR(verify(Split::kTrain));
  return verify(Split::kValidation);
}

Status Dataset::verify_tokenizer() const {
  const std::optional<TokenizerEntry>& entry = manifest_.tokenizer_file;
  if (!entry) return ok_status();  // of bytes, which need no file
  const std::filesystem::path path = directory_ / entry->file;
  ATOLL_ASSIGN_OR_RETURN(const std::string content, read_file(path, kMaxTokenizerFile));
  return sha256_hex(as_bytes(content)) == entry->sha256 ? ok_status() : damaged(path);
}

Status Dataset::verify(Split split) const {
  const std::vector<ShardEntry>& entries = manifest_.shards(split);
  for (std::size_t i = 0; i < entries.size(); ++i) ATOLL_RETURN_IF_ERROR(verify(entries[i], shards(split)[i]));
  return ok_status();
}

Status Dataset::verify(const ShardEntry& entry, const Shard& shard) const {
  const std::string path = (directory_ / entry.file).string();
  if (sha256_hex(shard.file.bytes()) != entry.sha256) {
    return damaged(path);
  }
  std::uint32_t largest = 0;
  ByteReader reader(shard.file.bytes().subspan(kTokenShardHeaderBytes));
  while (!reader.at_end()) {
    const std::uint32_t token = shard.token_bytes == 2 ? reader.get<std::uint16_t>() : reader.get<std::uint32_t>();
    largest = std::max(largest, manifest_.marked_labels ? token_id(token) : token);
  }
  if (largest < manifest_.vocab_size) return ok_status();
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} holds token {}, but the vocabulary has {}", path, largest, manifest_.vocab_size)};
}

std::uint32_t Dataset::token_bytes(Split split) const {
  std::uint32_t bytes = 2;
  for (const Shard& shard : shards(split)) bytes = std::max(bytes, shard.token_bytes);
  return bytes;
}

std::uint64_t Dataset::sequences(Split split, std::uint32_t length) const {
  const std::uint64_t tokens = manifest_.tokens(split);
  return tokens == 0 || length == 0 ? 0 : (tokens - 1) / length;
}

void Dataset::read_sequence(Split split, std::uint64_t index, std::uint32_t length,
                            std::span<std::int32_t> tokens) const {
  const std::vector<Shard>& shards = this->shards(split);
  if (index >= sequences(split, length) || tokens.size() != std::size_t{length} + 1) {
    detail::die_on_wrong_access("read_sequence", fmt::format("sequence {} of {} tokens is not there", index, length));
  }
  std::uint64_t position = index * length;
  auto shard = std::upper_bound(shards.begin(), shards.end(), position,
                                [](std::uint64_t at, const Shard& candidate) { return at < candidate.first_token; }) -
               1;
  for (std::int32_t& token : tokens) {
    if (position == shard->first_token + shard->tokens) ++shard;
    const std::byte* at =
        shard->file.bytes().data() + kTokenShardHeaderBytes + (position - shard->first_token) * shard->token_bytes;
    std::uint32_t value = 0;
    std::memcpy(&value, at, shard->token_bytes);  // little-endian, like the machine
    token = static_cast<std::int32_t>(value);
    ++position;
  }
}

}  // namespace atl
