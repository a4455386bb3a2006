// What a CUDA device asks of the collectives with the other local ranks. Enqueued on a stream, and done in its order.
// Owned by the device, used by its thread, but for abort(). Functions throw CollectiveAborted where it was another rank
// that failed, and std::runtime_error where it was this one.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "net/base/id.h"
#include "net/step/tensor.h"
#include "trainer/fsdp/nccl_communicator.h"
#include "trainer/fsdp/shared_device_communicator.h"

namespace atl {

class CudaCollectives {
 public:
  virtual ~CudaCollectives() = default;

  virtual void all_gather(DType dtype, const void* shard, void* full, std::size_t shard_elements,
                          cudaStream_t stream) = 0;
  // scratch: as large as the shard; nullptr where there is none.
  virtual void reduce_scatter(const float* full, float* shard, float* scratch, std::size_t shard_elements,
                              bool accumulate, cudaStream_t stream) = 0;
  virtual void all_reduce_sum(double* values, std::size_t count, cudaStream_t stream) = 0;

  // Whatever the host does that can block on the other ranks (NcclCommunicator::watched).
  virtual void watched(const char* what, const std::function<void()>& work) = 0;
};

// Where an island's ranks meet, once: after an abort another one is made. Any thread.
class CudaClique {
 public:
  virtual ~CudaClique() = default;
  // On the rank's thread, with its GPU current; every rank's at once. It goes after that.
  virtual std::unique_ptr<CudaCollectives> join(LocalRank rank) = 0;
  // Also of ranks that are joining.
  virtual void abort(const std::string& reason) noexcept = 0;
};

// A rank alone.
std::unique_ptr<CudaClique> make_lone_clique();
// A GPU each.
std::unique_ptr<CudaClique> make_nccl_clique(const NcclApi& api, int world_size, NcclTimeouts timeouts);
// All on one GPU, which is `device` and outlives this.
std::unique_ptr<CudaClique> make_shared_clique(SharedDevice& device, int world_size, std::chrono::nanoseconds timeout);

// The current device of whoever calls it.
std::unique_ptr<SharedDevice> make_cuda_shared_device();

}  // namespace atl
