// The communicator of ranks that are threads of one process.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "trainer/fsdp/communicator.h"
#include "trainer/fsdp/rank_meeting.h"

namespace atl {

// Where the ranks meet. Owned by whoever owns the rank threads; outlives the communicators made from it.
class SharedMemoryGroup {
 public:
  SharedMemoryGroup(int world_size, std::chrono::nanoseconds timeout);

  int world_size() const { return static_cast<int>(slots_.size()); }
  std::unique_ptr<Communicator> communicator(LocalRank rank);

  // Forget an abort. Only while no rank is in a collective.
  void reset() { meeting_.reset(); }

 private:
  friend class SharedMemoryCommunicator;
  struct Slot {
    const char* collective = "";
    const void* data = nullptr;
    std::size_t count = 0;  // all_gather: bytes; else values
  };

  void publish_and_meet(LocalRank rank, Slot slot);  // returns when every rank has published
  void meet(LocalRank rank);

  std::vector<Slot> slots_;  // each rank writes its own before a meeting, and reads the others' after it
  RankMeeting meeting_;
};

}  // namespace atl
