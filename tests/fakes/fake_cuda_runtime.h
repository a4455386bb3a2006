// The CUDA runtime in host memory, for host code that is compiled against NVIDIA's headers and linked with this in
// place of the runtime: GPUs whose streams (fake_stream.h) do what is enqueued late and out of step, on threads of
// their own. Memory of a GPU is host memory, filled with NaN bytes when it is taken, that copies must stay inside of. A
// test owns one, at a time; it outlives what is made of it. Any thread.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/base/mutex.h"
#include "tests/fakes/fake_stream.h"

namespace atl::test {

struct FakeCudaOptions {
  int gpus = 1;
  std::size_t gpu_bytes = std::size_t{1} << 30;  // of each
  std::uint64_t seed = 1;
  std::chrono::microseconds most_delay{30};  // before each thing that a stream does
  int driver = 13000;                        // the CUDA that it knows; 0: there is none
};

class FakeCuda {
 public:
  explicit FakeCuda(FakeCudaOptions options = {});
  ~FakeCuda();
  FakeCuda(const FakeCuda&) = delete;
  FakeCuda& operator=(const FakeCuda&) = delete;

  struct Counts {
    int allocations = 0;  // of either kind, ever
    int frees = 0;
    int host_waits = 0;  // for a stream or an event
    int launches = 0;
    int live_allocations = 0;
    int live_streams = 0;
    int live_events = 0;
  };
  Counts counts() const;

  // The nth call of this name from now on (from 1) fails.
  void fail(const std::string& call, int nth, cudaError_t error);
  // Streams do nothing until they are let go.
  void hold_streams();
  void let_streams_go();

  // What a kernel's launcher does: `kernel` on the stream, later.
  static cudaError_t launch(cudaStream_t stream, std::function<void()> kernel);
  // Whether all bytes are of one allocation on a GPU.
  static bool on_a_gpu(const void* pointer, std::size_t bytes);

  struct Event;
  struct Stream;

 private:
  friend struct FakeCudaCalls;
  struct Allocation {
    std::unique_ptr<std::byte, void (*)(void*)> memory;
    std::size_t bytes = 0;
    int gpu = -1;  // pinned main memory
  };
  cudaError_t trouble(const char* call);
  const Allocation* find(const void* pointer, std::size_t bytes) const ATOLL_REQUIRES(mutex_);

  const FakeCudaOptions options_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool held_ ATOLL_GUARDED_BY(mutex_) = false;
  std::map<std::string, std::pair<int, cudaError_t>> faults_ ATOLL_GUARDED_BY(mutex_);
  std::map<const std::byte*, Allocation> allocations_ ATOLL_GUARDED_BY(mutex_);
  std::vector<std::size_t> used_ ATOLL_GUARDED_BY(mutex_);  // bytes of each GPU
  std::map<cudaEvent_t, std::shared_ptr<Event>> events_ ATOLL_GUARDED_BY(mutex_);
  std::map<cudaStream_t, std::shared_ptr<Stream>> streams_ ATOLL_GUARDED_BY(mutex_);
  std::uint64_t streams_made_ ATOLL_GUARDED_BY(mutex_) = 0;
  Counts counts_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace atl::test
