// Values in the memory of a device, a GPU's or the emulator's.
#pragma once

#include <cuda_runtime_api.h>

#include <QtTest>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace atl {

// On the device, `shift` elements behind an address that is aligned to 256 bytes.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& host, std::size_t shift = 0) : count_(host.size()), shift_(shift) {
    void* pointer = nullptr;
    // No more than that: who reads or writes behind it is to be seen.
    const std::size_t elements = std::max<std::size_t>(count_ + shift_, 1);
    if (cudaMalloc(&pointer, elements * sizeof(T)) != cudaSuccess) qFatal("cudaMalloc failed");
    data_ = static_cast<T*>(pointer);
    (void)cudaMemcpy(get(), host.data(), count_ * sizeof(T), cudaMemcpyHostToDevice);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { (void)cudaFree(data_); }
  T* get() const { return data_ + shift_; }
  std::vector<T> to_host() const {
    std::vector<T> host(count_);
    if (cudaMemcpy(host.data(), get(), count_ * sizeof(T), cudaMemcpyDeviceToHost) != cudaSuccess) {
      qFatal("copy from the device failed: %s", cudaGetErrorString(cudaGetLastError()));
    }
    return host;
  }

 private:
  std::size_t count_;
  std::size_t shift_;
  T* data_ = nullptr;
};

}  // namespace atl
