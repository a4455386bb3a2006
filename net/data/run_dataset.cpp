#include "net/data/run_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "net/base/json_reader.h"
#include "net/base/sha256.h"
#include "net/data/chat_template.h"
#include "net/data/chunk_tree.h"

namespace atl {
namespace {

constexpr std::size_t kMaxRunDatasetBytes = 512u << 10;  // net/wire/run_config.h
constexpr int kMaxDepth = 5;
constexpr std::size_t kMaxMirrorBytes = 1024;
constexpr std::uint64_t kDatasetVersion = 3;

Error bad(std::string_view why) { return {ErrorCode::kCorrupt, fmt::format("the run's dataset {}", why)}; }

nlohmann::json tree_to_json(const TreeRoot& root) {
  return {{"tokens", root.tokens}, {"index_bytes", root.index_bytes}, {"sha256", root.sha256}};
}

void read_tree(JsonReader& reader, const char* name, TreeRoot& root) {
  if (!reader.has(name)) return;
  const nlohmann::json* found = reader.find(name);
  if (found == nullptr) return;
  JsonReader one(*found, reader.path_of(name));
  one.field("tokens", root.tokens);
  one.field("index_bytes", root.index_bytes);
  one.hash("sha256", root.sha256);
  if (one.status().ok() && (root.index_bytes == 0 || root.index_bytes > kMaxTreeIndexBytes)) {
    one.fail_field("index_bytes", fmt::format("is not from 1 to {}", kMaxTreeIndexBytes));
  }
  if (!one.status().ok()) reader.fail(one.status().error());
}

void read_mirrors(JsonReader& reader, std::vector<std::string>& mirrors) {
  const nlohmann::json* list = reader.entries("mirrors", kMaxMirrors);
  if (list == nullptr) return;
  for (const nlohmann::json& entry : *list) {
    if (!entry.is_string()) return reader.fail_field("mirrors", "has an entry that is no text");
    mirrors.push_back(entry.get<std::string>());
    if (const Status sound = check_mirror(mirrors.back()); !sound.ok()) {
      return reader.fail_field("mirrors", "has one that is none: " + sound.error().message);
    }
  }
}

void read_source(JsonReader& reader, RunSource& source) {
  reader.bounded("name", source.name, kMaxPersonName);
  reader.field("weight", source.weight);
  reader.hash("manifest_sha256", source.manifest_sha256);
  read_tree(reader, "train", source.train);
  read_tree(reader, "validation", source.validation);
  if (reader.has("mirrors")) read_mirrors(reader, source.mirrors);
  if (reader.has("license")) read_license(reader, source.license);
  if (reader.status().ok() && !is_island_name(source.name)) {
    reader.fail_field("name", "is not of 1 to 64 of a-z 0-9 -");
  }
  if (reader.status().ok() && source.train.tokens == 0) reader.fail_field("train", "has no tokens");
}

void read_tokenizer(JsonReader& reader, RunDataset& dataset) {
  reader.bounded("tokenizer", dataset.tokenizer, kMaxPersonName);
  reader.field("vocab_size", dataset.vocab_size);
  reader.field("end_of_text", dataset.end_of_text);
  if (reader.status().ok() && dataset.end_of_text >= dataset.vocab_size) {
    reader.fail_field("end_of_text", "is not in the vocabulary");
  }
  if (!reader.has("tokenizer_file")) return;
  if (const nlohmann::json* found = reader.find("tokenizer_file")) {
    JsonReader one(*found, reader.path_of("tokenizer_file"));
    read_tokenizer_entry(one, dataset.tokenizer_file.emplace());
    if (!one.status().ok()) reader.fail(one.status().error());
  }
}

void read_chat_template(JsonReader& reader, RunDataset& dataset) {
  if (!reader.has("chat_template")) return;
  reader.text("chat_template", dataset.chat_template, kMaxPersonName);
  if (reader.status().ok() && dataset.chat_template != kLlama3ChatTemplateName) {
    reader.fail_field("chat_template", "is none that this atoll knows; update atoll");
  }
}

void read_sources(JsonReader& reader, std::vector<RunSource>& sources) {
  const nlohmann::json* list = reader.entries("sources", kMaxMixtureSources);
  if (list == nullptr) return;
  std::set<std::string> names;
  for (std::size_t i = 0; i < list->size(); ++i) {
    JsonReader one((*list)[i], reader.element_path("sources", i));
    read_source(one, sources.emplace_back());
    if (one.status().ok() && !names.insert(sources.back().name).second) one.fail_field("name", "stands there twice");
    if (!one.status().ok()) return reader.fail(one.status().error());
  }
}

MixtureWeights weights_of_sources(const std::vector<RunSource>& sources) {
  MixtureWeights weights;
  for (const RunSource& source : sources) weights.push_back(source.weight);
  return weights;
}

std::uint64_t tokens_of(const RunSource& source, Split split) {
  return split == Split::kTrain ? source.train.tokens : source.validation.tokens;
}

}  // namespace

Status check_mirror(std::string_view mirror) {
  const auto web = [&](std::string_view scheme) {
    return mirror.starts_with(scheme) && mirror.size() > scheme.size() && mirror[scheme.size()] != '/';
  };
  const bool good = web("https://") || web("http://") || web("s3://") || mirror.starts_with("/");
  const auto odd = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '\\' || c == '\x7f'; };
  if (good && mirror.size() <= kMaxMirrorBytes && std::ranges::none_of(mirror, odd)) return ok_status();
  return Error{ErrorCode::kInvalidArgument,
               "a mirror is https://HOST/PATH, http://HOST/PATH, s3://BUCKET/PREFIX or an absolute path, of at most "
               "1024 bytes and without spaces"};
}

