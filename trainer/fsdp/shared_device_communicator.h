// Collectives among ranks that are threads of one process and share one GPU, as where an island of several ranks is
// tried on a machine with one. Each collective is copies and additions on the device, in rank order, so that its sums
// are those of the shared-memory communicator. The hosts meet for each, to tell each other where their data lies; what
// is enqueued waits for the other ranks' streams by events, and never spins on the device, so that an abort leaves
// nothing hanging.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "net/base/id.h"
#include "net/step/tensor.h"
#include "trainer/fsdp/collective_call.h"
#include "trainer/fsdp/rank_meeting.h"

namespace atl {

// Streams are opaque (cudaStream_t). Any thread. May throw std::runtime_error.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  virtual void record(void* stream) = 0;
  // What is enqueued on `stream` later waits until what was enqueued before the last record() is done.
  virtual void hold_back(void* stream) = 0;
};

// What the communicator asks of the device. Asynchronous, in the stream's order. Any thread. May throw
// std::runtime_error.
class SharedDevice {
 public:
  virtual ~SharedDevice() = default;
  virtual std::unique_ptr<DeviceEvent> make_event() = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes, void* stream) = 0;
  // sum[i] += values[i]. No aliasing.
  virtual void add(float* sum, const float* values, std::size_t count, void* stream) = 0;
  virtual void add(double* sum, const double* values, std::size_t count, void* stream) = 0;
};

class SharedDeviceCommunicator;

// Where the ranks meet. Owned by whoever owns the rank threads; outlives the communicators made from it, and what they
// enqueued. After an abort it is of no more use: ranks that go on make a new one.
class SharedDeviceGroup {
 public:
  // The device outlives this. `timeout`: of a rank for the others to come to the same collective.
  SharedDeviceGroup(SharedDevice& device, int world_size, std::chrono::nanoseconds timeout);

  int world_size() const { return static_cast<int>(slots_.size()); }
  std::unique_ptr<SharedDeviceCommunicator> communicator(LocalRank rank);

 private:
  friend class SharedDeviceCommunicator;
  struct Slot {
    CollectiveCall call;
    std::byte* data = nullptr;
    std::unique_ptr<DeviceEvent> ready;  // the rank's stream has come to the collective
    std::unique_ptr<DeviceEvent> added;  // all_reduce: rank 0's values are the sums
    std::unique_ptr<DeviceEvent> done;   // the rank has read what it needs of the others
  };

  void meet(LocalRank rank);

  SharedDevice& device_;
  std::vector<Slot> slots_;  // each rank writes its own before a meeting, and reads the others' after it
  RankMeeting meeting_;
};

// One rank's; used by its thread alone, but for abort(). Functions throw CollectiveAborted where another rank failed or
// did not come, and std::runtime_error where this one did. Buffers are the device's, and stay until every rank's stream
// is done: also after an abort.
class SharedDeviceCommunicator {
 public:
  LocalRank rank() const { return rank_; }
  int world_size() const { return group_.world_size(); }

  // full: the shards of all ranks in rank order. shard may be its own place in full.
  void all_gather(DType dtype, const void* shard, void* full, std::size_t shard_elements, void* stream);
  // shard = (or +=) this rank's part of the sum of all ranks' `full`, added one rank after the other. shard is not in
  // full.
  void reduce_scatter(const float* full, float* shard, std::size_t shard_elements, bool accumulate, void* stream);
  // In place: each value becomes its sum over ranks, added in rank order.
  void all_reduce_sum(double* values, std::size_t count, void* stream);

  // Any thread.
  void abort(const std::string& reason) noexcept { (void)group_.meeting_.fail(reason); }

 private:
  friend class SharedDeviceGroup;
  SharedDeviceCommunicator(SharedDeviceGroup& group, LocalRank rank) : group_(group), rank_(rank) {}

  SharedDeviceGroup::Slot& own() { return group_.slots_[static_cast<std::size_t>(rank_.value)]; }
  void begin(const CollectiveCall& call, const void* data, void* stream);
  void end(void* stream);
  void check_same(const CollectiveCall& call);

  SharedDeviceGroup& group_;
  const LocalRank rank_;
};

}  // namespace atl
