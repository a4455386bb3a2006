#include "net/check/figures.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace atl::figures {
namespace {

// Three digits or fewer, with the largest prefix that leaves at least 1.
std::string scaled(double value, std::string_view unit) {
  constexpr std::array<std::string_view, 6> kPrefixes = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  while (std::abs(value) >= 999.5 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  const int digits = prefix == 0 || std::abs(value) >= 9.95 ? 0 : 1;
  return fmt::format("{:.{}f} {}{}", value, digits, kPrefixes[prefix], unit);
}

}  // namespace

std::string bytes(double count) { return scaled(count, "B"); }
std::string bytes_per_second(double rate) { return scaled(rate, "B/s"); }
std::string bits_per_second(double bytes) { return scaled(bytes * 8, "bit/s"); }
std::string flops(double rate) { return scaled(rate, "FLOP/s"); }

std::string seconds(double seconds) {
  if (std::abs(seconds) < 0.9995) return fmt::format("{:.{}f} ms", seconds * 1e3, std::abs(seconds) < 0.00995 ? 1 : 0);
  if (std::abs(seconds) < 9.95) return fmt::format("{:.1f} s", seconds);
  if (std::abs(seconds) < 119.5) return fmt::format("{:.0f} s", seconds);
  const auto whole = static_cast<long long>(std::llround(std::min(std::abs(seconds), 1e15)));
  if (whole < 7200) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole % 3600 / 60);
}

std::string percent(double fraction) {
  const double value = fraction * 100;
  return fmt::format("{:.{}f} %", value, std::abs(value) < 9.95 && value != 0 ? 1 : 0);
}

std::string count(double number) {
  if (number >= 999.5e6) return fmt::format("{:.1f} billion", number / 1e9);
  if (number >= 999'950) return fmt::format("{:.0f} million", number / 1e6);
  return fmt::format("{:.0f}", number);
}

}  // namespace atl::figures
