// NCCL in host memory, behind the trainer's table of its functions: collectives of FakeStreams that end late and out of
// step, move real data, and go wrong as they are told to. As NCCL's, they wait for their peers until they are aborted,
// and do not mind what the peers issue: ranks that do not agree hang. The test owns it, one at a time; it outlives the
// streams. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/base/mutex.h"
#include "tests/fakes/fake_stream.h"
#include "trainer/fsdp/nccl_api.h"

namespace atl::test {

// What goes wrong on one rank, from its nth collective on (from 1).
enum class NcclFault : std::uint8_t {
  kInitNeverCompletes,
  kCollectiveHangs,     // enqueued, but never comes to its peers
  kAsynchronousError,   // hangs, and comm_get_async_error says so
  kCallFails,           // the call itself returns an error
  kCallBlocks,          // the call does not return until the communicator is aborted
  kCallNeverCompletes,  // the call returns, but stays in progress
};

class FakeNccl {
 public:
  explicit FakeNccl(std::uint64_t seed);
  ~FakeNccl();
  FakeNccl(const FakeNccl&) = delete;
  FakeNccl& operator=(const FakeNccl&) = delete;

  // Before the rank begins.
  void break_rank(int rank, NcclFault fault, int collective = 1);

  static NcclApi api();

  // What the functions were called for.
  struct Counts {
    int open_groups = 0;  // opened and not closed, on all threads
    int groups = 0;       // opened
    int open_comms = 0;   // neither destroyed nor aborted
    int aborted = 0;
    int destroyed = 0;
    int misuses = 0;  // calls with a communicator that was no more, or from two threads at once
  };
  Counts counts() const;

  struct Comm;

 private:
  struct Functions;
  class Use;
  struct Call {
    int kind = 0;
    std::size_t elements = 0;
    NcclDataType type{};
    const void* send = nullptr;
    void* receive = nullptr;
    GpuStream stream = nullptr;
  };
  // One collective of all ranks: the nth of a clique.
  struct Meeting {
    Call first;
    bool agree = true;
    std::map<int, std::vector<std::byte>> sent;
    int left = 0;
  };

  NcclResult connect(NcclComm* comm, int ranks, std::uint64_t clique, int rank, const NcclConfig& config);
  NcclResult launch(Comm& comm, const Call& call);
  void meet(Comm& comm, std::uint64_t number, bool hangs, const Call& call);
  NcclResult state(Comm& comm);
  NcclResult retire(Comm& comm, bool aborted);
  bool broken(const Comm& comm, NcclFault fault, std::uint64_t collective) const ATOLL_REQUIRES(mutex_);
  bool connected(std::uint64_t clique) const ATOLL_REQUIRES(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  std::mt19937_64 random_ ATOLL_GUARDED_BY(mutex_);
  std::map<int, std::pair<NcclFault, std::uint64_t>> faults_ ATOLL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Comm>> comms_ ATOLL_GUARDED_BY(mutex_);  // kept when they are no more, to tell misuse
  std::map<std::pair<std::uint64_t, std::uint64_t>, Meeting> meetings_ ATOLL_GUARDED_BY(mutex_);  // of (clique, n)
  std::uint64_t cliques_ ATOLL_GUARDED_BY(mutex_) = 0;
  Counts counts_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace atl::test
