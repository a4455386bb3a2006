// The CUDA kernels give the same bits as the plain ones.
#include <cuda_runtime_api.h>

#include <QtTest>
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "kernels/int8_block.h"
#include "kernels/int8_block_cuda.h"
#include "kernels/outer_nesterov.h"
#include "kernels/outer_nesterov_cuda.h"
#include "kernels/wire_codec.h"

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

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

std::vector<float> values_of_kind(const QString& kind, std::size_t numel) {
  std::mt19937 random(17);
  std::student_t_distribution<float> heavy_tails(3.0f);
  std::vector<float> x(numel);
  for (float& value : x) value = heavy_tails(random);
  if (kind == "zeros") std::ranges::fill(x, 0.0f);
  if (kind == "all equal") std::ranges::fill(x, -0.3f);
  if (kind == "tiny") {
    for (float& value : x) value *= 1e-36f;
  }
  if (kind == "denormal") {
    for (float& value : x) value *= 1e-40f;
  }
  if (kind == "nan") x[numel / 2] = std::numeric_limits<float>::quiet_NaN();
  if (kind == "infinity") x[numel / 2] = -std::numeric_limits<float>::infinity();
  if (kind == "outlier") x[numel / 2] = 3e38f;
  return x;
}

std::size_t encoded_size(WireFormat format, std::size_t numel) {
  return static_cast<std::size_t>(encoded_bytes(format, static_cast<std::int64_t>(numel)));
}

}  // namespace

class KernelsCudaTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void int8_block_is_bit_identical_to_the_reference_data();
  void int8_block_is_bit_identical_to_the_reference();
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

void KernelsCudaTest::int8_block_is_bit_identical_to_the_reference_data() {
  QTest::addColumn<QString>("kind");
  QTest::addColumn<int>("numel");
  for (const char* kind : {"heavy tails", "zeros", "all equal", "tiny", "denormal", "nan", "infinity", "outlier"}) {
    for (const int numel : {1, 255, 256, 257, 100'000}) {
      QTest::newRow(qPrintable(QString("%1 %2").arg(kind).arg(numel))) << QString(kind) << numel;
    }
  }
}

void KernelsCudaTest::int8_block_is_bit_identical_to_the_reference() {
  QFETCH(QString, kind);
  QFETCH(int, numel);
  const auto x = values_of_kind(kind, static_cast<std::size_t>(numel));
  std::vector<std::byte> encoded(encoded_size(WireFormat::kInt8Block, x.size()));
  std::vector<float> decoded(x.size());
  std::vector<float> sum(x.size(), 0.125f);
  const DeviceArray<float> gpu_x(x);
  const DeviceArray<std::byte> gpu_encoded(encoded);
  const DeviceArray<float> gpu_decoded(decoded);
  const DeviceArray<float> gpu_sum(sum);

  quantize_int8_block(x, encoded);
  dequantize_int8_block(encoded, decoded);
  dequantize_add_int8_block(encoded, sum);
  QCOMPARE(launch_quantize_int8_block(gpu_x.get(), numel, gpu_encoded.get(), nullptr), cudaSuccess);
  QCOMPARE(launch_dequantize_int8_block(gpu_encoded.get(), numel, gpu_decoded.get(), nullptr), cudaSuccess);
  QCOMPARE(launch_dequantize_add_int8_block(gpu_encoded.get(), numel, gpu_sum.get(), nullptr), cudaSuccess);

  QVERIFY(same_bits(gpu_encoded.to_host(), encoded));
  QVERIFY(same_bits(gpu_decoded.to_host(), decoded));
  QVERIFY(same_bits(gpu_sum.to_host(), sum));
}

void KernelsCudaTest::outer_nesterov_is_bit_identical_to_the_reference_data() {
  QTest::addColumn<int>("format");
  QTest::addColumn<int>("numel");
  for (const int numel : {1, 256, 4097, 100'000}) {
    QTest::addRow("fp32 %d", numel) << static_cast<int>(WireFormat::kFp32) << numel;
    QTest::addRow("int8-block %d", numel) << static_cast<int>(WireFormat::kInt8Block) << numel;
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
