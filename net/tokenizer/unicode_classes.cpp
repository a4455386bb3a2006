#include "net/tokenizer/unicode_classes.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "net/tokenizer/unicode_ranges.h"

namespace atl {
namespace {

std::vector<std::uint8_t> expand_ranges() {
  std::vector<std::uint8_t> table(0x110000);
  const std::size_t count = std::size(unicode_data::kRanges);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = unicode_data::kRanges[i] >> 4;
    const std::size_t end = i + 1 < count ? unicode_data::kRanges[i + 1] >> 4 : table.size();
    std::fill(table.begin() + static_cast<std::ptrdiff_t>(begin), table.begin() + static_cast<std::ptrdiff_t>(end),
              static_cast<std::uint8_t>(unicode_data::kRanges[i] & 15u));
  }
  return table;
}

}  // namespace

const std::uint8_t* unicode_classes() {
  static const std::vector<std::uint8_t> table = expand_ranges();
  return table.data();
}

const char* unicode_version() { return unicode_data::kVersion; }

}  // namespace atl
