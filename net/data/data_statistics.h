// What a dataset was made of: part of its manifest, shown by `atoll data info`. Values without state.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace atl {

class JsonReader;

struct SplitStatistics {
  std::uint64_t documents = 0;   // of a text that is cut into pieces, pieces
  std::uint64_t text_bytes = 0;  // UTF-8
  std::uint64_t tokens = 0;      // with those that end documents
};

struct SourceStatistics {
  std::string name;  // as it was named on the command line; the path's last part
  std::uint64_t files = 0;
  std::uint64_t documents = 0;  // that are in a split
  std::uint64_t text_bytes = 0;
  std::uint64_t tokens = 0;
  std::uint64_t duplicates = 0;  // that were left out
};

inline constexpr std::size_t kLengthBins = 32;
inline constexpr std::size_t kMaxSources = 256;

struct DataStatistics {
  SplitStatistics train, validation;
  std::uint64_t duplicates = 0;  // documents that are in neither split, because the same text stands before them
  std::uint64_t duplicate_bytes = 0;
  std::uint64_t without_text = 0;  // documents that are in neither split, because their text is null or empty
  // Bin i: documents of 2^i to 2^(i+1) - 1 tokens.
  std::array<std::uint64_t, kLengthBins> lengths{};
  std::vector<SourceStatistics> sources;  // the inputs in their order; the last one stands for all beyond kMaxSources
};

nlohmann::json statistics_to_json(const DataStatistics& statistics);
void read_statistics(JsonReader& reader, DataStatistics& statistics);

}  // namespace atl
