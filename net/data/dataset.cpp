#include "net/data/dataset.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "net/base/encoding.h"
#include "net/base/sha256.h"
#include "net/data/token_shard.h"

namespace atl {
namespace {

constexpr std::size_t kMaxManifestBytes = 512 * 1024;  // travels in the hub's welcome, of at most 1 MiB
constexpr std::size_t kMaxShards = 4096;
constexpr std::uint64_t kMaxShardTokens = std::uint64_t{1} << 40;

Error bad_manifest(std::string_view why) {
  return Error{ErrorCode::kCorrupt, fmt::format("the dataset's manifest {}", why)};
}

bool is_plain_name(const std::string& name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  return !name.empty() && name.size() <= 64 && name.front() != '.' && std::all_of(name.begin(), name.end(), plain);
}

bool is_sha256_hex(const std::string& text) {
  const auto bytes = hex_decode(text);
  return bytes.ok() && bytes->size() == 32 && hex_encode(*bytes) == text;
}

nlohmann::json to_json(const std::vector<ShardEntry>& shards) {
  nlohmann::json json = nlohmann::json::array();
  for (const ShardEntry& shard : shards) {
    json.push_back({{"file", shard.file}, {"tokens", shard.tokens}, {"bytes", shard.bytes}, {"sha256", shard.sha256}});
  }
  return json;
}

Result<std::vector<ShardEntry>> shards_from_json(const nlohmann::json& json) {
  if (!json.is_array() || json.empty() || json.size() > kMaxShards)
    return bad_manifest("has no list of shards within bounds");
  std::vector<ShardEntry> shards;
  for (const nlohmann::json& entry : json) {
    const bool typed = entry.is_object() && entry.contains("file") && entry["file"].is_string() &&
                       entry.contains("tokens") && entry["tokens"].is_number_unsigned() && entry.contains("bytes") &&
                       entry["bytes"].is_number_unsigned() && entry.contains("sha256") && entry["sha256"].is_string();
    if (!typed) return bad_manifest("has a shard without file, tokens, bytes or sha256");
    ShardEntry shard{entry["file"].get<std::string>(), entry["tokens"].get<std::uint64_t>(),
                     entry["bytes"].get<std::uint64_t>(), entry["sha256"].get<std::string>()};
    if (!is_plain_name(shard.file)) return bad_manifest("names a file with a directory or odd characters in it");
    if (!is_sha256_hex(shard.sha256)) return bad_manifest(fmt::format("has no SHA-256 for {}", shard.file));
    if (shard.tokens == 0 || shard.tokens > kMaxShardTokens)
      return bad_manifest(fmt::format("is out of bounds for {}", shard.file));
    const std::uint64_t payload = shard.bytes - std::min<std::uint64_t>(shard.bytes, kTokenShardHeaderBytes);
    if (payload != 2 * shard.tokens && payload != 4 * shard.tokens) {
      return bad_manifest(fmt::format("says {} tokens in {} bytes of {}", shard.tokens, shard.bytes, shard.file));
    }
    shards.push_back(std::move(shard));
  }
  return shards;
}

}  // namespace

std::string DatasetManifest::to_json() const {
  const nlohmann::json json = {{"format", "atoll-dataset"},    {"version", 1},
                               {"tokenizer", tokenizer},       {"vocab_size", vocab_size},
                               {"train", atl::to_json(train)}, {"validation", atl::to_json(validation)}};
  return json.dump();
}

Result<DatasetManifest> DatasetManifest::from_json(std::string_view text) {
  if (text.size() > kMaxManifestBytes) return bad_manifest("is too large");
  const auto json = nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("format") || json["format"] != "atoll-dataset" || !json.contains("version")) {
    return bad_manifest("is not one of Atoll's");
  }
  if (json["version"] != 1) {
    return Error{ErrorCode::kVersionUnsupported, "the dataset's manifest is of a newer version; use a newer Atoll"};
  }
  DatasetManifest manifest;
  const bool typed = json.contains("tokenizer") && json["tokenizer"] == manifest.tokenizer &&
                     json.contains("vocab_size") && json["vocab_size"] == manifest.vocab_size &&
                     json.contains("train") && json.contains("validation");
  if (!typed) return bad_manifest("has a tokenizer that this version does not know (it knows 'bytes', 257 tokens)");
  ATOLL_ASSIGN_OR_RETURN(manifest.train, shards_from_json(json["train"]));
  ATOLL_ASSIGN_OR_RETURN(manifest.validation, shards_from_json(json["validation"]));
  return manifest;
}

std::uint64_t DatasetManifest::tokens(Split split) const {
  std::uint64_t sum = 0;
  for (const ShardEntry& shard : split == Split::kTrain ? train : validation) sum += shard.tokens;
  return sum;
}

Result<Dataset> Dataset::open(const std::filesystem::path& directory) {
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
  return open(directory, std::move(*manifest));
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
          header->vocab_size != dataset.manifest_.vocab_size) {
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
  ATOLL_RETURN_IF_ERROR(verify(Split::kTrain));
  return verify(Split::kValidation);
}

Status Dataset::verify(Split split) const {
  const std::vector<ShardEntry>& entries = split == Split::kTrain ? manifest_.train : manifest_.validation;
  const std::vector<Shard>& shards = split == Split::kTrain ? train_ : validation_;
  for (std::size_t i = 0; i < shards.size(); ++i) ATOLL_RETURN_IF_ERROR(verify(entries[i], shards[i]));
  return ok_status();
}

Status Dataset::verify(const ShardEntry& entry, const Shard& shard) const {
  const std::string path = (directory_ / entry.file).string();
  if (sha256_hex(shard.file.bytes()) != entry.sha256) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} does not have the SHA-256 that the manifest says; the file was damaged or exchanged: "
                             "delete it, it will be fetched or prepared again",
                             path)};
  }
  std::uint32_t largest = 0;
  ByteReader reader(shard.file.bytes().subspan(kTokenShardHeaderBytes));
  while (!reader.at_end()) {
    largest = std::max<std::uint32_t>(
        largest, shard.token_bytes == 2 ? reader.get<std::uint16_t>() : reader.get<std::uint32_t>());
  }
  if (largest < manifest_.vocab_size) return ok_status();
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} holds token {}, but the vocabulary has {}", path, largest, manifest_.vocab_size)};
}

std::uint64_t Dataset::sequences(Split split, std::uint32_t length) const {
  const std::uint64_t tokens = manifest_.tokens(split);
  return tokens == 0 || length == 0 ? 0 : (tokens - 1) / length;
}

void Dataset::read_sequence(Split split, std::uint64_t index, std::uint32_t length,
                            std::span<std::int32_t> tokens) const {
  const std::vector<Shard>& shards = split == Split::kTrain ? train_ : validation_;
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
