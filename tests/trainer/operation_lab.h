// Single operations on this processor's device, with one thread and with three, beside what their definitions have. For
// tests.
#pragma once

#include <QString>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "kernels/model/model_kernels.h"
#include "net/step/operands.h"
#include "net/step/program.h"
#include "tests/trainer/naive_operations.h"
#include "trainer/device/cpu_device.h"
#include "trainer/device/cpu_library.h"
#include "trainer/fsdp/shared_memory_communicator.h"

namespace atl::test {

using Bytes = std::vector<std::byte>;

inline Bytes encoded(const std::vector<double>& values, DType dtype) {
  Bytes bytes(values.size() * static_cast<std::size_t>(size_of(dtype)));
  std::vector<float> floats(values.begin(), values.end());
  const auto copy = [&](const auto& from) { std::memcpy(bytes.data(), from.data(), bytes.size()); };
  switch (dtype) {
    case DType::kFloat32: copy(floats); break;
    case DType::kFloat64: copy(values); break;
    case DType::kInt32: copy(std::vector<std::int32_t>(values.begin(), values.end())); break;
    case DType::kBfloat16:
      value_kernels().round_to_bf16(floats.data(), static_cast<std::int64_t>(floats.size()),
                                    reinterpret_cast<Bf16*>(bytes.data()));
  }
  return bytes;
}

inline std::vector<double> decoded(const Bytes& bytes, DType dtype) {
  const auto copy = [&](auto element) {
    std::vector<decltype(element)> values(bytes.size() / sizeof(element));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  };
  const auto doubles = [](const auto& values) { return std::vector<double>(values.begin(), values.end()); };
  if (dtype == DType::kFloat32) return doubles(copy(0.0f));
  if (dtype == DType::kFloat64) return copy(0.0);
  if (dtype == DType::kInt32) return doubles(copy(std::int32_t{0}));
  const auto rounded = copy(Bf16{});
  std::vector<float> floats(rounded.size());
  value_kernels().widen(rounded.data(), static_cast<std::int64_t>(rounded.size()), floats.data());
  return doubles(floats);
}

// Of the largest value expected; NaN where there is one.
inline double largest_error(const std::vector<double>& got, const std::vector<double>& expected) {
  double most = 0, error = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    most = std::max(most, std::abs(expected[i]));
    const double off = std::abs(got[i] - expected[i]);
    error = off <= error ? error : off;
  }
  return error == 0 ? 0 : error / most;
}

// Kept buffers with what is in them before an operation.
class Lab {
 public:
  Tensor add(DType dtype, std::int64_t rows, std::int64_t columns, std::vector<double> values) {
    dtypes_.push_back(dtype);
    elements_.push_back(decoded(encoded(values, dtype), dtype));  // as the device sees them
    return kept_.add("", dtype, rows, columns);
  }
  Tensor random(DType dtype, std::int64_t rows, std::int64_t columns, double deviation = 1) {
    std::normal_distribution<double> normal(0, deviation);
    std::vector<double> values(static_cast<std::size_t>(rows * columns));
    for (double& value : values) value = normal(random_);
    return add(dtype, rows, columns, std::move(values));
  }
  Tensor positive(DType dtype, std::int64_t rows, std::int64_t columns) {
    const Tensor tensor = random(dtype, rows, columns);
    for (double& value : elements_.back()) value = std::abs(value) + 0x1p-4;
    elements_.back() = decoded(encoded(elements_.back(), dtype), dtype);
    return tensor;
  }
  Tensor integers(std::int64_t count, int below) {
    std::vector<double> values(static_cast<std::size_t>(count));
    for (double& value : values) value = static_cast<double>(random_() % static_cast<unsigned>(below));
    return add(DType::kInt32, 1, count, std::move(values));
  }
  // The rows, sorted by token.
  Tensor order_of(const Tensor& tokens) {
    std::vector<double> order(static_cast<std::size_t>(tokens.columns));
    std::iota(order.begin(), order.end(), 0.0);
    const auto& of = elements_[static_cast<std::size_t>(tokens.buffer)];
    std::ranges::stable_sort(order, {}, [&](double r) { return of[static_cast<std::size_t>(r)]; });
    return add(DType::kInt32, 1, tokens.columns, std::move(order));
  }
  Tensor scalars(std::initializer_list<std::pair<StepScalar, double>> set) {
    std::vector<double> values(kStepScalars, 0.0);
    for (const auto& [which, value] : set) values[static_cast<std::size_t>(which)] = value;
    return add(DType::kFloat32, 1, kStepScalars, std::move(values));
  }
  // As the definition has it, for what an operation after it reads; rounded.
  void prepare(const Operation& operation) {
    std::visit(NaiveOperations(elements_), operation);
    for (std::size_t b = 0; b < elements_.size(); ++b)
      elements_[b] = decoded(encoded(elements_[b], dtypes_[b]), dtypes_[b]);
  }

