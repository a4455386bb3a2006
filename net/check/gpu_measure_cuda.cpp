#include "net/check/gpu_measure.h"

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "net/base/gpu_libraries.h"
#include "net/base/mutex.h"

namespace atl {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kMatrix = 8192;
constexpr std::size_t kMatrixElements = std::size_t{kMatrix} * kMatrix;
constexpr std::size_t kWorkspaceBytes = 64u << 20;
constexpr int kChecked = 64;  // entries of the product that are computed again on the host
constexpr std::size_t kCopyBytes = 1u << 30;
constexpr std::size_t kPinnedBytes = 256u << 20;
constexpr std::size_t kReduceElements = (1u << 30) / sizeof(float);
constexpr int kRepeats = 20;

// A call that failed, in words. Never leaves this file.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw Failure(fmt::format("{}: {}", what, cudaGetErrorString(error)));
}
void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Failure(fmt::format("{}: cuBLASLt status {}", what, static_cast<int>(status)));
}

void say(const nlohmann::json& line) {
  static Mutex mutex;  // one line at a time, whichever card's thread speaks
  const MutexLock lock(mutex);
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

// cuBLASLt and NCCL are opened when they are needed: asking NVML must work where they are not installed.
class Library {
 public:
  explicit Library(GpuLibrary library) : library_(open(library)) {}

  template <class Function>
  Function* function(const char* name) const {
    Function* found = library_.function<Function>(name);
    if (found == nullptr) throw Failure(fmt::format("{} lacks {}", library_.path(), name));
    return found;
  }

 private:
  static OpenLibrary open(GpuLibrary library) {
    auto opened = open_gpu_library(library);
    if (!opened.ok()) throw Failure(opened.error().message);
    return std::move(*opened);
  }

  OpenLibrary library_;
};

struct DeviceFree {
  void operator()(void* memory) const noexcept { (void)cudaFree(memory); }
};
struct HostFree {
  void operator()(void* memory) const noexcept { (void)cudaFreeHost(memory); }
};
struct StreamFree {
  void operator()(cudaStream_t stream) const noexcept { (void)cudaStreamDestroy(stream); }
};
struct EventFree {
  void operator()(cudaEvent_t event) const noexcept { (void)cudaEventDestroy(event); }
};
using DeviceMemory = std::unique_ptr<void, DeviceFree>;
using PinnedMemory = std::unique_ptr<void, HostFree>;
using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, StreamFree>;
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, EventFree>;

DeviceMemory device_memory(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "allocate GPU memory");
  return DeviceMemory(memory);
}
Stream new_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "make a stream");
  return Stream(stream);
}
Event new_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "make an event");
  return Event(event);
}

// Seconds on the card that `work` takes.
template <class Work>
double timed(cudaStream_t stream, Work work) {
  const Event begin = new_event(), end = new_event();
  check(cudaEventRecord(begin.get(), stream), "record an event");
  work();
  check(cudaEventRecord(end.get(), stream), "record an event");
  check(cudaEventSynchronize(end.get()), "wait for the GPU");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "read the GPU's time");
  return std::max(1e-9, static_cast<double>(milliseconds) / 1e3);
}

// Small whole numbers divided by 8: exact in bf16, and the product of two entries exact in fp32.
std::vector<__nv_bfloat16> pattern(unsigned seed) {
  std::vector<__nv_bfloat16> values(kMatrixElements);
  unsigned state = seed;
  for (__nv_bfloat16& value : values) {
    state = state * 1664525u + 1013904223u;
    value = __float2bfloat16(static_cast<float>(static_cast<int>(state >> 28) - 8) / 8.0f);
  }
  return values;
}

