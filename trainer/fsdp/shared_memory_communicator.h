// The communicator of ranks that are threads of one process.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/base/mutex.h"
#include "trainer/fsdp/communicator.h"

namespace atl {

// Where the ranks meet. Owned by whoever owns the rank threads; outlives the communicators made from it.
class SharedMemoryGroup {
 public:
  SharedMemoryGroup(int world_size, std::chrono::nanoseconds timeout);

  int world_size() const { return static_cast<int>(slots_.size()); }
  std::unique_ptr<Communicator> communicator(LocalRank rank);

  // Forget an abort. Only while no rank is in a collective.
  void reset();

 private:
  friend class SharedMemoryCommunicator;
  struct Slot {
    const void* data = nullptr;
    std::size_t count = 0;
  };

  void publish_and_wait(LocalRank rank, Slot slot);  // returns when every rank has published
  void wait_for_all();
  void abort(const std::string& reason) noexcept;
  bool arrive(MutexLock& lock) ATOLL_REQUIRES(mutex_);  // true: as the last one

  const std::chrono::nanoseconds timeout_;
  std::vector<Slot> slots_;  // each rank writes its own before a wait of all ranks, and reads the others' after it
  Mutex mutex_;
  CondVar all_arrived_;
  int arrived_ ATOLL_GUARDED_BY(mutex_) = 0;
  std::uint64_t generation_ ATOLL_GUARDED_BY(mutex_) = 0;
  std::optional<std::string> aborted_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace atl