  // All buffers after the operation.
  std::vector<Bytes> run(const Operation& operation, int threads) const {
    SharedMemoryGroup group(1, std::chrono::minutes(5));
    const auto communicator = group.communicator(LocalRank{0});
    set_cpu_threads(threads);
    CpuDevice device(*communicator, threads);
    device.take_arena(Arena::kKept, kept_.bytes());
    for (std::size_t b = 0; b < elements_.size(); ++b) device.upload(whole(b), encoded(elements_[b], dtypes_[b]));
    device.run(StreamId::kCompute, operation);
    std::vector<Bytes> after;
    for (std::size_t b = 0; b < elements_.size(); ++b) {
      after.emplace_back(static_cast<std::size_t>(kept_.buffers()[b].bytes));
      device.download(whole(b), after.back());
    }
    return after;
  }

  // Runs it with one thread and with three, and compares `results`, and all that it does not say that it writes. Each
  // value is off by at most `tolerance` of its tensor's largest. What is wrong, or nothing.
  QString check(const Operation& operation, const std::vector<Tensor>& results, double tolerance) const {
    const std::vector<Bytes> one = run(operation, 1);
    const std::vector<Bytes> three = run(operation, 3);
    Elements expected = elements_;
    std::visit(NaiveOperations(expected), operation);
    std::vector<bool> written(elements_.size(), false);
    for_each_operand(operation, [&](const Tensor& t, Access access) {
      if (access != Access::kRead) written[static_cast<std::size_t>(t.buffer)] = true;
    });
    for (std::size_t b = 0; b < elements_.size(); ++b) {
      if (!written[b] && one[b] != encoded(elements_[b], dtypes_[b])) return QString("buffer %1 is written to").arg(b);
    }
    for (const Tensor& result : results) {
      const auto b = static_cast<std::size_t>(result.buffer);
      const auto* product = std::get_if<MatMul>(&operation);
      const bool by_library = product != nullptr && product->a.dtype == DType::kFloat32;
      if (!by_library && one[b] != three[b]) return QString("buffer %1 depends on threads").arg(b);
      for (const Bytes& bytes : {one[b], three[b]}) {
        const double error = largest_error(decoded(bytes, dtypes_[b]), expected[b]);
        if (!(error <= tolerance)) return QString("buffer %1 is off by %2").arg(b).arg(error);
      }
    }
    return {};
  }

 private:
  Tensor whole(std::size_t b) const {
    const auto count = static_cast<std::int64_t>(elements_[b].size());
    return {.arena = Arena::kKept,
            .buffer = static_cast<std::int32_t>(b),
            .dtype = dtypes_[b],
            .columns = count,
            .stride = count,
            .byte = kept_.buffers()[b].byte};
  }

  std::mt19937 random_{7};
  KeptBuffers kept_;
  std::vector<DType> dtypes_;
  Elements elements_;
};

}  // namespace atl::test
