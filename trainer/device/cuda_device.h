// One GPU as a rank's device: a stream that computes and one for collectives, whose kernels go first; two arenas, one
// allocation each. While a program runs nothing is allocated, freed or waited for; what the host enqueues may block
// only where the GPU's queue is full. Owned and used by the rank's thread alone, but for abort().
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "net/base/mutex.h"
#include "trainer/device/cublas_products.h"
#include "trainer/device/cuda_attention.h"
#include "trainer/device/cuda_check.h"
#include "trainer/device/cuda_collectives.h"
#include "trainer/device/cuda_seconds.h"
#include "trainer/device/cuda_staging.h"
#include "trainer/device/device.h"

namespace atl {

class CudaDevice final : public Device {
 public:
  // Made current on this thread. `clique`: where the ranks meet now; asked again after an abort. Meets them.
  CudaDevice(int ordinal, LocalRank rank, const CublasLtApi& cublas, std::unique_ptr<CudaAttention> attention,
             std::function<std::shared_ptr<CudaClique>()> clique);
  ~CudaDevice() override;

  void take_arena(Arena arena, std::int64_t bytes) override;
  void make_events(int count) override;
  void run(StreamId stream, const Operation& operation) override;
  void record(StreamId stream, int event) override;
  void wait(StreamId stream, int event) override;
  void join() override;
  void synchronize() override;
  void mark() override;
  void await_mark() override;
  void upload(const Tensor& to, std::span<const std::byte> from) override;
  void download(const Tensor& from, std::span<std::byte> to) override;
  void send_result(int slot, std::span<const Tensor> from) override;
  void await_result(int slot, std::span<std::byte> to) override;
  void measure_seconds(int slot) override;
  // Of the compute stream. What it waited for the collectives' stream is communication; while it waits for the host,
  // that counts to the operation which comes late.
  std::optional<StepSeconds> take_seconds(int slot) override {
    return seconds_.at(static_cast<std::size_t>(slot)).take();
  }
  void reset() noexcept override;
  void abort(const std::string& reason) noexcept override;

  // For measurements: what a program's operations are enqueued on.
  cudaStream_t stream(StreamId id) const { return streams_[static_cast<std::size_t>(id)].get(); }
  std::size_t product_plans() const { return products_.plans(); }

 private:
  void meet();
  void tick(StepPart part) {
    if (measured_ != nullptr) measured_->tick(part, stream(StreamId::kCompute));
  }
  CudaCollectives& collectives() const;
  std::byte* at(const Tensor& tensor) const {
    return arenas_[static_cast<std::size_t>(tensor.arena)].get() + tensor.byte;
  }

  // First, so that all after it is made on this GPU.
  struct Current {
    explicit Current(int ordinal);
  } current_;
  const LocalRank rank_;
  const std::function<std::shared_ptr<CudaClique>()> clique_now_;
  std::array<UniqueStream, kStreams> streams_;
  std::array<UniqueEvent, kStreams> joins_;
  std::array<UniqueEvent, 2> marks_;
  std::int64_t marked_ = 0;
  std::vector<UniqueEvent> events_;
  std::array<CudaSeconds, kResultSlots> seconds_;
  CudaSeconds* measured_ = nullptr;  // the one that is measured now
  CudaStaging staging_;
  CudaResults results_;
  std::array<DeviceMemory, kArenas> arenas_;
  CublasProducts products_;
  std::unique_ptr<CudaAttention> attention_;

  mutable Mutex mutex_;
  std::shared_ptr<CudaClique> clique_ ATOLL_GUARDED_BY(mutex_);  // that collectives_ is of
  std::unique_ptr<CudaCollectives> collectives_;
  std::string failed_;  // why there are none
};

}  // namespace atl
