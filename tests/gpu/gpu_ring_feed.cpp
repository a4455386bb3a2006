// How values come from a GPU into the ring's bytes: copied as fp32 into pinned memory and encoded by all of the host's
// processors, piece by piece as they come, or encoded on the GPU and then copied, a quarter as much. The bytes are
// compared first. Prints a JSON object; speeds are of the fp32 values. Fails where bytes differ.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "kernels/wire_codec.h"
#include "kernels/wire_codec_cuda.h"
#include "tests/gpu/machine.h"
#include "trainer/device/cpu_library.h"
#include "trainer/device/cuda_check.h"

namespace {

using namespace atl;
using namespace atl::gpu;

constexpr WireFormat kFormat = WireFormat::kInt8Block;

// One GPU's values on their way. The pieces are whole blocks: as many as keep the copies and all processors busy.
class RingFeed {
 public:
  RingFeed(std::int64_t numel, std::int64_t pieces) : numel_(numel), pieces_(pieces) {
    for (std::int64_t i = 0; i < pieces_; ++i) copied_.push_back(make_event(false));
    std::vector<float> values(static_cast<std::size_t>(numel_));
    std::uint32_t state = 1;  // uniform in [-1, 1)
    for (float& value : values) {
      state = state * 1'664'525u + 1'013'904'223u;
      value = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f;
    }
    std::memcpy(pinned_values_.get(), values.data(), value_bytes());
    check_cuda(cudaMemcpyAsync(values_.get(), pinned_values_.get(), value_bytes(), cudaMemcpyHostToDevice, stream()),
               "cudaMemcpyAsync");
    check_cuda(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
    std::memset(pinned_values_.get(), 0, value_bytes());
  }

  std::size_t value_bytes() const { return static_cast<std::size_t>(numel_) * sizeof(float); }

  void by_host() {
    for (std::int64_t i = 0; i < pieces_; ++i) {
      const std::int64_t first = begin(i), count = begin(i + 1) - first;
      check_cuda(cudaMemcpyAsync(pinned(first), device(first), static_cast<std::size_t>(count) * sizeof(float),
                                 cudaMemcpyDeviceToHost, stream()),
                 "cudaMemcpyAsync");
      check_cuda(cudaEventRecord(copied(i), stream()), "cudaEventRecord");
    }
    cpu_parallel(pieces_, [&](std::int64_t i) {
      check_cuda(cudaEventSynchronize(copied(i)), "cudaEventSynchronize");
      const auto first = static_cast<std::size_t>(encoded_bytes(kFormat, begin(i)));
      const auto last = static_cast<std::size_t>(encoded_bytes(kFormat, begin(i + 1)));
      encode_values(kFormat, {pinned(begin(i)), pinned(begin(i + 1))},
                    std::span(of_host_).subspan(first, last - first));
    });
  }

  void by_gpu() {
    check_cuda(launch_encode(kFormat, device(0), numel_, encoded_.get(), stream()), "launch_encode");
    check_cuda(cudaMemcpyAsync(of_gpu_.get(), encoded_.get(), of_host_.size(), cudaMemcpyDeviceToHost, stream()),
               "cudaMemcpyAsync");
    check_cuda(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
  }

  bool same_bytes() const { return std::ranges::equal(of_host_, std::span(of_gpu_.get(), of_host_.size())); }

 private:
  std::int64_t begin(std::int64_t piece) const { return part_begin(kFormat, numel_, pieces_, piece); }
  float* pinned(std::int64_t i) const { return reinterpret_cast<float*>(pinned_values_.get()) + i; }
  float* device(std::int64_t i) const { return reinterpret_cast<float*>(values_.get()) + i; }
  cudaStream_t stream() const { return stream_.get(); }
  cudaEvent_t copied(std::int64_t i) const { return copied_[static_cast<std::size_t>(i)].get(); }

  const std::int64_t numel_, pieces_;
  const UniqueStream stream_ = make_stream(false);
  const DeviceMemory values_ = make_device_memory(value_bytes(), "values");
  const PinnedMemory pinned_values_ = make_pinned_memory(value_bytes(), "values");
  std::vector<std::byte> of_host_ = std::vector<std::byte>(static_cast<std::size_t>(encoded_bytes(kFormat, numel_)));
  const DeviceMemory encoded_ = make_device_memory(of_host_.size(), "encoded values");
  const PinnedMemory of_gpu_ = make_pinned_memory(of_host_.size(), "encoded values");
  std::vector<UniqueEvent> copied_;
};

// The best of some, after one that touches all memory.
template <class Work>
double seconds_of(const Work& work) {
  double best = 0;
  for (int i = 0; i < (fake() ? 1 : 8); ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (i < 2 || seconds < best) best = seconds;
  }
  return best;
}

int run() {
  check_cuda(cudaSetDevice(0), "cudaSetDevice");
  // No whole number of blocks: the last one is short.
  const std::int64_t numel = (fake() ? std::int64_t{1} << 16 : std::int64_t{1} << 28) - 3;
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  set_cpu_threads(threads);
  RingFeed feed(numel, fake() ? 8 : 256);
  const auto row = [&](double seconds) {
    const double rate = static_cast<double>(feed.value_bytes()) / seconds / 1e9;
    return nlohmann::json{{"seconds", seconds}, {"gigabytes_per_second", rate}};
  };
  const double by_host = seconds_of([&] { feed.by_host(); });
  const double by_gpu = seconds_of([&] { feed.by_gpu(); });
  const bool good = feed.same_bytes();
  fmt::print("{}\n", nlohmann::json{{"value_bytes", feed.value_bytes()},
                                    {"format", traits_of(kFormat).name},
                                    {"threads", threads},
                                    {"copied_then_encoded", row(by_host)},
                                    {"encoded_then_copied", row(by_gpu)},
                                    {"faster", by_gpu < by_host ? "encoded_then_copied" : "copied_then_encoded"},
                                    {"good", good}}
                         .dump(1));
  if (!good) fmt::print(stderr, "gpu_ring_feed: the GPU's bytes are not the host's\n");
  return good ? 0 : 1;
}

}  // namespace

int main() {
  atl::gpu::log_to_stderr();
  try {
    return run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_ring_feed: {}\n", error.what());
    return 1;
  }
}
