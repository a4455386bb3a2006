#include "trainer/device/cuda_collectives.h"

#include <fmt/format.h>

#include <stdexcept>

#include "kernels/model/model_cuda.h"
#include "trainer/device/cuda_add.h"
#include "trainer/device/cuda_check.h"

namespace atl {
namespace {

void copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  if (to == from) return;
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream),
             [&] { return fmt::format("copy {} bytes on the GPU: cudaMemcpyAsync", bytes); });
}

// --- A rank alone ---

class LoneCollectives final : public CudaCollectives {
 public:
  void all_gather(DType dtype, const void* shard, void* full, std::size_t shard_elements,
                  cudaStream_t stream) override {
    copy(full, shard, shard_elements * static_cast<std::size_t>(size_of(dtype)), stream);
  }
  void reduce_scatter(const float* full, float* shard, float*, std::size_t shard_elements, bool accumulate,
                      cudaStream_t stream) override {
    if (accumulate) {
      check_cuda(cuda::launch_add(shard, full, static_cast<std::int64_t>(shard_elements), stream), "launch add");
    } else {
      copy(shard, full, shard_elements * sizeof(float), stream);
    }
  }
  void all_reduce_sum(double*, std::size_t, cudaStream_t) override {}
  void watched(const char*, const std::function<void()>& work) override { work(); }
};

class LoneClique final : public CudaClique {
 public:
  std::unique_ptr<CudaCollectives> join(LocalRank) override { return std::make_unique<LoneCollectives>(); }
  void abort(const std::string&) noexcept override {}
};

// --- A GPU each ---

class NcclCollectives final : public CudaCollectives {
 public:
  explicit NcclCollectives(std::unique_ptr<NcclCommunicator> communicator) : communicator_(std::move(communicator)) {}

  void all_gather(DType dtype, const void* shard, void* full, std::size_t shard_elements,
                  cudaStream_t stream) override {
    communicator_->all_gather(dtype, shard, full, shard_elements, stream);
  }
  // NCCL overwrites what it reduces to.
  void reduce_scatter(const float* full, float* shard, float* scratch, std::size_t shard_elements, bool accumulate,
                      cudaStream_t stream) override {
    if (accumulate && scratch == nullptr) throw std::logic_error("a reduce_scatter over NCCL adds by way of scratch");
    communicator_->reduce_scatter(full, accumulate ? scratch : shard, shard_elements, stream);
    if (!accumulate) return;
    check_cuda(cuda::launch_add(shard, scratch, static_cast<std::int64_t>(shard_elements), stream), "launch add");
  }
  void all_reduce_sum(double* values, std::size_t count, cudaStream_t stream) override {
    communicator_->all_reduce_sum(values, count, stream);
  }
  void watched(const char* what, const std::function<void()>& work) override { communicator_->watched(what, work); }

 private:
  std::unique_ptr<NcclCommunicator> communicator_;
};

// The group's watch sees to ranks that connect, too: NCCL connects without blocking, and takes an abort meanwhile.
class NcclClique final : public CudaClique {
 public:
  NcclClique(const NcclApi& api, int world_size, NcclTimeouts timeouts) : group_(api, world_size, timeouts) {}

  std::unique_ptr<CudaCollectives> join(LocalRank rank) override {
    return std::make_unique<NcclCollectives>(group_.communicator(rank));
  }
  void abort(const std::string& reason) noexcept override { group_.abort(reason); }

 private:
  NcclGroup group_;
};

// --- One GPU for all ---

class SharedCollectives final : public CudaCollectives {
 public:
  explicit SharedCollectives(std::unique_ptr<SharedDeviceCommunicator> communicator)
      : communicator_(std::move(communicator)) {}

  void all_gather(DType dtype, const void* shard, void* full, std::size_t shard_elements,
                  cudaStream_t stream) override {
    communicator_->all_gather(dtype, shard, full, shard_elements, stream);
  }
  void reduce_scatter(const float* full, float* shard, float*, std::size_t shard_elements, bool accumulate,
                      cudaStream_t stream) override {
    communicator_->reduce_scatter(full, shard, shard_elements, accumulate, stream);
  }
  void all_reduce_sum(double* values, std::size_t count, cudaStream_t stream) override {
    communicator_->all_reduce_sum(values, count, stream);
  }
  // The hosts wait for each other in the collectives alone, with a timeout; nothing on the GPU does.
  void watched(const char*, const std::function<void()>& work) override { work(); }

 private:
  std::unique_ptr<SharedDeviceCommunicator> communicator_;
};

class SharedClique final : public CudaClique {
 public:
  SharedClique(SharedDevice& device, int world_size, std::chrono::nanoseconds timeout)
      : group_(device, world_size, timeout), to_abort_(group_.communicator(LocalRank{0})) {}

  std::unique_ptr<CudaCollectives> join(LocalRank rank) override {
    return std::make_unique<SharedCollectives>(group_.communicator(rank));
  }
  void abort(const std::string& reason) noexcept override { to_abort_->abort(reason); }

 private:
  SharedDeviceGroup group_;
  std::unique_ptr<SharedDeviceCommunicator> to_abort_;
};

class CudaSharedEvent final : public DeviceEvent {
 public:
  void record(void* stream) override {
    check_cuda(cudaEventRecord(event_.get(), static_cast<cudaStream_t>(stream)), "a collective: cudaEventRecord");
  }
  void hold_back(void* stream) override {
    check_cuda(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), event_.get(), 0),
               "a collective: cudaStreamWaitEvent");
  }

 private:
  UniqueEvent event_ = atl::make_event(/*host_waits=*/false);
};

class CudaSharedDevice final : public SharedDevice {
 public:
  std::unique_ptr<DeviceEvent> make_event() override { return std::make_unique<CudaSharedEvent>(); }
  void copy(void* to, const void* from, std::size_t bytes, void* stream) override {
    atl::copy(to, from, bytes, static_cast<cudaStream_t>(stream));
  }
  void add(float* sum, const float* values, std::size_t count, void* stream) override {
    check_cuda(cuda::launch_add(sum, values, static_cast<std::int64_t>(count), static_cast<cudaStream_t>(stream)),
               "launch add");
  }
  void add(double* sum, const double* values, std::size_t count, void* stream) override {
    check_cuda(
        cuda::launch_add_doubles(sum, values, static_cast<std::int64_t>(count), static_cast<cudaStream_t>(stream)),
        "launch add");
  }
};

}  // namespace

std::unique_ptr<CudaClique> make_lone_clique() { return std::make_unique<LoneClique>(); }
std::unique_ptr<CudaClique> make_nccl_clique(const NcclApi& api, int world_size, NcclTimeouts timeouts) {
  return std::make_unique<NcclClique>(api, world_size, timeouts);
}
std::unique_ptr<CudaClique> make_shared_clique(SharedDevice& device, int world_size, std::chrono::nanoseconds timeout) {
  return std::make_unique<SharedClique>(device, world_size, timeout);
}
std::unique_ptr<SharedDevice> make_cuda_shared_device() { return std::make_unique<CudaSharedDevice>(); }

}  // namespace atl
