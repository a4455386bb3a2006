#include "tests/fakes/fake_cuda_runtime.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "net/base/deadline.h"

namespace atl::test {
namespace {

constexpr std::size_t kAlignment = 256;  // of cudaMalloc

std::atomic<FakeCuda*> the_runtime = nullptr;
thread_local int current_gpu = 0;
thread_local cudaError_t last_error = cudaSuccess;

cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

}  // namespace

// The stream's address is the one of its FakeStream, which the fake NCCL takes it for.
struct FakeCuda::Stream {
  Stream(int of_gpu, std::uint64_t seed, std::chrono::microseconds most_delay) : gpu(of_gpu), queue(seed, most_delay) {}
  cudaStream_t handle() { return reinterpret_cast<cudaStream_t>(&queue); }
  const int gpu;
  FakeStream queue;
};

// Shared with what is enqueued, which may outlive its handle.
struct FakeCuda::Event {
  Mutex mutex;
  CondVar changed;
  std::uint64_t recorded ATOLL_GUARDED_BY(mutex) = 0;
  std::uint64_t passed ATOLL_GUARDED_BY(mutex) = 0;
  Clock::time_point when ATOLL_GUARDED_BY(mutex){};

  std::uint64_t record() {
    const MutexLock lock(mutex);
    return ++recorded;
  }
  std::uint64_t last() {
    const MutexLock lock(mutex);
    return recorded;
  }
  void pass(std::uint64_t number) {
    const MutexLock lock(mutex);
    passed = std::max(passed, number);
    when = Clock::now();
    changed.notify_all();
  }
  void await(std::uint64_t number) {
    MutexLock lock(mutex);
    changed.wait(lock, [&]() ATOLL_REQUIRES(mutex) { return passed >= number; });
  }
};

// The runtime's functions, with the fake's inside.
struct FakeCudaCalls {
  static FakeCuda& runtime() {
    FakeCuda* fake = the_runtime;
    if (fake == nullptr) std::abort();  // a call of CUDA outside of the test
    return *fake;
  }

  static cudaError_t allocate(const char* call, void** pointer, std::size_t bytes, bool pinned) {
    FakeCuda& fake = runtime();
    *pointer = nullptr;
    if (const cudaError_t error = fake.trouble(call); error != cudaSuccess) return result(error);
    const MutexLock lock(fake.mutex_);
    const auto gpu = static_cast<std::size_t>(current_gpu);
    if (!pinned && fake.used_[gpu] + bytes > fake.options_.gpu_bytes) return result(cudaErrorMemoryAllocation);
    if (!pinned) fake.used_[gpu] += bytes;
    const std::size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    FakeCuda::Allocation made{
        {static_cast<std::byte*>(std::aligned_alloc(kAlignment, whole)), std::free}, bytes, pinned ? -1 : current_gpu};
    if (!made.memory) return result(cudaErrorMemoryAllocation);
    std::memset(made.memory.get(), 0xff, bytes);
    std::byte* memory = made.memory.get();
    *pointer = memory;
    fake.allocations_.emplace(memory, std::move(made));
    ++fake.counts_.allocations;
    ++fake.counts_.live_allocations;
    return cudaSuccess;
  }

  // As the runtime does, when nothing uses it any more.
  static cudaError_t release(void* pointer) {
    if (pointer == nullptr) return cudaSuccess;
    FakeCuda& fake = runtime();
    synchronize_all();
    const MutexLock lock(fake.mutex_);
    const auto found = fake.allocations_.find(static_cast<std::byte*>(pointer));
    if (found == fake.allocations_.end()) return result(cudaErrorInvalidValue);
    if (found->second.gpu >= 0) fake.used_[static_cast<std::size_t>(found->second.gpu)] -= found->second.bytes;
    fake.allocations_.erase(found);
    ++fake.counts_.frees;
    --fake.counts_.live_allocations;
    return cudaSuccess;
  }

  static void synchronize_all() {
    FakeCuda& fake = runtime();
    std::vector<std::shared_ptr<FakeCuda::Stream>> all;
    {
      const MutexLock lock(fake.mutex_);
      for (const auto& [handle, stream] : fake.streams_) all.push_back(stream);
    }
    for (const auto& stream : all) stream->queue.synchronize();
  }

