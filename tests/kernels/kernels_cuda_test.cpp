// The CUDA kernels give the same bits as the plain ones.
#include <cuda_runtime_api.h>

#include <QtTest>
#include <algorithm>
#include <cstring>
#include <limits>
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

using namespace atl;

namespace {

struct DeviceFree {
  void operator()(void* pointer) const noexcept { (void)cudaFree(pointer); }
};

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& host) : count_(host.size()) {
    void* pointer = nullptr;
    if (cudaMalloc(&pointer, std::max<std::size_t>(count_, 1) * sizeof(T)) != cudaSuccess) qFatal("cudaMalloc failed");
    data_.reset(static_cast<T*>(pointer));
    (void)cudaMemcpy(pointer, host.data(), count_ * sizeof(T), cudaMemcpyHostToDevice);
  }
  T* get() const { return data_.get(); }
  std::vector<T> to_host() const {
    std::vector<T> host(count_);
    if (cudaMemcpy(host.data(), data_.get(), count_ * sizeof(T), cudaMemcpyDeviceToHost) != cudaSuccess) {
      qFatal("copy from the GPU failed: %s", cudaGetErrorString(cudaGetLastError()));
    }
    return host;
  }

 private:
  std::size_t count_;
  std::unique_ptr<T, DeviceFree> data_;
};

// The codecs there: of all formats that a run may use, but that which is no more than a copy.
std::vector<WireFormat> formats_on_gpu() {
  std::vector<WireFormat> formats;
  for (const WireFormat format : kWireFormats) {
    if (traits_of(format).for_runs && format != WireFormat::kFp32) formats.push_back(format);
  }
  return formats;
}

}  // namespace

class KernelsCudaTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void codec_is_bit_identical_to_the_reference_data();
  void codec_is_bit_identical_to_the_reference();
  void formats_that_are_not_here_are_refused();
  void squared_norm_is_bit_identical_to_the_reference_data();
  void squared_norm_is_bit_identical_to_the_reference();
  void outer_nesterov_is_bit_identical_to_the_reference_data();
  void outer_nesterov_is_bit_identical_to_the_reference();
};

void KernelsCudaTest::initTestCase() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess || devices == 0) {
    QSKIP(qPrintable(QString("no GPU to run the CUDA kernels on: %1").arg(cudaGetErrorString(error))));
  }
}

void KernelsCudaTest::codec_is_bit_identical_to_the_reference_data() {
  QTest::addColumn<int>("format");
  QTest::addColumn<QString>("kind");
  QTest::addColumn<int>("numel");
  for (const WireFormat format : formats_on_gpu()) {
    for (const QString& kind : kValueKinds) {
      for (const int numel : {1, 127, 128, 129, 255, 256, 257, 100'001}) {
        QTest::newRow(qPrintable(QString("%1 %2 %3").arg(wire_format_name(format).data(), kind).arg(numel)))
            << static_cast<int>(format) << kind << numel;
      }
    }
  }
}

void KernelsCudaTest::codec_is_bit_identical_to_the_reference() {
  QFETCH(int, format);
  QFETCH(QString, kind);
  QFETCH(int, numel);
  const auto wire = static_cast<WireFormat>(format);
  const auto x = values_of_kind(kind, static_cast<std::size_t>(numel));
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
  QCOMPARE(launch_encode(wire, gpu_x.get(), numel, gpu_encoded.get(), nullptr), cudaSuccess);
  QCOMPARE(launch_decode(wire, gpu_encoded.get(), numel, gpu_decoded.get(), nullptr), cudaSuccess);
  QCOMPARE(launch_decode_add(wire, gpu_encoded.get(), numel, gpu_sum.get(), nullptr), cudaSuccess);

  QVERIFY(same_bits(gpu_encoded.to_host(), encoded));
  QVERIFY(same_bits(gpu_decoded.to_host(), decoded));
  QVERIFY(same_bits(gpu_sum.to_host(), sum));
}

void KernelsCudaTest::formats_that_are_not_here_are_refused() {
  const DeviceArray<float> x(std::vector<float>(1));
  const DeviceArray<std::byte> bytes(std::vector<std::byte>(2048));

  QCOMPARE(launch_encode(WireFormat::kInt8Codebook, x.get(), 1, bytes.get(), nullptr), cudaErrorInvalidValue);
  QCOMPARE(launch_decode(WireFormat::kFp32, bytes.get(), 1, x.get(), nullptr), cudaErrorInvalidValue);
}

void KernelsCudaTest::squared_norm_is_bit_identical_to_the_reference_data() {
  QTest::addColumn<QString>("kind");
  QTest::addColumn<int>("numel");
  for (const char* kind : {"heavy tails", "outlier", "denormal", "nan", "infinity"}) {
    // One row, a short second one, and rows whose sums make more than one row again.
    for (const int numel : {1, 15, 4096, 4097, 100'001, 4096 * 4096 + 5}) {
      QTest::newRow(qPrintable(QString("%1 %2").arg(kind).arg(numel))) << QString(kind) << numel;
    }
  }
}

void KernelsCudaTest::squared_norm_is_bit_identical_to_the_reference() {
  QFETCH(QString, kind);
  QFETCH(int, numel);
  const auto x = values_of_kind(kind, static_cast<std::size_t>(numel));
  const DeviceArray<float> gpu_x(x);
  const DeviceArray<double> scratch(
      std::vector<double>(static_cast<std::size_t>(squared_norm_scratch_numel(numel)), 0.0));
  const DeviceArray<double> norm(std::vector<double>{-1.0});

  QCOMPARE(launch_squared_norm(gpu_x.get(), numel, scratch.get(), norm.get(), nullptr), cudaSuccess);

  const double got = norm.to_host()[0];
  const auto expected = finite_squared_norm(x);
  QCOMPARE(std::isfinite(got), expected.has_value());
  if (expected) QCOMPARE(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(*expected));
}

void KernelsCudaTest::outer_nesterov_is_bit_identical_to_the_reference_data() {
  QTest::addColumn<int>("format");
  QTest::addColumn<int>("numel");
  for (const int numel : {1, 256, 4097, 100'000}) {
    QTest::addRow("fp32 %d", numel) << static_cast<int>(WireFormat::kFp32) << numel;
    for (const WireFormat format : formats_on_gpu()) {
      QTest::addRow("%s %d", wire_format_name(format).data(), numel) << static_cast<int>(format) << numel;
    }
  }
}

void KernelsCudaTest::outer_nesterov_is_bit_identical_to_the_reference() {
  QFETCH(int, format);
  QFETCH(int, numel);
  const auto wire = static_cast<WireFormat>(format);
  auto theta = values_of_kind("heavy tails", static_cast<std::size_t>(numel));
  auto velocity = theta;
  std::vector<std::byte> canonical(encoded_size(wire, theta.size()));
  encode_values(wire, theta, canonical);
  const DeviceArray<float> gpu_theta(theta);
  const DeviceArray<float> gpu_velocity(velocity);
  const DeviceArray<std::byte> gpu_canonical(canonical);

  for (int step = 0; step < 3; ++step) {
    outer_nesterov(theta, velocity, wire, canonical, {});
    QCOMPARE(launch_outer_nesterov(gpu_theta.get(), gpu_velocity.get(), wire, gpu_canonical.get(), numel, {}, nullptr),
             cudaSuccess);
  }

  QVERIFY(same_bits(gpu_theta.to_host(), theta));
  QVERIFY(same_bits(gpu_velocity.to_host(), velocity));
}

QTEST_APPLESS_MAIN(KernelsCudaTest)
#include "kernels_cuda_test.moc"