MixtureWeights RunDataset::weights() const { return weights_of_sources(sources); }

std::uint64_t RunDataset::tokens(Split split) const {
  std::uint64_t sum = 0;
  for (const RunSource& source : sources) sum += tokens_of(source, split);
  return sum;
}

std::string RunDataset::to_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const RunSource& source : sources) {
    nlohmann::json entry = {{"name", source.name},
                            {"weight", source.weight},
                            {"manifest_sha256", source.manifest_sha256},
                            {"train", tree_to_json(source.train)}};
    if (source.validation.tokens > 0) entry["validation"] = tree_to_json(source.validation);
    if (!source.mirrors.empty()) entry["mirrors"] = source.mirrors;
    if (!source.license.empty()) entry["license"] = source.license;
    list.push_back(std::move(entry));
  }
  nlohmann::json json = {{"format", "atoll-dataset"}, {"version", kDatasetVersion}, {"tokenizer", tokenizer},
                         {"vocab_size", vocab_size},  {"end_of_text", end_of_text}, {"sources", std::move(list)}};
  if (tokenizer_file) json["tokenizer_file"] = tokenizer_entry_to_json(*tokenizer_file);
  if (!chat_template.empty()) json["chat_template"] = chat_template;
  return dump_json(json);
}

bool has_sources(std::string_view dataset_json) {
  const auto json = parse_bounded_json(dataset_json, kMaxRunDatasetBytes, kMaxDepth);
  return json.ok() && json->is_object() && json->contains("sources");
}

Result<RunDataset> RunDataset::from_json(std::string_view text) {
  const auto json = parse_bounded_json(text, kMaxRunDatasetBytes, kMaxDepth);
  if (!json.ok()) return bad("cannot be read: " + json.error().message);
  JsonReader reader(*json);
  std::string format;
  std::uint64_t version = 0;
  reader.bounded("format", format, kMaxPersonName);
  reader.field("version", version);
  if (!reader.status().ok() || format != "atoll-dataset") return bad("is none of Atoll's");
  if (version != kDatasetVersion) {
    return Error{ErrorCode::kVersionUnsupported, "the run's dataset is of another version; update atoll"};
  }
  RunDataset dataset;
  read_tokenizer(reader, dataset);
  read_chat_template(reader, dataset);
  read_sources(reader, dataset.sources);
  if (!reader.status().ok()) return bad("is wrong: " + reader.status().error().message);
  if (const Status sound = check_weights(dataset.weights()); !sound.ok()) return bad(sound.error().message);
  return dataset;
}

MixtureWeights RunDataFacts::weights() const { return weights_of_sources(sources); }

std::vector<std::string> RunDataFacts::names() const {
  std::vector<std::string> names;
  for (const RunSource& source : sources) names.push_back(source.name);
  return names;
}

Result<RunDataFacts> facts_of_run_data(std::string_view dataset_json) {
  RunDataFacts facts;
  if (has_sources(dataset_json)) {
    ATOLL_ASSIGN_OR_RETURN(RunDataset data, RunDataset::from_json(dataset_json));
    facts = {data.tokenizer,
             data.vocab_size,
             data.tokenizer_file,
             data.tokens(Split::kTrain),
             data.tokens(Split::kValidation),
             0,
             {}};
    facts.sources = std::move(data.sources);
    facts.chat_template = std::move(data.chat_template);
    return facts;
  }
  ATOLL_ASSIGN_OR_RETURN(const DatasetManifest data, DatasetManifest::from_json(dataset_json));
  facts = {data.tokenizer,
           data.vocab_size,
           data.tokenizer_file,
           data.tokens(Split::kTrain),
           data.tokens(Split::kValidation),
           0,
           {}};
  facts.license = data.license;
  if (data.marked_labels) facts.chat_template = kLlama3ChatTemplateName;
  for (const auto* split : {&data.train, &data.validation}) {
    for (const ShardEntry& shard : *split) facts.held_bytes += shard.bytes;
  }
  return facts;
}

}  // namespace atl
