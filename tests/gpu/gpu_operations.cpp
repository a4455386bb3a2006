// Every operation of a step on one GPU beside the same on this processor, and its speed. Prints a JSON object: a row an
// operation with "error" (of the largest value expected), "tolerance", and "gigabytes_per_second" or
// "teraflops_per_second". Fails when one is off.
//
//   gpu_operations [check | time [NAME]]: small odd sizes are compared; those of a model of 1 billion parameters are
//   timed, of operations whose names contain NAME. Both, where neither is said.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <tuple>

#include "kernels/model/model_kernels.h"
#include "tests/gpu/machine.h"
#include "tests/gpu/operation_cases.h"
#include "trainer/device/cpu_device_group.h"
#include "trainer/device/cuda_device.h"

namespace {

using namespace atl;
using namespace atl::gpu;
using Bytes = std::vector<std::byte>;

constexpr int kThreads = 4;

std::vector<float> floats_of(const Buffer& buffer, std::int64_t vocab, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(buffer.tensor.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    float& value = values[i];
    switch (buffer.contents) {
      case Contents::kPositive: value = std::abs(normal(random)) + 0x1p-4f; break;
      case Contents::kZero: value = 0; break;
      case Contents::kOne: value = 1; break;
      case Contents::kTokens: value = static_cast<float>(random() % static_cast<unsigned>(vocab)); break;
      case Contents::kScalars: value = i == static_cast<std::size_t>(StepScalar::kStopped) ? 0.0f : 0.5f; break;
      default: value = normal(random);
    }
  }
  return values;
}

Bytes encoded(const std::vector<float>& values, DType dtype) {
  Bytes bytes(values.size() * static_cast<std::size_t>(size_of(dtype)));
  const auto copy = [&](const auto& from) { std::memcpy(bytes.data(), from.data(), bytes.size()); };
  switch (dtype) {
    case DType::kFloat32: copy(values); break;
    case DType::kFloat64: copy(std::vector<double>(values.begin(), values.end())); break;
    case DType::kInt32: copy(std::vector<std::int32_t>(values.begin(), values.end())); break;
    case DType::kBfloat16:
      value_kernels().round_to_bf16(values.data(), static_cast<std::int64_t>(values.size()),
                                    reinterpret_cast<Bf16*>(bytes.data()));
  }
  return bytes;
}

std::vector<double> decoded(const Bytes& bytes, DType dtype) {
  std::vector<double> values(bytes.size() / static_cast<std::size_t>(size_of(dtype)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::kFloat64) {
      std::memcpy(&values[i], bytes.data() + 8 * i, 8);
      continue;
    }
    if (dtype == DType::kInt32) {
      std::int32_t value = 0;
      std::memcpy(&value, bytes.data() + 4 * i, 4);
      values[i] = value;
      continue;
    }
    float value = 0;
    if (dtype == DType::kBfloat16) {
      value_kernels().widen(reinterpret_cast<const Bf16*>(bytes.data()) + i, 1, &value);
    } else {
      std::memcpy(&value, bytes.data() + 4 * i, 4);
    }
    values[i] = static_cast<double>(value);
  }
  return values;
}

// Three documents a sequence, of a third of it each; the last has what is left over as well.
float document_start(std::int64_t place, std::int64_t length) {
  const std::int64_t second = length / 3, last = second + length / 3;
  return static_cast<float>(place < second ? 0 : place < last ? second : last);
}

// What each buffer holds, the same for both devices. The order of tokens is that of the tokens before it.
std::vector<Bytes> contents_of(const OperationCase& one, std::int64_t vocab) {
  std::vector<Bytes> all;
  std::vector<float> tokens;
  for (std::size_t b = 0; b < one.buffers.size(); ++b) {
    const Buffer& buffer = one.buffers[b];
    std::vector<float> values = floats_of(buffer, vocab, static_cast<std::uint32_t>(b) + 1);
    if (buffer.contents == Contents::kTokens) tokens = values;
    if (buffer.contents == Contents::kOrder) {
      std::iota(values.begin(), values.end(), 0.0f);
      std::ranges::stable_sort(values, {}, [&](float row) { return tokens[static_cast<std::size_t>(row)]; });
    }
    if (buffer.contents == Contents::kStarts) {
      const std::int64_t length = buffer.tensor.columns;
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = document_start(static_cast<std::int64_t>(i) % length, length);
      }
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto columns = static_cast<std::size_t>(buffer.tensor.columns);
      if (buffer.contents == Contents::kSlots)
        values[i] = i + 1 == values.size() ? -1 : static_cast<float>(i / columns);
      if (buffer.contents == Contents::kPositions)
        values[i] = static_cast<float>(buffer.first) + static_cast<float>(i % columns);
    }
    all.push_back(encoded(values, buffer.tensor.dtype));
  }
  return all;
}

