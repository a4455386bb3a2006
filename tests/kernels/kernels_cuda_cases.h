// What the tests of the CUDA kernels compare with the plain code, bit for bit: on a GPU (kernels_cuda_test.cpp) and on
// the CPU (tests/cuda_on_cpu). A comparison returns what differed, or nothing. Inputs of a test's rows.
#pragma once

#include <cuda_runtime_api.h>

#include <QString>
#include <QtTest>
#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "kernels/outer_nesterov.h"
#include "kernels/outer_nesterov_cuda.h"
#include "kernels/reduce.h"
#include "kernels/reduce_cuda.h"
#include "kernels/wire_codec.h"
#include "kernels/wire_codec_cuda.h"
#include "tests/kernels/codec_values.h"
#include "tests/kernels/device_array.h"

namespace atl {

// The launchers to try: those that are linked, or a loaded library's.
struct CudaLaunchers {
  decltype(&launch_encode) encode;
  decltype(&launch_decode) decode;
  decltype(&launch_decode_add) decode_add;
  decltype(&launch_squared_norm) squared_norm;
  decltype(&squared_norm_scratch_numel) norm_scratch_numel;
  decltype(&launch_outer_nesterov) nesterov;
};
inline CudaLaunchers linked_launchers() {
  return {launch_encode,        launch_decode, launch_decode_add, launch_squared_norm, squared_norm_scratch_numel,
          launch_outer_nesterov};
}

// The codecs there: of all formats that a run may use, but that which is no more than a copy.
inline std::vector<WireFormat> formats_on_gpu() {
  std::vector<WireFormat> formats;
  for (const WireFormat format : kWireFormats) {
    if (traits_of(format).for_runs && format != WireFormat::kFp32) formats.push_back(format);
  }
  return formats;
}

// Of kValueKinds, and exact ties: of int4-e3m0, 1.5 * 2^-k in a block of scale 1, and of bf16, nine significant bits.
inline const QStringList kCodecKinds = QStringList(kValueKinds) << "ties";
inline std::vector<float> codec_values(const QString& kind, std::size_t numel) {
  if (kind != "ties") return values_of_kind(kind, numel);
  std::mt19937 random(19);
  std::vector<float> x(numel);
  for (std::size_t i = 0; i < numel; ++i) {
    const float sign = random() % 2 == 0 ? 1.0f : -1.0f;
    if (i % 3 == 0) x[i] = sign * static_cast<float>(257 + 2 * (random() % 127)) / 512.0f;
    if (i % 3 == 1) x[i] = sign * std::ldexp(1.5f, -static_cast<int>(random() % 9) - 1);
    if (i % 3 == 2) x[i] = sign;
  }
  return x;
}

inline void add_codec_rows() {
  QTest::addColumn<int>("format");
  QTest::addColumn<QString>("kind");
  QTest::addColumn<int>("numel");
  for (const WireFormat format : formats_on_gpu()) {
    for (const QString& kind : kCodecKinds) {
      for (const int numel : {1, 127, 128, 129, 255, 256, 257, 100'001}) {
        QTest::newRow(qPrintable(QString("%1 %2 %3").arg(wire_format_name(format).data(), kind).arg(numel)))
            << static_cast<int>(format) << kind << numel;
      }
    }
  }
}

inline QString codec_difference(const CudaLaunchers& cuda, WireFormat wire, const QString& kind, int numel) {
  const auto x = codec_values(kind, static_cast<std::size_t>(numel));
  std::vector<std::byte> encoded(encoded_size(wire, x.size()));
  std::vector<float> decoded(x.size());
  std::vector<float> sum(x.size(), 0.125f);
  const DeviceArray<float> gpu_x(x);
  const DeviceArray<std::byte> gpu_encoded(encoded);
  const DeviceArray<float> gpu_decoded(decoded);
  const DeviceArray<float> gpu_sum(sum);

  encode_values(wire, x, encoded);
  decode_values(wire, encoded, decoded);
  decode_add_values(wire, encoded, sum);
  for (const cudaError_t error : {cuda.encode(wire, gpu_x.get(), numel, gpu_encoded.get(), nullptr),
                                  cuda.decode(wire, gpu_encoded.get(), numel, gpu_decoded.get(), nullptr),
                                  cuda.decode_add(wire, gpu_encoded.get(), numel, gpu_sum.get(), nullptr)}) {
    if (error != cudaSuccess) return cudaGetErrorString(error);
  }

  if (!same_bits(gpu_encoded.to_host(), encoded)) return "encoded bytes";
  if (!same_bits(gpu_decoded.to_host(), decoded)) return "decoded values";
  return same_bits(gpu_sum.to_host(), sum) ? QString() : QString("sums");
}

// One row, a short second one, and several.
inline void add_norm_rows() {
  QTest::addColumn<QString>("kind");
  QTest::addColumn<int>("numel");
  for (const char* kind : {"heavy tails", "outlier", "denormal", "nan", "infinity"}) {
    for (const int numel : {1, 15, 4096, 4097, 100'001}) {
      QTest::newRow(qPrintable(QString("%1 %2").arg(kind).arg(numel))) << QString(kind) << numel;
    }
  }
}

inline QString norm_difference(const CudaLaunchers& cuda, const std::vector<float>& x) {
  const auto numel = static_cast<std::int64_t>(x.size());
  const DeviceArray<float> gpu_x(x);
  const DeviceArray<double> scratch(std::vector<double>(static_cast<std::size_t>(cuda.norm_scratch_numel(numel)), 0.0));
  const DeviceArray<double> norm(std::vector<double>{-1.0});

  const cudaError_t error = cuda.squared_norm(gpu_x.get(), numel, scratch.get(), norm.get(), nullptr);
  if (error != cudaSuccess) return cudaGetErrorString(error);

  const double got = norm.to_host()[0];
  const auto expected = finite_squared_norm(x);
  if (std::isfinite(got) != expected.has_value()) return "finite or not";
  if (!expected || std::bit_cast<std::uint64_t>(got) == std::bit_cast<std::uint64_t>(*expected)) return {};
  return QString("%1 for %2").arg(got).arg(*expected);
}

// As many that the sums of their rows make more than one row again.
inline std::vector<float> values_of_three_levels() {
  const auto tail = values_of_kind("heavy tails", 4096);
  std::vector<float> x(4096 * 4096 + 5);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = tail[i % 4096] * static_cast<float>(i / 4096 + 1);
  return x;
}

inline void add_nesterov_rows() {
  QTest::addColumn<int>("format");
  QTest::addColumn<int>("numel");
  for (const int numel : {1, 256, 4097, 100'000}) {
    QTest::addRow("fp32 %d", numel) << static_cast<int>(WireFormat::kFp32) << numel;
    for (const WireFormat format : formats_on_gpu()) {
      QTest::addRow("%s %d", wire_format_name(format).data(), numel) << static_cast<int>(format) << numel;
    }
  }
}

inline QString nesterov_difference(const CudaLaunchers& cuda, WireFormat wire, int numel) {
  auto theta = values_of_kind("heavy tails", static_cast<std::size_t>(numel));
  auto velocity = theta;
  std::vector<std::byte> canonical(encoded_size(wire, theta.size()));
  encode_values(wire, theta, canonical);
  const DeviceArray<float> gpu_theta(theta);
  const DeviceArray<float> gpu_velocity(velocity);
  const DeviceArray<std::byte> gpu_canonical(canonical);

  for (int step = 0; step < 3; ++step) {
    outer_nesterov(theta, velocity, wire, canonical, {});
    const cudaError_t error =
        cuda.nesterov(gpu_theta.get(), gpu_velocity.get(), wire, gpu_canonical.get(), numel, {}, nullptr);
    if (error != cudaSuccess) return cudaGetErrorString(error);
  }

  if (!same_bits(gpu_theta.to_host(), theta)) return "theta";
  return same_bits(gpu_velocity.to_host(), velocity) ? QString() : QString("velocity");
}

}  // namespace atl
