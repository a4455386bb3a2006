#include "net/data/data_statistics.h"

#include <nlohmann/json.hpp>

#include "net/base/json_reader.h"

namespace atl {
namespace {

nlohmann::json split_to_json(const SplitStatistics& split) {
  return {{"documents", split.documents}, {"text_bytes", split.text_bytes}, {"tokens", split.tokens}};
}

void read_split(JsonReader& reader, const char* name, SplitStatistics& split) {
  const nlohmann::json* found = reader.find(name);
  if (found == nullptr) return;
  JsonReader one(*found, reader.path_of(name));
  one.field("documents", split.documents);
  one.field("text_bytes", split.text_bytes);
  one.field("tokens", split.tokens);
  if (!one.status().ok()) reader.fail(one.status().error());
}

void read_source(JsonReader& reader, SourceStatistics& source) {
  reader.text("name", source.name);
  reader.field("files", source.files);
  reader.field("documents", source.documents);
  reader.field("text_bytes", source.text_bytes);
  reader.field("tokens", source.tokens);
  reader.field("duplicates", source.duplicates);
}

}  // namespace

nlohmann::json statistics_to_json(const DataStatistics& statistics) {
  nlohmann::json sources = nlohmann::json::array();
  for (const SourceStatistics& source : statistics.sources) {
    sources.push_back({{"name", source.name},
                       {"files", source.files},
                       {"documents", source.documents},
                       {"text_bytes", source.text_bytes},
                       {"tokens", source.tokens},
                       {"duplicates", source.duplicates}});
  }
  nlohmann::json json = {{"train", split_to_json(statistics.train)},
                         {"validation", split_to_json(statistics.validation)},
                         {"duplicates", statistics.duplicates},
                         {"duplicate_bytes", statistics.duplicate_bytes},
                         {"lengths", statistics.lengths},
                         {"sources", std::move(sources)}};
  if (statistics.without_text > 0) json["without_text"] = statistics.without_text;
  return json;
}

void read_statistics(JsonReader& reader, DataStatistics& statistics) {
  read_split(reader, "train", statistics.train);
  read_split(reader, "validation", statistics.validation);
  reader.field("duplicates", statistics.duplicates);
  reader.field("duplicate_bytes", statistics.duplicate_bytes);
  if (reader.has("without_text")) reader.field("without_text", statistics.without_text);
  std::vector<std::int64_t> lengths;
  reader.integers("lengths", lengths);
  if (reader.status().ok() && lengths.size() != kLengthBins) reader.fail_field("lengths", "has another number of bins");
  for (std::size_t i = 0; reader.status().ok() && i < kLengthBins; ++i) {
    if (lengths[i] < 0) reader.fail_field("lengths", "counts below 0");
    statistics.lengths[i] = static_cast<std::uint64_t>(lengths[i]);
  }
  const nlohmann::json* sources = reader.entries("sources", kMaxSources);
  for (std::size_t i = 0; sources != nullptr && i < sources->size() && reader.status().ok(); ++i) {
    JsonReader one((*sources)[i], reader.element_path("sources", i));
    read_source(one, statistics.sources.emplace_back());
    if (!one.status().ok()) reader.fail(one.status().error());
  }
}

}  // namespace atl
