#include "net/recovery/fetch_rates.h"

#include <algorithm>

namespace atl {
namespace {

constexpr std::chrono::seconds kLook{2};
constexpr double kFading = 0.95;  // a look
constexpr double kSooner = 2;
constexpr double kFree = 0.5;  // of the way

double rate_of(std::uint64_t bytes, Clock::duration time) {
  return static_cast<double>(bytes) / std::max(Seconds(time).count(), 1e-3);
}

}  // namespace

void FlightRate::look(std::uint64_t bytes, Clock::time_point now) {
  bytes_ = bytes;
  if (now - mark_.when < kLook) return;
  before_ = mark_;
  mark_ = {bytes, now};
}

double FlightRate::bytes_per_second(Clock::time_point now) const {
  return rate_of(bytes_ - before_.bytes, now - before_.when);
}

void FetchRates::look(std::uint64_t bytes, Clock::time_point now) {
  const bool is_first = when_ == Clock::time_point{};
  if (!is_first && now - when_ < kLook) return;
  if (!is_first) best_ = std::max(kFading * best_, rate_of(bytes - bytes_, now - when_));
  bytes_ = bytes;
  when_ = now;
}

// Where the way is full, those that end soon make room for the slow ones.
bool FetchRates::is_worth_asking_again(std::uint64_t left, double bytes_per_second, std::uint64_t whole,
                                       double together) const {
  if (bytes_per_second <= 0) return true;  // it is silent
  const double room = best_ - together;
  return room > kFree * best_ &&
         static_cast<double>(left) * room > kSooner * static_cast<double>(whole) * bytes_per_second;
}

}  // namespace atl
