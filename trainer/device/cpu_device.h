// This processor as a rank's device: everything is done at once, on the rank's thread and those that the tensor library
// lends it. fp32 products are the library's sgemm, the rest is kernels/model. Owned and used by the rank's thread.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/device/device.h"
#include "trainer/fsdp/communicator.h"

namespace atl {

class CpuDevice final : public Device {
 public:
  // The communicator outlives it. `threads`: that compute, this one included.
  CpuDevice(Communicator& communicator, int threads);

  void take_arena(Arena arena, std::int64_t bytes) override;
  void make_events(int) override {}
  void run(StreamId stream, const Operation& operation) override;
  void record(StreamId, int) override {}
  void wait(StreamId, int) override {}
  void join() override {}
  void synchronize() override {}
  void mark() override {}
  void await_mark() override {}
  void upload(const Tensor& to, std::span<const std::byte> from) override;
  void download(const Tensor& from, std::span<std::byte> to) override;
  void send_result(int slot, std::span<const Tensor> from) override;
  void await_result(int slot, std::span<std::byte> to) override;
  void measure_seconds(int slot) override;
  // Collectives with the wait for the other ranks.
  std::optional<StepSeconds> take_seconds(int slot) override;
  void rest() override;
  void reset() noexcept override;
  void abort(const std::string& reason) noexcept override { communicator_.abort(reason); }

  // Bytes of a tensor, and a whole arena; for tests.
  std::byte* at(const Tensor& tensor) const {
    return arenas_[static_cast<std::size_t>(tensor.arena)].get() + tensor.byte;
  }

 private:
  // Mapped of the kernel: pages that nothing touches take no memory.
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* memory) const noexcept;
  };

  Communicator& communicator_;
  const int threads_;
  std::array<std::unique_ptr<std::byte, Unmap>, kArenas> arenas_;
  std::array<std::vector<std::byte>, kResultSlots> results_;
  std::array<std::optional<StepSeconds>, kResultSlots> seconds_;
  int measured_ = -1;  // the slot whose seconds are measured now
};

}  // namespace atl
