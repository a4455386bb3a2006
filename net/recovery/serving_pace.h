// How fast an island serves others: within what its owner lets it send, and out of the ring's way. While an attempt is
// under way, serving has a hundredth of what the ring's link carries, but enough that whoever fetches lives on;
// between attempts all that the owner allows, which it shares with a state that is being published. What waits is
// served in its order. The owner's word may change at any time, and all that is sent is held to it within a moment: so
// this says, too, what is left to attempts and to publishing. Thread-safe: threads of connections ask, lanes tell of
// attempts, the uploader of its parts, the control socket what the owner allows.
#pragma once

#include <cstddef>
#include <optional>

#include "net/base/deadline.h"
#include "net/base/mutex.h"

namespace atl {

class ServingPace {
 public:
  static constexpr std::size_t kMostAtOnce = 256 * 1024;
  static constexpr double kShareOfRing = 0.01;
  // bytes/s during an attempt, whatever the link: sixteen connections have twice as much as HttpsPaceLimits asks of
  // them.
  static constexpr double kFloor = 128 * 1024;

  // upload: bytes/s that the owner lets the island send in all; empty: as its links can.
  explicit ServingPace(std::optional<double> upload = {}) : upload_(upload) {}

  void allow(std::optional<double> upload);  // from now on
  std::optional<double> allowed() const;

  // An attempt of the all-reduce, as long as it lives. `pace` outlives it.
  class Attempt {
   public:
    explicit Attempt(ServingPace& pace);
    ~Attempt();
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;

   private:
    ServingPace& pace_;
  };
  // A part of a published state that is being sent, as long as it lives. `pace` outlives it.
  class Part {
   public:
    explicit Part(ServingPace& pace);
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

   private:
    ServingPace& pace_;
  };
  void saw_link(double bytes_per_second);  // what the last attempt's link carried
  // bytes/s that attempts may send together: with what is served meanwhile it is what the owner allows.
  std::optional<double> left_to_ring() const;
  // bytes/s for all parts together, and for attempts where some are under way.
  std::optional<double> left_to_parts(Clock::time_point now) const;

  struct Turn {
    std::size_t bytes = 0;  // of those that were asked for; at least 1
    Clock::time_point when;
  };
  // When the next of `wanted` bytes, at least one, may be sent, and how many; they are counted as sent.
  Turn next(std::size_t wanted, Clock::time_point now);

 private:
  std::optional<double> rate() const ATOLL_REQUIRES(mutex_);
  std::optional<double> share_of_owner() const ATOLL_REQUIRES(mutex_);
  std::optional<double> ring_of_owner() const ATOLL_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::optional<double> upload_ ATOLL_GUARDED_BY(mutex_);
  int attempts_ ATOLL_GUARDED_BY(mutex_) = 0;
  int parts_ ATOLL_GUARDED_BY(mutex_) = 0;
  Clock::time_point asked_ ATOLL_GUARDED_BY(mutex_){};  // when somebody was served last
  double link_ ATOLL_GUARDED_BY(mutex_) = 0;            // bytes/s; 0: not known
  Clock::time_point free_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace atl