// C = A^T B in bf16 with fp32 sums (column-major, as cuBLAS has it).
class MatrixMultiply {
 public:
  MatrixMultiply()
      : library_(GpuLibrary::kCublasLt),
        create_(library_.function<decltype(cublasLtCreate)>("cublasLtCreate")),
        destroy_(library_.function<decltype(cublasLtDestroy)>("cublasLtDestroy")),
        matmul_(library_.function<decltype(cublasLtMatmul)>("cublasLtMatmul")),
        a_(device_memory(kMatrixElements * 2)),
        b_(device_memory(kMatrixElements * 2)),
        c_(device_memory(kMatrixElements * 2)),
        workspace_(device_memory(kWorkspaceBytes)),
        host_a_(pattern(1)),
        host_b_(pattern(2)) {
    check(create_(&handle_), "start cuBLASLt");
    const auto describe =
        library_.function<decltype(cublasLtMatmulDescInit_internal)>("cublasLtMatmulDescInit_internal");
    const auto set = library_.function<decltype(cublasLtMatmulDescSetAttribute)>("cublasLtMatmulDescSetAttribute");
    const auto layout =
        library_.function<decltype(cublasLtMatrixLayoutInit_internal)>("cublasLtMatrixLayoutInit_internal");
    check(describe(&operation_, sizeof operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describe the multiplication");
    const cublasOperation_t transposed = CUBLAS_OP_T;
    check(set(&operation_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed), "describe the multiplication");
    check(layout(&square_, sizeof square_, CUDA_R_16BF, kMatrix, kMatrix, kMatrix), "describe a matrix");
    choose_algorithm();
    const std::size_t bytes = kMatrixElements * 2;
    check(cudaMemcpy(a_.get(), host_a_.data(), bytes, cudaMemcpyHostToDevice), "copy a matrix");
    check(cudaMemcpy(b_.get(), host_b_.data(), bytes, cudaMemcpyHostToDevice), "copy a matrix");
  }
  ~MatrixMultiply() { (void)destroy_(handle_); }
  MatrixMultiply(const MatrixMultiply&) = delete;
  MatrixMultiply& operator=(const MatrixMultiply&) = delete;

  static constexpr double kFlops = 2.0 * kMatrix * kMatrix * kMatrix;

  void launch(cudaStream_t stream) {
    const float one = 1, zero = 0;
    check(matmul_(handle_, &operation_, &one, a_.get(), &square_, b_.get(), &square_, &zero, c_.get(), &square_,
                  c_.get(), &square_, &algorithm_, workspace_.get(), kWorkspaceBytes, stream),
          "multiply matrices");
  }

  // Some entries, computed again on the host. The sum of exact products is exact in double; the card rounds its fp32
  // sum (8192 terms: 1e-3 of the largest possible term is ample) and then to bf16 (1/256).
  bool is_correct() const {
    std::vector<__nv_bfloat16> column(kMatrix);
    for (int i = 0; i < kChecked; ++i) {
      const std::size_t row = (static_cast<std::size_t>(i) * 2654435761u) % kMatrix;
      const std::size_t col = (static_cast<std::size_t>(i) * 40503u + 17) % kMatrix;
      double sum = 0;
      for (std::size_t k = 0; k < kMatrix; ++k) {
        sum += static_cast<double>(__bfloat162float(host_a_[row * kMatrix + k])) *
               static_cast<double>(__bfloat162float(host_b_[col * kMatrix + k]));
      }
      __nv_bfloat16 got;
      const auto* at = static_cast<const __nv_bfloat16*>(c_.get()) + col * kMatrix + row;
      check(cudaMemcpy(&got, at, sizeof got, cudaMemcpyDeviceToHost), "read the product");
      if (!(std::abs(static_cast<double>(__bfloat162float(got)) - sum) <= 1e-3 + std::abs(sum) / 128)) return false;
    }
    return true;
  }

 private:
  void choose_algorithm() {
    const auto create =
        library_.function<decltype(cublasLtMatmulPreferenceInit_internal)>("cublasLtMatmulPreferenceInit_internal");
    const auto set =
        library_.function<decltype(cublasLtMatmulPreferenceSetAttribute)>("cublasLtMatmulPreferenceSetAttribute");
    const auto ask = library_.function<decltype(cublasLtMatmulAlgoGetHeuristic)>("cublasLtMatmulAlgoGetHeuristic");
    cublasLtMatmulPreferenceOpaque_t preference{};
    check(create(&preference, sizeof preference), "choose an algorithm");
    const std::size_t workspace = kWorkspaceBytes;
    check(set(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace),
          "choose an algorithm");
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    check(ask(handle_, &operation_, &square_, &square_, &square_, &square_, &preference, 1, &best, &found),
          "choose an algorithm");
    if (found == 0) throw Failure("cuBLASLt has no algorithm for bf16 on this card");
    algorithm_ = best.algo;
  }

  const Library library_;
  decltype(cublasLtCreate)* create_;
  decltype(cublasLtDestroy)* destroy_;
  decltype(cublasLtMatmul)* matmul_;
  const DeviceMemory a_, b_, c_, workspace_;
  const std::vector<__nv_bfloat16> host_a_, host_b_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDescOpaque_t operation_{};
  cublasLtMatrixLayoutOpaque_t square_{};
  cublasLtMatmulAlgo_t algorithm_{};
};

void measure_bf16(int gpu, double seconds) {
  const Stream stream = new_stream();
  MatrixMultiply multiply;
  multiply.launch(stream.get());
  check(cudaStreamSynchronize(stream.get()), "wait for the GPU");
  const auto end = SteadyClock::now() + std::chrono::duration<double>(seconds);
  double took = 0, flops = 0;
  do {
    took += timed(stream.get(), [&] {
      for (int i = 0; i < kRepeats; ++i) multiply.launch(stream.get());
    });
    flops += kRepeats * MatrixMultiply::kFlops;
  } while (SteadyClock::now() < end);
  say({{"gpu", gpu}, {"bf16_flops", flops / took}, {"bf16_correct", multiply.is_correct()}});
}

void measure_memory(int gpu) {
  const Stream stream = new_stream();
  const DeviceMemory from = device_memory(kCopyBytes), to = device_memory(kCopyBytes);
  const auto copy = [&] {
    check(cudaMemcpyAsync(to.get(), from.get(), kCopyBytes, cudaMemcpyDeviceToDevice, stream.get()),
          "copy on the card");
  };
  timed(stream.get(), copy);
  const double took = timed(stream.get(), [&] {
    for (int i = 0; i < kRepeats; ++i) copy();
  });
  say({{"gpu", gpu}, {"hbm_bytes_per_second", 2.0 * kRepeats * static_cast<double>(kCopyBytes) / took}});
}

void measure_pcie(int gpu) {
  const Stream stream = new_stream();
  const DeviceMemory to = device_memory(kPinnedBytes);
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, kPinnedBytes, cudaHostAllocDefault), "pin host memory");
  const PinnedMemory from(memory);
  const auto copy = [&] {
    check(cudaMemcpyAsync(to.get(), from.get(), kPinnedBytes, cudaMemcpyHostToDevice, stream.get()),
          "copy to the card");
  };
  timed(stream.get(), copy);
  const double took = timed(stream.get(), [&] {
    for (int i = 0; i < kRepeats; ++i) copy();
  });
  say({{"gpu", gpu}, {"pcie_bytes_per_second", kRepeats * static_cast<double>(kPinnedBytes) / took}});
}

