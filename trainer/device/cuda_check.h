// CUDA's calls with their failures thrown, and owners of what they make. Host code; each on a thread whose current
// device is the one that it is made for.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>

namespace atl {

// std::runtime_error: "what: CUDA's reason".
[[noreturn]] void throw_cuda(cudaError_t error, const std::string& what);

// `what`: a text, or a function that makes one, called only where there is something to say.
template <class What>
void check_cuda(cudaError_t error, const What& what) {
  if (error == cudaSuccess) return;
  if constexpr (std::is_invocable_v<What>) {
    throw_cuda(error, what());
  } else {
    throw_cuda(error, what);
  }
}

namespace detail {
struct StreamDeleter {
  void operator()(cudaStream_t stream) const noexcept { (void)cudaStreamDestroy(stream); }
};
struct EventDeleter {
  void operator()(cudaEvent_t event) const noexcept { (void)cudaEventDestroy(event); }
};
struct DeviceDeleter {
  void operator()(std::byte* memory) const noexcept { (void)cudaFree(memory); }
};
struct PinnedDeleter {
  void operator()(std::byte* memory) const noexcept { (void)cudaFreeHost(memory); }
};
}  // namespace detail

using UniqueStream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, detail::StreamDeleter>;
using UniqueEvent = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, detail::EventDeleter>;
using DeviceMemory = std::unique_ptr<std::byte, detail::DeviceDeleter>;
using PinnedMemory = std::unique_ptr<std::byte, detail::PinnedDeleter>;

// That waits for no other stream. `urgent`: its kernels go before those of others that are not begun.
UniqueStream make_stream(bool urgent);
// Without times. `host_waits`: a host's wait for it gives the processor away.
UniqueEvent make_event(bool host_waits);
// `what` it is for. Where there is not so much, the message says how much is free.
DeviceMemory make_device_memory(std::size_t bytes, const std::string& what);
// The host's, which the GPU reads and writes while the host does something else.
PinnedMemory make_pinned_memory(std::size_t bytes, const std::string& what);

}  // namespace atl