  static std::shared_ptr<FakeCuda::Stream> stream_of(cudaStream_t stream) {
    FakeCuda& fake = runtime();
    const MutexLock lock(fake.mutex_);
    const auto found = fake.streams_.find(stream);
    return found == fake.streams_.end() ? nullptr : found->second;
  }
  static std::shared_ptr<FakeCuda::Event> event_of(cudaEvent_t event) {
    FakeCuda& fake = runtime();
    const MutexLock lock(fake.mutex_);
    const auto found = fake.events_.find(event);
    return found == fake.events_.end() ? nullptr : found->second;
  }

  static cudaError_t enqueue(cudaStream_t handle, std::function<void()> work) {
    const auto stream = stream_of(handle);
    if (!stream || stream->gpu != current_gpu) return result(cudaErrorInvalidResourceHandle);
    FakeCuda& fake = runtime();
    stream->queue.enqueue([&fake, work = std::move(work)] {
      {
        MutexLock lock(fake.mutex_);
        fake.changed_.wait(lock, [&]() ATOLL_REQUIRES(fake.mutex_) { return !fake.held_; });
      }
      work();
    });
    return cudaSuccess;
  }

  static cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    FakeCuda& fake = runtime();
    if (const cudaError_t error = fake.trouble("cudaMemcpyAsync"); error != cudaSuccess) return result(error);
    {
      const MutexLock lock(fake.mutex_);
      const auto* target = fake.find(to, bytes);
      const auto* source = fake.find(from, bytes);
      // From or to memory that is not pinned the copy would not be asynchronous.
      if (target == nullptr || source == nullptr) return result(cudaErrorInvalidValue);
      const bool fits = kind == cudaMemcpyHostToDevice   ? source->gpu < 0 && target->gpu >= 0
                        : kind == cudaMemcpyDeviceToHost ? source->gpu >= 0 && target->gpu < 0
                                                         : source->gpu >= 0 && target->gpu >= 0;
      if (!fits) return result(cudaErrorInvalidMemcpyDirection);
    }
    return enqueue(stream, [=] { std::memmove(to, from, bytes); });
  }

  static cudaError_t make_stream(cudaStream_t* stream) {
    FakeCuda& fake = runtime();
    const MutexLock lock(fake.mutex_);
    auto made = std::make_shared<FakeCuda::Stream>(current_gpu, fake.options_.seed + fake.streams_made_++,
                                                   fake.options_.most_delay);
    *stream = made->handle();
    fake.streams_.emplace(*stream, std::move(made));
    ++fake.counts_.live_streams;
    return cudaSuccess;
  }
  static cudaError_t end_stream(cudaStream_t handle) {
    FakeCuda& fake = runtime();
    std::shared_ptr<FakeCuda::Stream> ended;
    {
      const MutexLock lock(fake.mutex_);
      const auto found = fake.streams_.find(handle);
      if (found == fake.streams_.end()) return result(cudaErrorInvalidResourceHandle);
      ended = std::move(found->second);
      fake.streams_.erase(found);
      --fake.counts_.live_streams;
    }
    return cudaSuccess;  // its queue ends when all is done
  }

