// Quantities as people read them, always with their unit; what somebody else said goes through net/base/printable.h.
// Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/base/printable.h"

namespace atl {

std::string format_count(std::uint64_t count);                             // 12,345
std::string format_number_of(std::uint64_t count, std::string_view noun);  // 1 round, 2 rounds
std::string format_bytes(double bytes);                                    // 1.9 GB (powers of 1000)
std::string format_duration(double seconds);                               // 38 s, 4m10s, 2h05m
std::string format_rate(double tokens_per_second);                         // 318k tok/s
std::string format_percent(double fraction);                               // 92 %
std::string format_loss(double loss_nats);                                 // 2.914; "-" when there is none yet
// Columns of UTF-8 text on a screen, terminal codes not counted (no wide characters are used here).
std::size_t display_width(std::string_view text);
// Filled with spaces, or cut, to `width` columns. Text with terminal codes is never cut.
std::string fit(std::string_view text, std::size_t width);
std::string fit_right(std::string_view text, std::size_t width);

// For a person to look at: no more than three spaces in a row, no empty lines, none at the ends.
std::string without_gaps(std::string_view text);

}  // namespace atl
