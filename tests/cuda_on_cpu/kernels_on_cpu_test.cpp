// The CUDA kernels, run on the CPU, give the same bits as the plain ones, in whatever order their threads run; and a
// kernel with a mistake is told from one without.
#include <dlfcn.h>

#include <QtTest>

#include "tests/cuda_on_cpu/emulator.h"
#include "tests/kernels/kernels_cuda_cases.h"

using namespace atl;

class KernelsOnCpuTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void codec_is_bit_identical_to_the_reference_data() { add_codec_rows(); }
  void codec_is_bit_identical_to_the_reference();
  void formats_that_are_not_here_are_refused();
  void squared_norm_is_bit_identical_to_the_reference_data() { add_norm_rows(); }
  void squared_norm_is_bit_identical_to_the_reference();
  void squared_norm_of_three_levels_is_bit_identical_to_the_reference();
  void outer_nesterov_is_bit_identical_to_the_reference_data() { add_nesterov_rows(); }
  void outer_nesterov_is_bit_identical_to_the_reference();
  void a_planted_mistake_is_found_data();
  void a_planted_mistake_is_found();
};

namespace {

// Of a short input many orders are tried; of a long one, whose blocks are many, one does.
std::uint64_t seeds_for(int numel) { return numel > 10'000 ? 1 : 4; }

// What the kernels of the topic differ in from the plain code, or what the emulator found; empty if nothing.
QString difference_of(const CudaLaunchers& cuda, const QString& topic) {
  const cuda_on_cpu::FailureCatcher catcher;
  QString found;
  for (std::uint64_t seed = 1; seed <= 4 && found.isEmpty(); ++seed) {
    cuda_on_cpu::set_seed(seed);
    for (const int numel : {1, 129, 255, 257, 4099}) {
      if (!found.isEmpty()) break;
      const auto size = static_cast<std::size_t>(numel);
      if (topic == "norm") found = norm_difference(cuda, values_of_kind("heavy tails", size));
      if (topic == "nesterov") found = nesterov_difference(cuda, WireFormat::kInt8Block, numel);
      for (const char* kind : {"heavy tails", "ties"}) {
        for (const WireFormat format : formats_on_gpu()) {
          if (found.isEmpty() && topic == wire_format_name(format).data()) {
            found = codec_difference(cuda, format, kind, numel);
          }
        }
      }
    }
  }
  return catcher.message().empty() ? found : QString::fromStdString(catcher.message());
}

}  // namespace

void KernelsOnCpuTest::codec_is_bit_identical_to_the_reference() {
  QFETCH(int, format);
  QFETCH(QString, kind);
  QFETCH(int, numel);

  for (std::uint64_t seed = 1; seed <= seeds_for(numel); ++seed) {
    cuda_on_cpu::set_seed(seed);
    QCOMPARE(codec_difference(linked_launchers(), static_cast<WireFormat>(format), kind, numel), QString());
  }
}

void KernelsOnCpuTest::formats_that_are_not_here_are_refused() {
  const DeviceArray<float> x(std::vector<float>(1));
  const DeviceArray<std::byte> bytes(std::vector<std::byte>(2048));

  QCOMPARE(launch_encode(WireFormat::kInt8Codebook, x.get(), 1, bytes.get(), nullptr), cudaErrorInvalidValue);
  QCOMPARE(launch_decode(WireFormat::kFp32, bytes.get(), 1, x.get(), nullptr), cudaErrorInvalidValue);
}

void KernelsOnCpuTest::squared_norm_is_bit_identical_to_the_reference() {
  QFETCH(QString, kind);
  QFETCH(int, numel);

  for (std::uint64_t seed = 1; seed <= seeds_for(numel); ++seed) {
    cuda_on_cpu::set_seed(seed);
    QCOMPARE(norm_difference(linked_launchers(), values_of_kind(kind, static_cast<std::size_t>(numel))), QString());
  }
}

void KernelsOnCpuTest::squared_norm_of_three_levels_is_bit_identical_to_the_reference() {
  QCOMPARE(norm_difference(linked_launchers(), values_of_three_levels()), QString());
}

void KernelsOnCpuTest::outer_nesterov_is_bit_identical_to_the_reference() {
  QFETCH(int, format);
  QFETCH(int, numel);

  for (std::uint64_t seed = 1; seed <= seeds_for(numel); ++seed) {
    cuda_on_cpu::set_seed(seed);
    QCOMPARE(nesterov_difference(linked_launchers(), static_cast<WireFormat>(format), numel), QString());
  }
}

void KernelsOnCpuTest::a_planted_mistake_is_found_data() {
  QTest::addColumn<QString>("topic");
  QTest::newRow("planted_bf16_rounding") << "bf16";
  QTest::newRow("planted_int4_e3m0_halves") << "int4-e3m0";
  QTest::newRow("planted_int8_block_lane") << "int8-block";
  QTest::newRow("planted_int8_block_mask") << "int8-block";
  QTest::newRow("planted_reduce_width") << "norm";
#ifndef ATOLL_KERNELS_UNCHECKED  // an access past the end, of which nothing else comes
  QTest::newRow("planted_bf16_tail") << "bf16";
  QTest::newRow("planted_outer_nesterov_end") << "nesterov";
#endif
}

void KernelsOnCpuTest::a_planted_mistake_is_found() {
  QFETCH(QString, topic);
  const QString path = QString("%1/%2.so").arg(ATOLL_PLANTED_DIR, QTest::currentDataTag());
  void* const library = dlopen(qPrintable(path), RTLD_NOW | RTLD_LOCAL);
  QVERIFY2(library != nullptr, dlerror());
  const auto launchers_of = reinterpret_cast<void (*)(CudaLaunchers*)>(dlsym(library, "atoll_planted_launchers"));
  QVERIFY(launchers_of != nullptr);
  CudaLaunchers planted{};
  launchers_of(&planted);

  const QString without = difference_of(linked_launchers(), topic);
  const QString with = difference_of(planted, topic);

  QCOMPARE(without, QString());
  QVERIFY(!with.isEmpty());
  qInfo("%s", qPrintable(with));
}

QTEST_APPLESS_MAIN(KernelsOnCpuTest)
#include "kernels_on_cpu_test.moc"