// A communicator over all cards of this process, a stream and a buffer on each.
class AllReduce {
 public:
  explicit AllReduce(int gpus)
      : library_(GpuLibrary::kNccl),
        all_reduce_(library_.function<decltype(ncclAllReduce)>("ncclAllReduce")),
        group_begin_(library_.function<decltype(ncclGroupStart)>("ncclGroupStart")),
        group_end_(library_.function<decltype(ncclGroupEnd)>("ncclGroupEnd")),
        destroy_(library_.function<decltype(ncclCommDestroy)>("ncclCommDestroy")),
        words_(library_.function<decltype(ncclGetErrorString)>("ncclGetErrorString")),
        communicators_(static_cast<std::size_t>(gpus)) {
    const auto start = library_.function<decltype(ncclCommInitAll)>("ncclCommInitAll");
    check_nccl(start(communicators_.data(), gpus, nullptr), "connect the cards");
    for (int gpu = 0; gpu < gpus; ++gpu) {
      check(cudaSetDevice(gpu), "choose a card");
      streams_.push_back(new_stream());
      buffers_.push_back(device_memory(kReduceElements * sizeof(float)));
      results_.push_back(device_memory(kReduceElements * sizeof(float)));
      // Bytes 0x3f800000 would need a kernel; 0x3e3e3e3e is 0.18578... in every element, on every card.
      check(cudaMemset(buffers_.back().get(), 0x3e, kReduceElements * sizeof(float)), "fill a buffer");
    }
  }
  ~AllReduce() {
    for (ncclComm_t communicator : communicators_) (void)destroy_(communicator);
  }
  AllReduce(const AllReduce&) = delete;
  AllReduce& operator=(const AllReduce&) = delete;

