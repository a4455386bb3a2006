#include "trainer/fsdp/rank_meeting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "net/base/deadline.h"
#include "trainer/fsdp/communicator.h"

namespace atl {

RankMeeting::RankMeeting(int world_size, std::chrono::nanoseconds timeout)
    : timeout_(timeout), came_(static_cast<std::size_t>(world_size), false) {}

void RankMeeting::meet(LocalRank rank, const std::function<std::string()>& what) {
  MutexLock lock(mutex_);
  if (cause_) throw CollectiveAborted(*cause_);
  came_[static_cast<std::size_t>(rank.value)] = true;
  if (std::find(came_.begin(), came_.end(), false) == came_.end()) {
    came_.assign(came_.size(), false);
    ++meetings_;
    changed_.notify_all();
    return;
  }
  const std::uint64_t mine = meetings_;
  const auto passed = [&]() ATOLL_REQUIRES(mutex_) { return meetings_ != mine || cause_.has_value(); };
  if (!changed_.wait(lock, Deadline::after(timeout_), passed)) {
    std::vector<std::size_t> absent;
    for (std::size_t peer = 0; peer < came_.size(); ++peer) {
      if (!came_[peer]) absent.push_back(peer);
    }
    cause_ = fmt::format("local rank {} did not come to {} within {:.3g} s", fmt::join(absent, ", "), what(),
                         Seconds(timeout_).count());
    changed_.notify_all();
  }
  // A rank that passed may find a failure of a later meeting; it learns of it there.
  if (meetings_ == mine) throw CollectiveAborted(*cause_);
}

bool RankMeeting::fail(const std::string& cause) noexcept {
  {
    const MutexLock lock(mutex_);
    if (cause_) return false;
    cause_ = cause;
  }
  changed_.notify_all();
  return true;
}

void RankMeeting::throw_if_failed() const {
  const MutexLock lock(mutex_);
  if (cause_) throw CollectiveAborted(*cause_);
}

void RankMeeting::reset() {
  const MutexLock lock(mutex_);
  cause_.reset();
  came_.assign(came_.size(), false);
}

}  // namespace atl
