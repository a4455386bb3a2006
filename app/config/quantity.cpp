#include "app/config/quantity.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace atl {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string Quantity::text() const { return fmt::format("{} {}", number, unit); }

std::optional<Quantity> parse_quantity(std::string_view text) {
  Quantity quantity;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), quantity.number);
  if (error != std::errc() || !std::isfinite(quantity.number) || quantity.number < 0) return std::nullopt;
  quantity.unit = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  return quantity;
}

std::optional<double> bytes_of(const Quantity& quantity) {
  double factor = 1;
  for (const char* name : {"B", "kB", "MB", "GB", "TB"}) {
    if (quantity.unit == name) return quantity.number * factor;
    factor *= 1000;
  }
  if (quantity.unit == "KB") return quantity.number * 1e3;
  return quantity.unit.empty() ? std::optional(quantity.number) : std::nullopt;
}

std::optional<double> bytes_per_second_of(const Quantity& quantity) {
  double factor = 1.0 / 8;
  for (const char* name : {"bit/s", "kbit/s", "Mbit/s", "Gbit/s"}) {
    if (quantity.unit == name) return quantity.number * factor;
    factor *= 1000;
  }
  if (!quantity.unit.ends_with("/s") || quantity.unit == "/s") return std::nullopt;
  return bytes_of({quantity.number, quantity.unit.substr(0, quantity.unit.size() - 2)});
}

std::optional<std::chrono::seconds> parse_duration(std::string_view text) {
  constexpr std::int64_t kDay = 24 * 3600, kMost = 36'500 * kDay;
  std::uint32_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view unit = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  if (error != std::errc() || unit.size() != 1) return std::nullopt;
  std::int64_t each = 0;
  switch (unit.front()) {
    case 's': each = 1; break;
    case 'm': each = 60; break;
    case 'h': each = 3600; break;
    case 'd': each = kDay; break;
    default: return std::nullopt;
  }
  const std::int64_t seconds = count * each;
  return seconds <= kMost ? std::optional(std::chrono::seconds(seconds)) : std::nullopt;
}

std::chrono::seconds duration_of(std::string_view text) {
  return parse_duration(text).value_or(std::chrono::seconds(0));
}

std::optional<std::string> normalised_cap(std::string_view text) {
  if (text == "none" || text == "0") return std::string("none");
  const auto quantity = parse_quantity(text);
  const auto rate = quantity ? bytes_per_second_of(*quantity) : std::nullopt;
  if (!rate || *rate < kLeastCap || *rate > kMostCap) return std::nullopt;
  return quantity->text();
}

std::optional<double> cap_bytes_per_second(std::string_view normalised) {
  const auto quantity = normalised == "none" ? std::nullopt : parse_quantity(normalised);
  return quantity ? bytes_per_second_of(*quantity) : std::nullopt;
}

}  // namespace atl