  void run() {
    check_nccl(group_begin_(), "all-reduce");
    for (std::size_t i = 0; i < communicators_.size(); ++i) {
      check_nccl(all_reduce_(buffers_[i].get(), results_[i].get(), kReduceElements, ncclFloat, ncclSum,
                             communicators_[i], streams_[i].get()),
                 "all-reduce");
    }
    check_nccl(group_end_(), "all-reduce");
  }
  void wait() {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      check(cudaSetDevice(static_cast<int>(i)), "choose a card");
      check(cudaStreamSynchronize(streams_[i].get()), "wait for the all-reduce");
    }
  }
  // First, last and one element in between, on every card.
  bool is_correct() const {
    float one = 0;
    const std::uint32_t bits = 0x3e3e3e3eu;
    std::memcpy(&one, &bits, sizeof one);
    const double wanted = static_cast<double>(one) * static_cast<double>(buffers_.size());
    for (const DeviceMemory& result : results_) {
      for (const std::size_t at : {std::size_t{0}, kReduceElements / 3, kReduceElements - 1}) {
        float got = 0;
        check(cudaMemcpy(&got, static_cast<const float*>(result.get()) + at, sizeof got, cudaMemcpyDeviceToHost),
              "read the sum");
        if (!(std::abs(got - wanted) <= 1e-4 * wanted)) return false;
      }
    }
    return true;
  }

 private:
  void check_nccl(ncclResult_t result, const char* what) const {
    if (result != ncclSuccess) throw Failure(fmt::format("{}: {}", what, words_(result)));
  }

  const Library library_;
  decltype(ncclAllReduce)* all_reduce_;
  decltype(ncclGroupStart)* group_begin_;
  decltype(ncclGroupEnd)* group_end_;
  decltype(ncclCommDestroy)* destroy_;
  decltype(ncclGetErrorString)* words_;
  std::vector<ncclComm_t> communicators_;
  std::vector<Stream> streams_;
  std::vector<DeviceMemory> buffers_, results_;
};

void measure_all_reduce(int gpus) {
  AllReduce reduce(gpus);
  for (int i = 0; i < 3; ++i) reduce.run();
  reduce.wait();
  const auto begin = SteadyClock::now();
  for (int i = 0; i < kRepeats; ++i) reduce.run();
  reduce.wait();
  const double took = std::chrono::duration<double>(SteadyClock::now() - begin).count() / kRepeats;
  // Bus bandwidth as nccl-tests have it: what each card's link carries of 2 (N - 1) / N x the bytes.
  const double bytes = 2.0 * (gpus - 1) / gpus * static_cast<double>(kReduceElements) * sizeof(float);
  say({{"all_reduce_bytes_per_second", bytes / took}, {"all_reduce_correct", reduce.is_correct()}});
}

// `measure` on all cards at once, a thread each: heat and power are then those of training.
template <class Measure>
void on_all(int gpus, Measure measure) {
  std::vector<std::optional<std::string>> failures(static_cast<std::size_t>(gpus));
  {
    std::vector<std::jthread> threads;
    threads.reserve(failures.size());
    for (int gpu = 0; gpu < gpus; ++gpu) {
      threads.emplace_back([&, gpu] {
        try {
          check(cudaSetDevice(gpu), "choose a card");
          measure(gpu);
        } catch (const std::exception& error) {
          failures[static_cast<std::size_t>(gpu)] = fmt::format("GPU {}: {}", gpu, error.what());
        }
      });
    }
  }
  for (const auto& failure : failures) {
    if (failure) throw Failure(*failure);
  }
}

}  // namespace

int measure_gpus_with_cuda(double matmul_seconds) {
  try {
    int gpus = 0;
    check(cudaGetDeviceCount(&gpus), "count the GPUs");
    say({{"begin", "gpu.bf16"}});
    on_all(gpus, [&](int gpu) { measure_bf16(gpu, matmul_seconds); });
    say({{"begin", "gpu.hbm"}});
    on_all(gpus, measure_memory);
    say({{"begin", "gpu.pcie"}});
    for (int gpu = 0; gpu < gpus; ++gpu) {  // one after the other: cards may share a switch
      check(cudaSetDevice(gpu), "choose a card");
      measure_pcie(gpu);
    }
    say({{"begin", "gpu.nvlink"}});
    if (gpus > 1) measure_all_reduce(gpus);
    say({{"done", true}});
    return 0;
  } catch (const std::exception& error) {
    say({{"error", error.what()}});
    return 0;  // it was said
  }
}

}  // namespace atl
