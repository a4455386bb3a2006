#include "app/cli/text.h"

#include <fmt/format.h>

#include <cmath>

namespace atl {

std::string format_count(std::uint64_t count) {
  const std::string digits = std::to_string(count);
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

std::string format_number_of(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", format_count(count), noun, count == 1 ? "" : "s");
}

std::string format_bytes(double bytes) {
  const char* unit = "B";
  for (const char* larger : {"kB", "MB", "GB", "TB", "PB"}) {
    if (bytes < 999.5) break;
    bytes /= 1000;
    unit = larger;
  }
  const bool whole = unit[0] == 'B' || bytes >= 99.95;
  return whole ? fmt::format("{:.0f} {}", bytes, unit) : fmt::format("{:.1f} {}", bytes, unit);
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 100) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole % 3600 / 60);
}

std::string format_rate(double tokens_per_second) {
  if (tokens_per_second >= 1e6) return fmt::format("{:.1f}M tok/s", tokens_per_second / 1e6);
  if (tokens_per_second >= 100e3) return fmt::format("{:.0f}k tok/s", tokens_per_second / 1e3);
  return format_count(static_cast<std::uint64_t>(std::max(0.0, tokens_per_second))) + " tok/s";
}

std::string format_percent(double fraction) { return fmt::format("{:.0f} %", 100 * fraction); }

std::string format_loss(double loss_nats) { return loss_nats == 0 ? "-" : fmt::format("{:.3f}", loss_nats); }

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      while (i < text.size() && text[i] != 'm') ++i;
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      ++width;
    }
  }
  return width;
}

namespace {

std::string cut(std::string_view text, std::size_t width) {
  if (display_width(text) <= width || text.find('\033') != std::string_view::npos) return std::string(text);
  std::size_t end = 0;
  for (std::size_t columns = 0; end < text.size(); ++end) {
    if ((static_cast<unsigned char>(text[end]) & 0xC0) != 0x80 && ++columns > width) break;
  }
  return std::string(text.substr(0, end));
}

std::string spaces_to(std::string_view text, std::size_t width) {
  return std::string(width - std::min(width, display_width(text)), ' ');
}

}  // namespace

std::string fit(std::string_view text, std::size_t width) {
  const std::string kept = cut(text, width);
  return kept + spaces_to(kept, width);
}

std::string fit_right(std::string_view text, std::size_t width) {
  const std::string kept = cut(text, width);
  return spaces_to(kept, width) + kept;
}

std::string without_gaps(std::string_view text) {
  constexpr std::size_t kMostSpaces = 3;
  std::string kept;
  std::size_t spaces = 0;
  bool line_ended = false;
  for (const char c : text) {
    if (c == ' ') {
      ++spaces;
    } else if (c == '\n') {
      line_ended = true;
      spaces = 0;
    } else {
      if (line_ended && !kept.empty()) kept += '\n';
      kept.append(kept.empty() ? 0 : std::min(spaces, kMostSpaces), ' ');
      kept += c;
      spaces = 0;
      line_ended = false;
    }
  }
  return kept;
}

}  // namespace atl