void prepare(Device& device, const OperationCase& one, const std::vector<Bytes>& contents) {
  device.take_arena(Arena::kKept, one.kept.bytes());
  for (std::size_t b = 0; b < contents.size(); ++b) device.upload(one.buffers[b].tensor, contents[b]);
  for (const Operation& operation : one.before) device.run(StreamId::kCompute, operation);
}

std::vector<std::vector<double>> results_of(Device& device, const OperationCase& one) {
  device.run(StreamId::kCompute, one.operation);
  std::vector<std::vector<double>> results;
  for (const Tensor& tensor : one.results) {
    Bytes bytes(static_cast<std::size_t>(tensor.extent_bytes()));
    device.download(tensor, bytes);
    results.push_back(decoded(bytes, tensor.dtype));
  }
  return results;
}

// fp32 sums of other orders; in bf16 the roundings on the way, and one more where a sum falls to the other side.
double tolerance_of(const OperationCase& one, const Tensor& result, DType dtype) {
  if (dtype == DType::kFloat32) return 2e-5;
  const bool rounded = result.dtype == DType::kBfloat16 || one.roundings > 1;
  return rounded ? (1 + one.roundings) * 0x1p-8 : 1e-4;
}

double error_of(const std::vector<double>& got, const std::vector<double>& expected) {
  double error = 0, most = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    most = std::max(most, std::abs(expected[i]));
    const double off = std::abs(got[i] - expected[i]);
    error = off <= error ? error : off;  // NaN too
  }
  return error == 0 ? 0 : error / most;
}

nlohmann::json check(const OperationCase& one, Device& gpu, Device& cpu, std::int64_t vocab, DType dtype, bool& good) {
  const std::vector<Bytes> contents = contents_of(one, vocab);
  prepare(gpu, one, contents);
  prepare(cpu, one, contents);
  const auto got = results_of(gpu, one), expected = results_of(cpu, one);
  double worst = 0, tolerance = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = error_of(got[i], expected[i]), most = tolerance_of(one, one.results[i], dtype);
    if (tolerance == 0 || !(error / most <= worst / tolerance)) std::tie(worst, tolerance) = std::pair(error, most);
  }
  const bool well = worst <= tolerance;
  good = good && well;
  return {{"error", worst}, {"tolerance", tolerance}, {"good", well}};
}

double seconds_of(CudaDevice& gpu, const std::function<void()>& work) {
  const cudaStream_t stream = gpu.stream(StreamId::kCompute);
  cudaEvent_t first = nullptr, last = nullptr;
  check_cuda(cudaEventCreateWithFlags(&first, cudaEventDefault), "cudaEventCreateWithFlags");
  const UniqueEvent own_first(first);
  check_cuda(cudaEventCreateWithFlags(&last, cudaEventDefault), "cudaEventCreateWithFlags");
  const UniqueEvent own_last(last);
  const auto time = [&](int times) {
    check_cuda(cudaEventRecord(first, stream), "cudaEventRecord");
    for (int i = 0; i < times; ++i) work();
    check_cuda(cudaEventRecord(last, stream), "cudaEventRecord");
    gpu.synchronize();
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, first, last), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) / 1e3 / times;
  };
  if (fake()) return time(1);
  (void)time(3);
  const int enough = static_cast<int>(std::clamp(0.05 / time(3), 3.0, 2000.0));
  double best = time(enough);
  for (int i = 0; i < 2; ++i) best = std::min(best, time(enough));
  return best;
}

