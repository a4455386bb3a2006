#include "trainer/device/cuda_check.h"

#include <fmt/format.h>

#include <stdexcept>

namespace atl {
namespace {

std::string gigabytes(std::size_t bytes) { return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9); }

// What there is, in words; empty where CUDA does not say.
std::string free_memory() {
  int device = 0;
  std::size_t unused = 0, total = 0;
  if (cudaGetDevice(&device) != cudaSuccess || cudaMemGetInfo(&unused, &total) != cudaSuccess) return {};
  return fmt::format("; GPU {} has {} free of {}", device, gigabytes(unused), gigabytes(total));
}

}  // namespace

void throw_cuda(cudaError_t error, const std::string& what) {
  (void)cudaGetLastError();  // told here; not again by the next launch
  throw std::runtime_error(fmt::format("{}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error)));
}

UniqueStream make_stream(bool urgent) {
  int least = 0, greatest = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, urgent ? greatest : least),
             "cudaStreamCreateWithPriority");
  return UniqueStream(stream);
}

UniqueEvent make_event(bool host_waits) {
  cudaEvent_t event = nullptr;
  const unsigned flags = cudaEventDisableTiming | (host_waits ? cudaEventBlockingSync : 0u);
  check_cuda(cudaEventCreateWithFlags(&event, flags), "cudaEventCreateWithFlags");
  return UniqueEvent(event);
}

DeviceMemory make_device_memory(std::size_t bytes, const std::string& what) {
  if (bytes == 0) return nullptr;
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, bytes), [&] {
    return fmt::format("there is no memory for {} of {}{}: cudaMalloc", gigabytes(bytes), what, free_memory());
  });
  return DeviceMemory(static_cast<std::byte*>(memory));
}

PinnedMemory make_pinned_memory(std::size_t bytes, const std::string& what) {
  void* memory = nullptr;
  check_cuda(cudaMallocHost(&memory, bytes), [&] {
    return fmt::format("there is no pinned main memory for {} of {}: cudaMallocHost", gigabytes(bytes), what);
  });
  return PinnedMemory(static_cast<std::byte*>(memory));
}

}  // namespace atl
