#include "trainer/device/cuda_staging.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace atl {

CudaStaging::CudaStaging() : memory_(make_pinned_memory(kSlots * kSlotBytes, "copies to and from a GPU")) {
  for (std::size_t i = 0; i < kSlots; ++i)
    slots_[i] = {memory_.get() + i * kSlotBytes, make_event(/*host_waits=*/true)};
}

CudaStaging::Slot& CudaStaging::free_slot() {
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % kSlots;
  check_cuda(cudaEventSynchronize(slot.copied.get()), "wait for a copy to or from a GPU: cudaEventSynchronize");
  return slot;
}

void CudaStaging::upload(std::byte* to, std::span<const std::byte> from, cudaStream_t stream) {
  while (!from.empty()) {
    const auto piece = from.first(std::min(from.size(), kSlotBytes));
    Slot& slot = free_slot();
    std::memcpy(slot.memory, piece.data(), piece.size());
    check_cuda(cudaMemcpyAsync(to, slot.memory, piece.size(), cudaMemcpyHostToDevice, stream),
               [&] { return fmt::format("upload {} bytes: cudaMemcpyAsync", piece.size()); });
    check_cuda(cudaEventRecord(slot.copied.get(), stream), "upload: cudaEventRecord");
    to += piece.size();
    from = from.subspan(piece.size());
  }
}

// All slots at a time: while one is emptied the next are filled.
void CudaStaging::download(const std::byte* from, std::span<std::byte> to, cudaStream_t stream) {
  while (!to.empty()) {
    const std::span<std::byte> group = to.first(std::min(to.size(), kSlots * kSlotBytes));
    const std::size_t first = next_;
    for (std::size_t at = 0; at < group.size(); at += kSlotBytes) {
      const std::size_t bytes = std::min(group.size() - at, kSlotBytes);
      Slot& slot = free_slot();
      check_cuda(cudaMemcpyAsync(slot.memory, from + at, bytes, cudaMemcpyDeviceToHost, stream),
                 [&] { return fmt::format("download {} bytes: cudaMemcpyAsync", bytes); });
      check_cuda(cudaEventRecord(slot.copied.get(), stream), "download: cudaEventRecord");
    }
    for (std::size_t at = 0; at < group.size(); at += kSlotBytes) {
      Slot& slot = slots_[(first + at / kSlotBytes) % kSlots];
      check_cuda(cudaEventSynchronize(slot.copied.get()), "wait for a download: cudaEventSynchronize");
      std::memcpy(group.data() + at, slot.memory, std::min(group.size() - at, kSlotBytes));
    }
    from += group.size();
    to = to.subspan(group.size());
  }
}

CudaResults::CudaResults() : memory_(make_pinned_memory(kResultSlots * kMostResultBytes, "what steps leave")) {
  for (std::size_t i = 0; i < slots_.size(); ++i)
    slots_[i] = {memory_.get() + i * kMostResultBytes, 0, make_event(/*host_waits=*/true)};
}

void CudaResults::add(int slot_id, std::span<const std::byte> from, cudaStream_t stream) {
  Slot& slot = slots_.at(static_cast<std::size_t>(slot_id));
  if (slot.bytes + from.size() > kMostResultBytes) throw std::logic_error("a step leaves more than there is room for");
  check_cuda(cudaMemcpyAsync(slot.memory + slot.bytes, from.data(), from.size(), cudaMemcpyDeviceToHost, stream),
             "a step's result: cudaMemcpyAsync");
  slot.bytes += from.size();
}

void CudaResults::finish(int slot_id, cudaStream_t stream) {
  Slot& slot = slots_.at(static_cast<std::size_t>(slot_id));
  check_cuda(cudaEventRecord(slot.there.get(), stream), "a step's result: cudaEventRecord");
  slot.bytes = 0;
}

void CudaResults::await(int slot_id, std::span<std::byte> to) {
  const Slot& slot = slots_.at(static_cast<std::size_t>(slot_id));
  check_cuda(cudaEventSynchronize(slot.there.get()), "wait for a step's result: cudaEventSynchronize");
  std::memcpy(to.data(), slot.memory, std::min(to.size(), kMostResultBytes));
}

}  // namespace atl
