// How often each member may do what costs others something: so many times at once, then once a period. Bounded in what
// it remembers. One thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>

#include "net/base/deadline.h"
#include "net/base/id.h"

namespace atl {

class MemberRate {
 public:
  MemberRate(int at_once, Clock::duration period) : burst_(at_once * period), period_(period) {}

  // Whether it may, now; counted if so.
  bool take(const IslandId& member, Clock::time_point now) {
    if (spent_.size() >= kMostRemembered) {
      std::erase_if(spent_, [now](const auto& entry) { return entry.second <= now; });
    }
    Clock::time_point& until = spent_[member];  // when all is made up for
    const Clock::time_point next = std::max(until, now) + period_;
    if (next > now + burst_) return false;
    until = next;
    return true;
  }

 private:
  static constexpr std::size_t kMostRemembered = 1024;

  const Clock::duration burst_, period_;
  std::map<IslandId, Clock::time_point> spent_;
};

}  // namespace atl
