// The memory in which a fragment's averages are made, one after the other: several gigabytes where the model is large,
// which are not taken anew each round. It comes back when nobody reads an average any more, the disk's thread
// (round_keeper.h) included. Any thread.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "net/base/bytes.h"
#include "net/base/mutex.h"

namespace atl {

using SharedBytes = std::shared_ptr<Bytes>;

class AverageRoom {
 public:
  SharedBytes take(std::size_t bytes) {
    Bytes room;
    {
      MutexLock lock(free_->mutex);
      if (free_->bytes) room = *std::exchange(free_->bytes, std::nullopt);
    }
    room.resize(bytes);
    return {new Bytes(std::move(room)), [free = free_](Bytes* used) {
              const std::unique_ptr<Bytes> owned(used);
              MutexLock lock(free->mutex);
              if (!free->bytes) free->bytes = std::move(*owned);
            }};
  }

 private:
  struct Free {
    Mutex mutex;
    std::optional<Bytes> bytes ATOLL_GUARDED_BY(mutex);
  };
  std::shared_ptr<Free> free_ = std::make_shared<Free>();
};

}  // namespace atl
