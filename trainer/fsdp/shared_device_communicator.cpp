#include "trainer/fsdp/shared_device_communicator.h"

#include <fmt/format.h>

#include <functional>
#include <stdexcept>

namespace atl {

SharedDeviceGroup::SharedDeviceGroup(SharedDevice& device, int world_size, std::chrono::nanoseconds timeout)
    : device_(device), slots_(static_cast<std::size_t>(world_size)), meeting_(world_size, timeout) {
  for (Slot& slot : slots_) {
    slot.ready = device.make_event();
    slot.added = device.make_event();
    slot.done = device.make_event();
  }
}

std::unique_ptr<SharedDeviceCommunicator> SharedDeviceGroup::communicator(LocalRank rank) {
  return std::unique_ptr<SharedDeviceCommunicator>(new SharedDeviceCommunicator(*this, rank));
}

void SharedDeviceGroup::meet(LocalRank rank) {
  meeting_.meet(rank, [this, rank] { return to_string(slots_[static_cast<std::size_t>(rank.value)].call); });
}

// From here on `stream` sees what the others' streams had written when they came here. A rank's events are recorded
// again only after a meeting to which the others came with their waits for them enqueued.
void SharedDeviceCommunicator::begin(const CollectiveCall& call, const void* data, void* stream) {
  group_.meeting_.throw_if_failed();  // before anything is written that a rank may still read
  SharedDeviceGroup::Slot& slot = own();
  slot.call = call;
  slot.data = static_cast<std::byte*>(const_cast<void*>(data));  // only rank 0's is written, by itself
  slot.ready->record(stream);
  group_.meet(rank_);
  check_same(call);
  for (const SharedDeviceGroup::Slot& peer : group_.slots_) {
    if (&peer != &slot) peer.ready->hold_back(stream);
  }
}

// What is enqueued on `stream` later may overwrite what the others have read.
void SharedDeviceCommunicator::end(void* stream) {
  own().done->record(stream);
  group_.meet(rank_);
  for (const SharedDeviceGroup::Slot& peer : group_.slots_) {
    if (&peer != &own()) peer.done->hold_back(stream);
  }
}

void SharedDeviceCommunicator::check_same(const CollectiveCall& call) {
  for (std::size_t peer = 0; peer < group_.slots_.size(); ++peer) {
    const CollectiveCall& theirs = group_.slots_[peer].call;
    if (theirs == call) continue;
    const std::string cause =
        fmt::format("local ranks {} and {} disagree on a collective: {} on rank {}, {} on rank {}", rank_.value, peer,
                    to_string(call), rank_.value, to_string(theirs), peer);
    if (group_.meeting_.fail(cause)) throw std::runtime_error(cause);
    group_.meeting_.throw_if_failed();
  }
}

void SharedDeviceCommunicator::all_gather(DType dtype, const void* shard, void* full, std::size_t shard_elements,
                                          void* stream) {
  begin({CollectiveKind::kAllGather, dtype, shard_elements}, shard, stream);
  const std::size_t bytes = shard_elements * static_cast<std::size_t>(size_of(dtype));
  auto* to = static_cast<std::byte*>(full);
  for (const SharedDeviceGroup::Slot& peer : group_.slots_) {
    if (to != peer.data) group_.device_.copy(to, peer.data, bytes, stream);
    to += bytes;
  }
  end(stream);
}

void SharedDeviceCommunicator::reduce_scatter(const float* full, float* shard, std::size_t shard_elements,
                                              bool accumulate, void* stream) {
  const float* behind = full + shard_elements * group_.slots_.size();
  if (std::less<>()(static_cast<const float*>(shard), behind) && std::less<>()(full, shard + shard_elements)) {
    throw std::logic_error(
        fmt::format("reduce_scatter of local rank {}: the shard lies in what is reduced", rank_.value));
  }
  begin({CollectiveKind::kReduceScatter, DType::kFloat32, shard_elements}, full, stream);
  for (const SharedDeviceGroup::Slot& peer : group_.slots_) {
    const float* part =
        reinterpret_cast<const float*>(peer.data) + static_cast<std::size_t>(rank_.value) * shard_elements;
    if (accumulate) {
      group_.device_.add(shard, part, shard_elements, stream);
    } else {
      group_.device_.copy(shard, part, shard_elements * sizeof(float), stream);
      accumulate = true;
    }
  }
  end(stream);
}

// Rank 0 adds the others' values to its own, and the others copy them: no rank needs scratch.
void SharedDeviceCommunicator::all_reduce_sum(double* values, std::size_t count, void* stream) {
  begin({CollectiveKind::kAllReduce, DType::kFloat64, count}, values, stream);
  SharedDeviceGroup::Slot& first = group_.slots_[0];
  if (rank_.value == 0) {
    for (std::size_t peer = 1; peer < group_.slots_.size(); ++peer) {
      group_.device_.add(values, reinterpret_cast<const double*>(group_.slots_[peer].data), count, stream);
    }
    first.added->record(stream);
  }
  group_.meet(rank_);
  if (rank_.value != 0) {
    first.added->hold_back(stream);
    group_.device_.copy(values, first.data, count * sizeof(double), stream);
  }
  end(stream);
}

}  // namespace atl
