// The communicator of ranks that are threads of one process.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

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
  void wait_locked(std::unique_lock<std::mutex>& lock);

  const std::chrono::nanoseconds timeout_;
  std::mutex mutex_;
  std::condition_variable all_arrived_;
  // guarded by mutex_
  std::vector<Slot> slots_;  // written before, read after a wait of all ranks
  int arrived_ = 0;
  std::uint64_t generation_ = 0;
  std::optional<std::string> aborted_;
};

}  // namespace atl
