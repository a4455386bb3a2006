// How fast an island receives: within what its owner allows, whoever in it receives. Bytes are counted once they were
// read, and whoever read more than was due waits before it reads again; TCP tells their senders, of whom nothing is
// asked. While an attempt of the all-reduce is under way the ring has most of it, for all others wait for its slowest
// member. Thread-safe: the ring's workers and all that fetches share one, the owner's word comes from another thread.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "net/base/abort_signal.h"
#include "net/base/deadline.h"
#include "net/base/mutex.h"

namespace atl {

class DownloadPace {
 public:
  enum class Use { kRing, kFetch };
  static constexpr double kPartOfFetches = 0.25;  // during an attempt
  static constexpr Seconds kBurst{0.05};          // that was not read may be made up for
  static constexpr std::size_t kMostAtOnce = 128 * 1024, kLeastAtOnce = 4096;

  // bytes/s that the owner lets the island receive in all; empty: as its links can.
  explicit DownloadPace(std::optional<double> bytes_per_second = {}) : allowed_(bytes_per_second) {}

  void allow(std::optional<double> bytes_per_second);  // from now on
  std::optional<double> allowed() const;

  // An attempt of the all-reduce, as long as it lives. `pace` outlives it.
  class Attempt {
   public:
    explicit Attempt(DownloadPace& pace);
    ~Attempt();
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;

   private:
    DownloadPace& pace_;
  };

  // From when on more may be read; not after `now`: at once.
  Clock::time_point may_read_at(Use use, Clock::time_point now);
  // How many bytes are to be read at a time, so that none waits long for the next; at most kMostAtOnce.
  std::size_t at_once(Use use) const;
  void has_read(Use use, std::size_t bytes, Clock::time_point now);
  // Until more may be read, or `abort` is raised; how long that took. Blocks.
  Clock::duration wait(Use use, const AbortSignal& abort);

 private:
  // Of one use. Bytes, not times: what is owed at one rate is paid at the next.
  struct Bucket {
    double bytes = 0;  // that may be read at once; negative: that were read too early
    Clock::time_point as_of{};
  };
  std::optional<double> rate_of(Use use) const ATOLL_REQUIRES(mutex_);
  Bucket& settled(Use use, double rate, Clock::time_point now) ATOLL_REQUIRES(mutex_);
  void settle_all(Clock::time_point now) ATOLL_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::optional<double> allowed_ ATOLL_GUARDED_BY(mutex_);
  int attempts_ ATOLL_GUARDED_BY(mutex_) = 0;
  std::array<Bucket, 2> buckets_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace atl
