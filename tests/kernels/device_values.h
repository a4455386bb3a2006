// What the tests of the model's CUDA kernels share: arrays on the device, values of T, comparison with exact results
// within a bound, and the demand that a kernel gives the same bits each time. The same source is built for a GPU and,
// with ATOLL_CUDA_ON_CPU, for the emulator of tests/cuda_on_cpu. On the test's thread.
#pragma once

#include <cuda_runtime_api.h>

#include <QtTest>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "kernels/model/model_kernels.h"
#include "tests/kernels/device_array.h"
#ifdef ATOLL_CUDA_ON_CPU
#include "tests/cuda_on_cpu/emulator.h"
#endif

namespace atl {

inline constexpr double kUnit = 0x1p-24;  // relative error of one rounding to fp32
template <class T>
inline constexpr double kUnitOf = std::is_same_v<T, Bf16> ? 0x1p-8 : kUnit;

inline float widened(float x) { return x; }
inline float widened(Bf16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }

template <class T>
T rounded_to(float x) {
  if constexpr (std::is_same_v<T, Bf16>) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    return {static_cast<std::uint16_t>(x == x ? (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16 : 0x7fffu)};
  } else {
    return static_cast<T>(x);
  }
}

template <class T>
std::vector<T> uniform(std::int64_t numel, unsigned seed, float low = -1, float high = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<T> values(static_cast<std::size_t>(numel));
  for (T& value : values) value = rounded_to<T>(distribution(random));
  return values;
}

template <class T>
std::vector<double> exactly(const std::vector<T>& values) {
  std::vector<double> exact;
  for (const T value : values) exact.push_back(static_cast<double>(widened(value)));
  return exact;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// What run() gives, a tuple of vectors, having seen that it gives the same bits three times, on the emulator in three
// orders of threads and blocks.
template <class Run>
auto repeatable(const Run& run) {
  std::optional<decltype(run())> first;
  for (std::uint64_t time = 1; time <= 3; ++time) {
#ifdef ATOLL_CUDA_ON_CPU
    cuda_on_cpu::set_seed(time);
#endif
    const auto results = run();
    const auto same = [&](const auto&... of_first) {
      return std::apply([&](const auto&... now) { return (same_bits(of_first, now) && ...); }, results);
    };
    if (!first) first = results;
    if (!std::apply(same, *first)) QTest::qFail("not the same bits each time", __FILE__, __LINE__);
  }
  return *first;
}

// Empty when |got - exact| <= unit(T) |exact| + roundings * 2^-24 * magnitude everywhere, a part of 2^-8 more for what
// is of second order, and 2^-126 for what fp32 has no normal numbers for; else the first place where not. magnitude:
// the sum of the absolute values that were added up to a result.
template <class T>
QString beyond(const std::vector<T>& got, const std::vector<double>& exact, const std::vector<double>& magnitude,
               double roundings) {
  if (got.size() != exact.size() || got.size() != magnitude.size()) return "sizes differ";
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto value = static_cast<double>(widened(got[i]));
    const double bound = (kUnitOf<T> * std::abs(exact[i]) + roundings * kUnit * magnitude[i]) * (1 + 0x1p-8) + 0x1p-126;
    if (!(std::abs(value - exact[i]) <= bound)) {
      return QString("[%1] is %2, not %3 within %4").arg(i).arg(value, 0, 'g', 9).arg(exact[i], 0, 'g', 9).arg(bound);
    }
  }
  return {};
}
template <class T>
QString beyond(const std::vector<T>& got, const std::vector<double>& exact, double roundings) {
  std::vector<double> magnitude;
  for (const double value : exact) magnitude.push_back(std::abs(value));
  return beyond(got, exact, magnitude, roundings);
}

#define ATOLL_WITHIN(...)                                           \
  do {                                                              \
    const QString what_is_beyond = beyond(__VA_ARGS__);             \
    QVERIFY2(what_is_beyond.isEmpty(), qPrintable(what_is_beyond)); \
  } while (false)

inline void skip_without_device() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess || devices == 0) {
    QSKIP(qPrintable(QString("no GPU to run the CUDA kernels on: %1").arg(cudaGetErrorString(error))));
  }
}

}  // namespace atl
