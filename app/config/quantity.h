// Sizes, rates and times as an owner writes them: a number and its unit. Pure; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace atl {

// Without blanks and tabs at either end.
std::string_view trimmed(std::string_view text);

struct Quantity {
  double number = 0;  // finite, not negative
  std::string unit;

  std::string text() const;  // "2.5 MB"
};
// "2.5 MB", "2.5MB". Empty: it does not begin with such a number.
std::optional<Quantity> parse_quantity(std::string_view text);

// "B", "kB", "MB", "GB", "TB", powers of 1000; no unit: bytes. Empty: no size.
std::optional<double> bytes_of(const Quantity& quantity);
// "bit/s" to "Gbit/s", "B/s" to "TB/s". Empty: no rate.
std::optional<double> bytes_per_second_of(const Quantity& quantity);

// "90s", "10m", "24h", "7d", of 100 years at most. Empty: it is none, nor is a number without its unit.
std::optional<std::chrono::seconds> parse_duration(std::string_view text);
std::chrono::seconds duration_of(std::string_view text);  // that was found to be one; else 0
inline constexpr const char* kDurationWanted = "a time with its unit, for instance 90s, 30m, 24h or 7d";

// What an owner lets pass a second: with less, rounds would take longer than anybody waits for their bytes.
inline constexpr double kLeastCap = 1e6 / 8, kMostCap = 1e15;  // bytes/s
inline constexpr const char* kCapWanted =
    "a rate of at least 1 Mbit/s with its unit, for instance 20 Mbit/s or 2.5 MB/s, or none; where less is to pass, "
    "pause training (schedule.hours)";

// A cap on a rate: "none" (also written "0"), or the same text for the same rate. Empty: it is none.
std::optional<std::string> normalised_cap(std::string_view text);
// Of a normalised one; empty: no limit.
std::optional<double> cap_bytes_per_second(std::string_view normalised);

}  // namespace atl
