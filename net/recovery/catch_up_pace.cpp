#include "net/recovery/catch_up_pace.h"

#include <fmt/format.h>

namespace atl {
namespace {

constexpr double kBitsOfMbit = 1e6 / 8;

}  // namespace

// After a way back it begins anew.
void CatchUpPace::target_is(OuterStep target, std::uint64_t bytes, Clock::time_point now) {
  if (last_ && last_->target == target) return;
  if (!first_ || target < last_->target) first_ = {target, bytes, now};
  last_ = {target, bytes, now};
}

std::optional<CatchUpPace::Verdict> CatchUpPace::never_ends(std::uint64_t round_bytes) const {
  if (!first_) return std::nullopt;
  const std::uint32_t rounds = last_->target.value - first_->target.value;
  const auto time = last_->when - first_->when;
  if (rounds < kRounds || time < kTime) return std::nullopt;
  const double seconds = Seconds(time).count();
  Verdict verdict;
  verdict.bytes_per_second = static_cast<double>(last_->bytes - first_->bytes) / seconds;
  verdict.seconds_of_round = seconds / rounds;
  verdict.needed = static_cast<double>(round_bytes) / verdict.seconds_of_round;
  if (verdict.bytes_per_second > verdict.needed) return std::nullopt;
  return verdict;
}

std::string text_of(const CatchUpPace::Verdict& verdict) {
  return fmt::format(
      "this island cannot catch up over a link like this: the others commit a round every {:.0f} s, and its averages "
      "alone need more than {:.1f} Mbit/s, of which {:.1f} Mbit/s come; it goes on trying",
      verdict.seconds_of_round, verdict.needed / kBitsOfMbit, verdict.bytes_per_second / kBitsOfMbit);
}

}  // namespace atl
