#include "app/cli/hashing_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/cli/text.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kOnTerminal{100};
constexpr std::chrono::seconds kElsewhere{60};

}  // namespace

void HashingLines::show(const std::string& what, std::uint64_t done_bytes, std::uint64_t of_bytes) {
  const auto now = Clock::now();
  const bool is_another = what != what_ || done_bytes < std::exchange(last_bytes_, done_bytes);
  if (is_another) {
    what_ = what;
    begun_bytes_ = last_bytes_ = done_bytes;
    began_ = shown_ = now;
    return;
  }
  const bool terminal = console_.err_is_terminal, all = done_bytes == of_bytes;
  if (terminal && all) console_.err << "\r\033[K" << std::flush;
  if (all || now - shown_ < (terminal ? std::chrono::milliseconds(kOnTerminal) : kElsewhere)) return;
  shown_ = now;
  const double rate = static_cast<double>(done_bytes - begun_bytes_) / std::max(Seconds(now - began_).count(), 1e-3);
  const double left = rate > 0 ? static_cast<double>(of_bytes - done_bytes) / rate : 0;
  console_.err << fmt::format("{}{}: {} of {} hashed, {}/s, {} left{}", terminal ? "\r\033[K" : "", what,
                              format_bytes(static_cast<double>(done_bytes)),
                              format_bytes(static_cast<double>(of_bytes)), format_bytes(rate), format_duration(left),
                              terminal ? "" : "\n")
               << std::flush;
}

}  // namespace atl
