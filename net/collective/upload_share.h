// What attempts of different fragments share while they move bytes at the same time: the upload that the island's owner
// allows. An attempt's part is an equal one, and grows when another ends. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "net/base/mutex.h"

namespace atl {

// Those of one RingAllReduce.
class AttemptsUnderWay {
 public:
  int count() const {
    MutexLock lock(mutex_);
    return count_;
  }

 private:
  friend class UploadShare;
  mutable Mutex mutex_;
  int count_ ATOLL_GUARDED_BY(mutex_) = 0;
  std::uint64_t begun_ ATOLL_GUARDED_BY(mutex_) = 0;
};

// One attempt's, as long as it lives.
class UploadShare {
 public:
  // Bytes/s of all attempts together at this moment; nothing: as the links can. On any of an attempt's threads.
  using Most = std::function<std::optional<double>()>;

  // most: may be empty, no limit. `attempts` and what it uses outlive this.
  UploadShare(AttemptsUnderWay& attempts, Most most);
  ~UploadShare();
  UploadShare(const UploadShare&) = delete;
  UploadShare& operator=(const UploadShare&) = delete;

  // Contributions (direct_reduce.h) that the attempt sends to an owner beside its ring's edge, as long as this lives.
  // Those to all owners together have half of its part, the edge the other.
  class Contributions {
   public:
    explicit Contributions(const UploadShare& share) : share_(share) { ++share_.contributing_; }
    ~Contributions() { --share_.contributing_; }
    Contributions(const Contributions&) = delete;
    Contributions& operator=(const Contributions&) = delete;

   private:
    const UploadShare& share_;
  };

  // Bytes/s of this attempt's edge, or of its contributions, now.
  std::optional<double> most_bytes_per_second() const;
  // No other attempt was under way since this one began: what it measured is of nobody else.
  bool alone_so_far() const;

 private:
  AttemptsUnderWay& attempts_;
  const Most most_;
  mutable std::atomic<int> contributing_{0};  // to so many owners
  bool began_alone_ = false;
  std::uint64_t begun_ = 0;
};

}  // namespace atl