nlohmann::json measure(const OperationCase& one, CudaDevice& gpu, std::int64_t vocab) {
  prepare(gpu, one, contents_of(one, vocab));
  const double seconds = seconds_of(gpu, [&] { gpu.run(StreamId::kCompute, one.operation); });
  nlohmann::json row = {{"microseconds", seconds * 1e6}};
  if (one.bytes > 0) row["gigabytes_per_second"] = one.bytes / seconds / 1e9;
  if (one.flops > 0) row["teraflops_per_second"] = one.flops / seconds / 1e12;
  return row;
}

// What this card copies: bytes read and written.
double copy_gigabytes(CudaDevice& gpu) {
  const std::size_t bytes = fake() ? 1u << 20 : std::size_t{1} << 30;
  const DeviceMemory from = make_device_memory(bytes, "a copy"), to = make_device_memory(bytes, "a copy");
  const double seconds = seconds_of(gpu, [&] {
    check_cuda(cudaMemcpyAsync(to.get(), from.get(), bytes, cudaMemcpyDeviceToDevice, gpu.stream(StreamId::kCompute)),
               "cudaMemcpyAsync");
  });
  return 2 * static_cast<double>(bytes) / seconds / 1e9;
}

// Of no power of two, so that every kernel's last row and column are partly empty; and one that cuDNN takes.
constexpr Sizes kOdd{.sequences = 3, .length = 45, .hidden = 72, .inner = 88, .vocab = 331, .parameters = 70'001};
constexpr Sizes kEven{.sequences = 2,
                      .length = 128,
                      .hidden = 256,
                      .inner = 512,
                      .vocab = 1000,
                      .heads = 8,
                      .key_value_heads = 2,
                      .head_dim = 64,
                      .parameters = 1 << 17};
constexpr Sizes kLarge{.sequences = 4,
                       .length = 2048,
                       .hidden = 2048,
                       .inner = 8192,
                       .vocab = 128'256,
                       .heads = 32,
                       .key_value_heads = 8,
                       .head_dim = 64,
                       .parameters = 100'000'000};
// Logits are computed in slices of about 2,000 rows.
constexpr Sizes kLargeLoss = [] {
  Sizes sizes = kLarge;
  sizes.sequences = 1;
  sizes.parameters = 1000;
  return sizes;
}();

bool of_logits(const OperationCase& one) {
  return one.name.starts_with("cross_entropy") || one.name.starts_with("log_probability") ||
         one.name.starts_with("product, logits");
}

void measure_all(CudaDevice& gpu, const std::string& name, nlohmann::json& report) {
  report["copy_gigabytes_per_second"] = copy_gigabytes(gpu);
  for (const DType dtype : {DType::kBfloat16, DType::kFloat32}) {
    if (dtype == DType::kFloat32 && !fake()) continue;  // training is in bf16
    for (const bool logits : {false, true}) {
      const Sizes sizes = fake() ? kOdd : logits ? kLargeLoss : kLarge;
      for (const OperationCase& one : operation_cases(sizes, dtype)) {
        if (of_logits(one) != logits || one.name.starts_with("clip_scale")) continue;
        if (one.name.find(name) == std::string::npos) continue;
        report["times"][one.name] = measure(one, gpu, sizes.vocab);
      }
    }
  }
}

int run(const std::string& what, const std::string& name) {
  const CudaDevices devices{.ordinals = {0}};
  CudaDeviceGroup gpus(devices, libraries(devices));
  const auto own = gpus.device(LocalRank{0});
  auto& gpu = dynamic_cast<CudaDevice&>(*own);
  nlohmann::json report = {{"fake", fake()}};
  bool good = true;
  if (what != "time") {
    CpuDeviceGroup processor(1, kThreads, std::chrono::minutes(10));
    const auto cpu = processor.device(LocalRank{0});
    for (const DType dtype : {DType::kFloat32, DType::kBfloat16}) {
      for (const auto& [words, sizes] : {std::pair("odd", kOdd), std::pair("even", kEven)}) {
        for (const OperationCase& one : operation_cases(sizes, dtype)) {
          report["checks"][fmt::format("{}, {} sizes", one.name, words)] =
              check(one, gpu, *cpu, sizes.vocab, dtype, good);
        }
      }
    }
  }
  if (what != "check") measure_all(gpu, name, report);
  fmt::print("{}\n", report.dump(1));
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  atl::gpu::log_to_stderr();
  try {
    return run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_operations: {}\n", error.what());
    return 1;
  }
}