  static cudaError_t make_event(cudaEvent_t* event) {
    FakeCuda& fake = runtime();
    auto made = std::make_shared<FakeCuda::Event>();
    *event = reinterpret_cast<cudaEvent_t>(made.get());
    const MutexLock lock(fake.mutex_);
    fake.events_.emplace(*event, std::move(made));
    ++fake.counts_.live_events;
    return cudaSuccess;
  }
  static cudaError_t end_event(cudaEvent_t event) {
    FakeCuda& fake = runtime();
    const MutexLock lock(fake.mutex_);
    if (fake.events_.erase(event) == 0) return result(cudaErrorInvalidResourceHandle);
    --fake.counts_.live_events;
    return cudaSuccess;
  }
  static cudaError_t record(cudaEvent_t handle, cudaStream_t stream) {
    if (const cudaError_t error = runtime().trouble("cudaEventRecord"); error != cudaSuccess) return result(error);
    const auto event = event_of(handle);
    if (!event) return result(cudaErrorInvalidResourceHandle);
    const std::uint64_t number = event->record();
    return enqueue(stream, [event, number] { event->pass(number); });
  }
  static cudaError_t hold_back(cudaStream_t stream, cudaEvent_t handle) {
    const auto event = event_of(handle);
    if (!event) return result(cudaErrorInvalidResourceHandle);
    const std::uint64_t number = event->last();
    return enqueue(stream, [event, number] { event->await(number); });
  }
  static cudaError_t await_event(cudaEvent_t handle) {
    if (const cudaError_t error = runtime().trouble("cudaEventSynchronize"); error != cudaSuccess) return result(error);
    const auto event = event_of(handle);
    if (!event) return result(cudaErrorInvalidResourceHandle);
    note_wait();
    event->await(event->last());
    return cudaSuccess;
  }
  static cudaError_t elapsed(float* milliseconds, cudaEvent_t first, cudaEvent_t last) {
    const auto from = event_of(first), to = event_of(last);
    if (!from || !to) return result(cudaErrorInvalidResourceHandle);
    const auto time = [](FakeCuda::Event& event) -> std::optional<Clock::time_point> {
      const MutexLock lock(event.mutex);
      if (event.passed < event.recorded) return std::nullopt;
      return event.when;
    };
    const auto began = time(*from), ended = time(*to);
    if (!began || !ended) return result(cudaErrorNotReady);
    *milliseconds = std::chrono::duration<float, std::milli>(*ended - *began).count();
    return cudaSuccess;
  }
  static cudaError_t await_stream(cudaStream_t handle) {
    if (const cudaError_t error = runtime().trouble("cudaStreamSynchronize"); error != cudaSuccess)
      return result(error);
    const auto stream = stream_of(handle);
    if (!stream) return result(cudaErrorInvalidResourceHandle);
    note_wait();
    stream->queue.synchronize();
    return cudaSuccess;
  }
  static void note_wait() {
    FakeCuda& fake = runtime();
    const MutexLock lock(fake.mutex_);
    ++fake.counts_.host_waits;
  }
  static int gpus() { return runtime().options_.gpus; }
  static int driver() { return runtime().options_.driver; }
  static cudaError_t failing(const char* call) { return result(runtime().trouble(call)); }
  static cudaError_t memory(std::size_t* unused, std::size_t* total) {
    FakeCuda& fake = runtime();
    const MutexLock lock(fake.mutex_);
    *total = fake.options_.gpu_bytes;
    *unused = *total - fake.used_[static_cast<std::size_t>(current_gpu)];
    return cudaSuccess;
  }
};

FakeCuda::FakeCuda(FakeCudaOptions options) : options_(options), used_(static_cast<std::size_t>(options.gpus), 0) {
  the_runtime = this;
  current_gpu = 0;
}
FakeCuda::~FakeCuda() {
  let_streams_go();
  std::map<cudaStream_t, std::shared_ptr<Stream>> streams;
  {
    const MutexLock lock(mutex_);
    streams.swap(streams_);
  }
  streams.clear();
  the_runtime = nullptr;
}

FakeCuda::Counts FakeCuda::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}
void FakeCuda::fail(const std::string& call, int nth, cudaError_t error) {
  const MutexLock lock(mutex_);
  faults_[call] = {nth, error};
}
void FakeCuda::hold_streams() {
  const MutexLock lock(mutex_);
  held_ = true;
}
void FakeCuda::let_streams_go() {
  const MutexLock lock(mutex_);
  held_ = false;
  changed_.notify_all();
}

cudaError_t FakeCuda::trouble(const char* call) {
  const MutexLock lock(mutex_);
  const auto found = faults_.find(call);
  if (found == faults_.end() || --found->second.first > 0) return cudaSuccess;
  const cudaError_t error = found->second.second;
  faults_.erase(found);
  return error;
}

const FakeCuda::Allocation* FakeCuda::find(const void* pointer, std::size_t bytes) const {
  const auto* first = static_cast<const std::byte*>(pointer);
  auto after = allocations_.upper_bound(first);
  if (after == allocations_.begin()) return nullptr;
  const auto& [base, allocation] = *std::prev(after);
  return static_cast<std::size_t>(first - base) + bytes <= allocation.bytes ? &allocation : nullptr;
}

bool FakeCuda::on_a_gpu(const void* pointer, std::size_t bytes) {
  FakeCuda& fake = FakeCudaCalls::runtime();
  const MutexLock lock(fake.mutex_);
  const Allocation* allocation = fake.find(pointer, bytes);
  return allocation != nullptr && allocation->gpu >= 0;
}

cudaError_t FakeCuda::launch(cudaStream_t stream, std::function<void()> kernel) {
  FakeCuda& fake = FakeCudaCalls::runtime();
  if (const cudaError_t error = fake.trouble("launch"); error != cudaSuccess) return result(error);
  {
    const MutexLock lock(fake.mutex_);
    ++fake.counts_.launches;
  }
  return FakeCudaCalls::enqueue(stream, std::move(kernel));
}

}  // namespace atl::test

