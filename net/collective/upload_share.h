// What attempts of different fragments share while they move bytes at the same time: the upload that the island's owner
// allows. An attempt's part is an equal one, and grows when another ends. Thread-safe.
#pragma once

#include <cstdint>
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
  // most: bytes/s of all attempts together; empty: as the links can. `attempts` outlives this.
  UploadShare(AttemptsUnderWay& attempts, std::optional<double> most);
  ~UploadShare();
  UploadShare(const UploadShare&) = delete;
  UploadShare& operator=(const UploadShare&) = delete;

  bool limited() const { return most_.has_value(); }
  // Bytes/s of this attempt now.
  std::optional<double> most_bytes_per_second() const;
  // No other attempt was under way since this one began: what it measured is of nobody else.
  bool alone_so_far() const;

 private:
  AttemptsUnderWay& attempts_;
  const std::optional<double> most_;
  bool began_alone_ = false;
  std::uint64_t begun_ = 0;
};

}  // namespace atl
