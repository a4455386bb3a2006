// Copies between main memory and a GPU's, by way of pinned memory, so that an upload's source is free at once and the
// host need not wait for what the stream does before it; and what steps leave, which the host reads later. Owned and
// used by the device's thread.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "trainer/device/cuda_check.h"
#include "trainer/device/device.h"

namespace atl {

class CudaStaging {
 public:
  CudaStaging();

  // In the order of `stream`. Waits for the stream only where kSlots pieces of earlier copies are not done yet.
  void upload(std::byte* to, std::span<const std::byte> from, cudaStream_t stream);
  // Returns when it is there.
  void download(const std::byte* from, std::span<std::byte> to, cudaStream_t stream);

 private:
  // A micro-batch has five tensors, of which the largest, a table of angles, is as large as a slot at 8,192 tokens: the
  // host may run two micro-batches ahead.
  static constexpr std::size_t kSlots = 16;
  static constexpr std::size_t kSlotBytes = 2u << 20;
  struct Slot {
    std::byte* memory = nullptr;
    UniqueEvent copied;  // nothing reads or writes `memory` any more
  };
  Slot& free_slot();

  PinnedMemory memory_;
  std::array<Slot, kSlots> slots_;
  std::size_t next_ = 0;
};

// Of steps (Device::send_result).
class CudaResults {
 public:
  CudaResults();

  // Behind what was added to the slot since the last finish(), in the order of `stream`.
  void add(int slot, std::span<const std::byte> from, cudaStream_t stream);
  void finish(int slot, cudaStream_t stream);
  // Waits for all that came before the last finish().
  void await(int slot, std::span<std::byte> to);

 private:
  struct Slot {
    std::byte* memory = nullptr;
    std::size_t bytes = 0;  // added so far
    UniqueEvent there;
  };
  PinnedMemory memory_;
  std::array<Slot, kResultSlots> slots_;
};

}  // namespace atl