using atl::test::FakeCudaCalls;

extern "C" {

const char* CUDARTAPI cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorInvalidMemcpyDirection: return "cudaErrorInvalidMemcpyDirection";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    default: return "another error";
  }
}
const char* CUDARTAPI cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : cudaGetErrorName(error);
}
cudaError_t CUDARTAPI cudaGetLastError() { return std::exchange(atl::test::last_error, cudaSuccess); }
cudaError_t CUDARTAPI cudaGetDeviceCount(int* count) {
  *count = FakeCudaCalls::gpus();
  return FakeCudaCalls::failing("cudaGetDeviceCount");
}
cudaError_t CUDARTAPI cudaDriverGetVersion(int* version) {
  *version = FakeCudaCalls::driver();
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "Fake GPU");
  return FakeCudaCalls::failing("cudaGetDeviceProperties");
}
cudaError_t CUDARTAPI cudaSetDevice(int gpu) {
  if (gpu < 0 || gpu >= FakeCudaCalls::gpus()) return atl::test::result(cudaErrorInvalidDevice);
  atl::test::current_gpu = gpu;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaGetDevice(int* gpu) {
  *gpu = atl::test::current_gpu;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaMemGetInfo(std::size_t* unused, std::size_t* total) {
  return FakeCudaCalls::memory(unused, total);
}
cudaError_t CUDARTAPI cudaMalloc(void** pointer, std::size_t bytes) {
  return FakeCudaCalls::allocate("cudaMalloc", pointer, bytes, false);
}
cudaError_t CUDARTAPI cudaFree(void* pointer) { return FakeCudaCalls::release(pointer); }
cudaError_t CUDARTAPI cudaMallocHost(void** pointer, std::size_t bytes) {
  return FakeCudaCalls::allocate("cudaMallocHost", pointer, bytes, true);
}
cudaError_t CUDARTAPI cudaFreeHost(void* pointer) { return FakeCudaCalls::release(pointer); }
cudaError_t CUDARTAPI cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
  return FakeCudaCalls::copy(to, from, bytes, kind, stream);
}
cudaError_t CUDARTAPI cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  if (!atl::test::FakeCuda::on_a_gpu(to, bytes)) return atl::test::result(cudaErrorInvalidValue);
  return FakeCudaCalls::enqueue(stream, [=] { std::memset(to, value, bytes); });
}
cudaError_t CUDARTAPI cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  return FakeCudaCalls::make_stream(stream);
}
cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t stream) { return FakeCudaCalls::end_stream(stream); }
cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t stream) { return FakeCudaCalls::await_stream(stream); }
cudaError_t CUDARTAPI cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return FakeCudaCalls::hold_back(stream, event);
}
cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return FakeCudaCalls::make_event(event);
}
cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t event) { return FakeCudaCalls::end_event(event); }
cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return FakeCudaCalls::record(event, stream);
}
cudaError_t CUDARTAPI cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t last) {
  return FakeCudaCalls::elapsed(milliseconds, first, last);
}
cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t event) { return FakeCudaCalls::await_event(event); }

// Of these the trainer's sources hold the addresses alone, for cuDNN's front end.
cudaError_t CUDARTAPI cudaRuntimeGetVersion(int*) { return cudaErrorNotSupported; }
cudaError_t CUDARTAPI cudaDeviceGetAttribute(int*, cudaDeviceAttr, int) { return cudaErrorNotSupported; }
cudaError_t CUDARTAPI cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus*) { return cudaErrorNotSupported; }
cudaError_t CUDARTAPI cudaPointerGetAttributes(cudaPointerAttributes*, const void*) { return cudaErrorNotSupported; }
cudaError_t CUDARTAPI cudaDeviceSynchronize() { return cudaErrorNotSupported; }
cudaError_t CUDARTAPI cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaErrorNotSupported; }
cudaError_t CUDARTAPI cudaEventCreate(cudaEvent_t*) { return cudaErrorNotSupported; }
cudaError_t CUDARTAPI cudaStreamCreate(cudaStream_t*) { return cudaErrorNotSupported; }
cudaError_t CUDARTAPI cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*,
                                               cudaGraph_t*, const cudaGraphNode_t**, const cudaGraphEdgeData**,
                                               std::size_t*) {
  return cudaErrorNotSupported;
}
cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion(const char*, void**, unsigned, unsigned long long,
                                                       cudaDriverEntryPointQueryResult*) {
  return cudaErrorNotSupported;
}

}  // extern "C"
