#include <cstdlib>
#include <cstring>

#include "tests/cuda_on_cpu/memory.h"
#include "tests/cuda_on_cpu/runtime_state.h"

namespace atl::cuda_on_cpu {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
std::size_t dynamic_limit = 48 * 1024;

cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

// Streams and events are counted off: nothing ever waits in one.
template <class Handle>
cudaError_t make_handle(Handle* handle) {
  *handle = reinterpret_cast<Handle>(std::malloc(1));
  return cudaSuccess;
}
template <class Handle>
cudaError_t end_handle(Handle handle) {
  std::free(handle);
  return cudaSuccess;
}

cudaError_t copy(void* to, const void* from, std::size_t bytes) {
  const MutexLock lock(launch_lock());
  if (!copy_stays_inside(to, bytes) || !copy_stays_inside(from, bytes)) return result(cudaErrorInvalidValue);
  if (bytes > 0) std::memmove(to, from, bytes);
  return cudaSuccess;
}

}  // namespace

Mutex& launch_lock() {
  static Mutex mutex;
  return mutex;
}
void set_last_error(cudaError_t error) { last_error = error; }
std::size_t dynamic_shared_limit() { return dynamic_limit; }

}  // namespace atl::cuda_on_cpu

using namespace atl::cuda_on_cpu;
using atl::MutexLock;

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
  }
  return "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }
cudaError_t cudaPeekAtLastError() { return last_error; }
cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return result(device == 0 ? cudaSuccess : cudaErrorInvalidDevice); }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device != 0) return result(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = 1024; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = static_cast<int>(kMostStaticShared); break;
    case cudaDevAttrWarpSize: *value = 32; break;
    case cudaDevAttrMultiProcessorCount: *value = 2; break;
    case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = static_cast<int>(kMostShared); break;
    default: return result(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  *free_bytes = *total_bytes = std::size_t{4} << 30;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  const MutexLock lock(launch_lock());
  *pointer = allocate_device(bytes);
  return result(*pointer == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}
cudaError_t cudaFree(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  const MutexLock lock(launch_lock());
  return result(free_device(pointer) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) { return cudaMalloc(pointer, bytes); }
cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) { return cudaMalloc(pointer, bytes); }
cudaError_t cudaFreeHost(void* pointer) { return cudaFree(pointer); }
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) { return copy(to, from, bytes); }
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
  return copy(to, from, bytes);
}
cudaError_t cudaMemset(void* to, int value, std::size_t bytes) { return cudaMemsetAsync(to, value, bytes, nullptr); }
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
  const MutexLock lock(launch_lock());
  if (!copy_stays_inside(to, bytes)) return result(cudaErrorInvalidValue);
  if (bytes > 0) std::memset(to, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return make_handle(stream); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return make_handle(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return end_handle(stream); }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t* event) { return make_handle(event); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return make_handle(event); }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return end_handle(event); }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || static_cast<std::size_t>(value) > kMostShared) return result(cudaErrorInvalidValue);
  dynamic_limit = std::max(dynamic_limit, static_cast<std::size_t>(value));
  return cudaSuccess;
}
