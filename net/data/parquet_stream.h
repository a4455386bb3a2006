// What atoll-parquet (parquet_main.cpp) writes on its standard output, and parquet_text.cpp reads: the rows of one text
// column. Both are of one build, so nothing else reads these bytes. Constants; any thread.
//
//   stream  = row* (end | failure)
//   row     = length text | kRowWithoutText    length, as all numbers: 4 bytes, little-endian, at most kLongestRow
//   end     = kEndOfRows
//   failure = kReadingFailed length words      why, for a person; the rows before it are whole
#pragma once

#include <cstdint>

namespace atl {

inline constexpr std::uint32_t kRowWithoutText = 0xFFFFFFFF;  // it is null
inline constexpr std::uint32_t kEndOfRows = 0xFFFFFFFE;
inline constexpr std::uint32_t kReadingFailed = 0xFFFFFFFD;
inline constexpr std::uint32_t kLongestRow = 0xFFFFFFF0;  // of longer ones this stands, and they are cut
inline constexpr std::uint32_t kLongestFailure = 2048;

}  // namespace atl
