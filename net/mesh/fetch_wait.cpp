#include "net/mesh/fetch_wait.h"

#include <algorithm>

namespace atl {
namespace {

constexpr int kShare = 10;  // one part in so many of the time is given to waits
// A fetch gets a wait of such a part of its age. Twice the other: after a wait, what is saved reaches it when the age
// has doubled.
constexpr int kShareOfAge = 2 * kShare;
constexpr Clock::duration kShortest = std::chrono::milliseconds(500);  // the hub's ticks are half as long

}  // namespace

void FetchWait::keep_account(Clock::time_point now) {
  const Clock::duration passed = now - accounted_until_.value_or(now);
  accounted_until_ = now;
  if (!waits_) {
    saved_ = std::min(most_, saved_ + passed / kShare);
    return;
  }
  saved_ -= passed;
  if (stands_still_) left_ -= passed;
}

bool FetchWait::waits(const std::optional<Asked>& asked, Clock::time_point now) {
  keep_account(now);
  if (!asked) {
    waits_ = false;
  } else if (waits_) {
    waits_ = left_ > Clock::duration{};
  } else {
    left_ = saved_;
    waits_ = saved_ >= std::min(most_, std::max(kShortest, asked->oldest / kShareOfAge));
  }
  stands_still_ = asked && asked->stands_still;
  return waits_;
}

}  // namespace atl
