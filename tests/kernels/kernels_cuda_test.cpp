// The CUDA kernels give the same bits as the plain ones.
#include <QtTest>

#include "tests/kernels/kernels_cuda_cases.h"

using namespace atl;

class KernelsCudaTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void codec_is_bit_identical_to_the_reference_data() { add_codec_rows(); }
  void codec_is_bit_identical_to_the_reference();
  void formats_that_are_not_here_are_refused();
  void squared_norm_is_bit_identical_to_the_reference_data() { add_norm_rows(); }
  void squared_norm_is_bit_identical_to_the_reference();
  void squared_norm_of_three_levels_is_bit_identical_to_the_reference();
  void outer_nesterov_is_bit_identical_to_the_reference_data() { add_nesterov_rows(); }
  void outer_nesterov_is_bit_identical_to_the_reference();
};

void KernelsCudaTest::initTestCase() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess || devices == 0) {
    QSKIP(qPrintable(QString("no GPU to run the CUDA kernels on: %1").arg(cudaGetErrorString(error))));
  }
}

void KernelsCudaTest::codec_is_bit_identical_to_the_reference() {
  QFETCH(int, format);
  QFETCH(QString, kind);
  QFETCH(int, numel);

  QCOMPARE(codec_difference(linked_launchers(), static_cast<WireFormat>(format), kind, numel), QString());
}

void KernelsCudaTest::formats_that_are_not_here_are_refused() {
  const DeviceArray<float> x(std::vector<float>(1));
  const DeviceArray<std::byte> bytes(std::vector<std::byte>(2048));

  QCOMPARE(launch_encode(WireFormat::kInt8Codebook, x.get(), 1, bytes.get(), nullptr), cudaErrorInvalidValue);
  QCOMPARE(launch_decode(WireFormat::kFp32, bytes.get(), 1, x.get(), nullptr), cudaErrorInvalidValue);
}

void KernelsCudaTest::squared_norm_is_bit_identical_to_the_reference() {
  QFETCH(QString, kind);
  QFETCH(int, numel);

  QCOMPARE(norm_difference(linked_launchers(), values_of_kind(kind, static_cast<std::size_t>(numel))), QString());
}

void KernelsCudaTest::squared_norm_of_three_levels_is_bit_identical_to_the_reference() {
  QCOMPARE(norm_difference(linked_launchers(), values_of_three_levels()), QString());
}

void KernelsCudaTest::outer_nesterov_is_bit_identical_to_the_reference() {
  QFETCH(int, format);
  QFETCH(int, numel);

  QCOMPARE(nesterov_difference(linked_launchers(), static_cast<WireFormat>(format), numel), QString());
}

QTEST_APPLESS_MAIN(KernelsCudaTest)
#include "kernels_cuda_test.moc"
