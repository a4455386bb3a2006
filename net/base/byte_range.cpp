#include "net/base/byte_range.h"

#include <algorithm>
#include <charconv>

namespace atl {
namespace {

constexpr std::string_view kUnit = "bytes=";

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

RangeChoice choose_range(std::string_view header, std::uint64_t size) {
  const RangeChoice whole{RangeVerdict::kWhole, {0, size}};
  const RangeChoice unsatisfiable{RangeVerdict::kUnsatisfiable, {}};
  if (!header.starts_with(kUnit)) return whole;
  const std::string_view wanted = header.substr(kUnit.size());
  const auto dash = wanted.find('-');
  if (dash == std::string_view::npos) return whole;
  const auto first = parse_number(wanted.substr(0, dash));
  const auto last = parse_number(wanted.substr(dash + 1));
  if (first && last) {
    if (*first > *last) return whole;
    if (*first >= size) return unsatisfiable;
    return {RangeVerdict::kPart, {*first, std::min(*last, size - 1) - *first + 1}};
  }
  if (first && dash + 1 == wanted.size()) {
    if (*first >= size) return unsatisfiable;
    return {RangeVerdict::kPart, {*first, size - *first}};
  }
  if (last && dash == 0) {
    const std::uint64_t count = std::min(*last, size);
    if (count == 0) return unsatisfiable;
    return {RangeVerdict::kPart, {size - count, count}};
  }
  return whole;
}

}  // namespace atl
