// The emulator runs CUDA's programming model, and names what a kernel does against it.
#include <QtTest>
#include <bit>
#include <limits>
#include <set>

#include "kernels/bf16.h"
#include "tests/cuda_on_cpu/emulator.h"
#include "tests/cuda_on_cpu/emulator_kernels.h"
#include "tests/kernels/device_array.h"

using namespace atl;

Q_DECLARE_METATYPE(Habit)

class EmulatorTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() { cuda_on_cpu::set_seed(1); }
  void a_misuse_is_named_and_what_is_right_is_not_data();
  void a_misuse_is_named_and_what_is_right_is_not();
  void a_failure_names_kernel_block_thread_and_seed();
  void every_thread_of_a_grid_runs_once_at_its_place();
  void a_launch_that_no_gpu_takes_is_refused_data();
  void a_launch_that_no_gpu_takes_is_refused();
  void more_dynamic_shared_memory_is_to_be_asked_for();
  void threads_and_blocks_run_in_another_order_with_another_seed();
  void the_same_seed_gives_the_same_order();
  void shared_memory_is_nan_until_it_is_written();
  void warp_functions_give_what_cuda_says();
  void atomics_of_all_blocks_add_up();
  void arguments_of_a_launch_are_evaluated_once();
  void bf16_is_rounded_to_nearest_even();
  void a_copy_past_the_end_is_refused();
};

void EmulatorTest::a_misuse_is_named_and_what_is_right_is_not_data() {
  QTest::addColumn<Habit>("habit");
  QTest::addColumn<QString>("named");  // empty: nothing is wrong
  const auto add = [](const char* row, Habit habit, const char* named) {
    QTest::newRow(row) << habit << QString(named);
  };
  add("a barrier", Habit::kBarriersAlike, "");
  add("two barriers at once", Habit::kBarriersDiffer, "a divergent barrier");
  add("a barrier of some", Habit::kBarrierOfSome, "wait for one another for ever");
  add("a barrier after a return", Habit::kBarrierAfterSomeReturned, "is at its end");
  add("read after a barrier", Habit::kReadAfterBarrier, "");
  add("read without a barrier", Habit::kReadWithoutBarrier, "a race: a ");
  add("overwrite after a barrier", Habit::kOverwriteAfterBarrier, "");
  add("overwrite without a barrier", Habit::kOverwriteWithoutBarrier, "at other + 0 bytes");
  add("read after a warp's barrier", Habit::kReadAfterWarpBarrier, "");
  add("read without a warp's barrier", Habit::kReadWithoutWarpBarrier, "a race: a ");
  add("mask of half a warp", Habit::kMaskOfHalfAWarp, "");
  add("mask without its caller", Habit::kMaskWithoutCaller, "the mask leaves out the lane that calls");
  add("mask of a returned lane", Habit::kMaskOfReturnedLane, "lane 3");
  add("shuffle from outside the mask", Habit::kShuffleFromOutsideMask, "a shuffle from lane 16");
  add("shuffle of width three", Habit::kShuffleOfWidthThree, "no power of two");
  add("a warp that meets differently", Habit::kWarpMeetsDifferently, "wait for one another for ever");
  add("read past the end", Habit::kReadPastTheEnd, "0 bytes past the end of an allocation of 256");
  add("read before the begin", Habit::kReadBeforeTheBegin, "4 bytes before an allocation of 256");
  add("write past the end", Habit::kWritePastTheEnd, "a write of 4 bytes outside of device memory");
  add("read of host memory", Habit::kReadOfHostMemory, "a read of 4 bytes outside of device memory");
  add("read past shared memory", Habit::kReadPastSharedEnd, "outside of the block's shared memory");
  add("a misaligned vector", Habit::kMisalignedVector, "not a multiple of 16");
  add("atomics of all blocks", Habit::kAtomicFromAllBlocks, "");
  add("writes of all blocks", Habit::kWriteFromAllBlocks, "another block's thread (63, 0, 0) wrote");
  add("atomics and a read", Habit::kAtomicAndRead, "a race: a");
  add("dynamic memory without any", Habit::kDynamicWithoutAny, "of which the launch gives none");
  add("a trap", Habit::kTrap, "__trap");
}

void EmulatorTest::a_misuse_is_named_and_what_is_right_is_not() {
  QFETCH(Habit, habit);
  QFETCH(QString, named);
#ifdef ATOLL_KERNELS_UNCHECKED
  if (habit >= Habit::kReadPastTheEnd || habit == Habit::kReadWithoutBarrier ||
      habit == Habit::kOverwriteWithoutBarrier || habit == Habit::kReadWithoutWarpBarrier) {
    QSKIP("accesses of this build's kernels are not watched");
  }
#endif
#ifndef ATOLL_ANSWERS_ALIGNMENT
  if (habit == Habit::kMisalignedVector) QSKIP("pointers of this build's kernels are not checked");
#endif
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const DeviceArray<float> values(std::vector<float>(64, 0.0f));
    const std::vector<float> host(1);
    const cuda_on_cpu::FailureCatcher catcher;
    cuda_on_cpu::set_seed(seed);

    const cudaError_t error = launch_habit(habit, values.get(), host.data());

    const QString message = QString::fromStdString(catcher.message());
    QCOMPARE(error, named.isEmpty() ? cudaSuccess : cudaErrorLaunchFailure);
    QVERIFY2(named.isEmpty() ? message.isEmpty() : message.contains(named), qPrintable(message));
  }
}

void EmulatorTest::a_failure_names_kernel_block_thread_and_seed() {
  const DeviceArray<float> values(std::vector<float>(64, 0.0f));
  const cuda_on_cpu::FailureCatcher catcher;
  cuda_on_cpu::set_seed(5);

  QCOMPARE(launch_habit(Habit::kTrap, values.get(), nullptr), cudaErrorLaunchFailure);

  const QString message = QString::fromStdString(catcher.message());
  for (const char* part : {"kernel habit_kernel", "emulator_kernels.cu:", "block (", "thread (63, 0, 0)", "seed 5"}) {
    QVERIFY2(message.contains(part), qPrintable(message));
  }
}

void EmulatorTest::every_thread_of_a_grid_runs_once_at_its_place() {
  const dim3 grid(3, 2, 2), block(5, 4, 3);
  const DeviceArray<unsigned> out(std::vector<unsigned>(12 * 60));

  QCOMPARE(launch_places(grid, block, 0, out.get()), cudaSuccess);

  const auto places = out.to_host();
  for (std::size_t i = 0; i < places.size(); ++i) QCOMPARE(places[i], i + 1);
}

void EmulatorTest::a_launch_that_no_gpu_takes_is_refused_data() {
  QTest::addColumn<QList<unsigned>>("shape");  // grid, block, bytes of shared memory
  QTest::newRow("no blocks") << QList<unsigned>{0, 1, 1, 32, 1, 1, 0};
  QTest::newRow("no threads") << QList<unsigned>{1, 1, 1, 32, 0, 1, 0};
  QTest::newRow("1025 threads") << QList<unsigned>{1, 1, 1, 1025, 1, 1, 0};
  QTest::newRow("33 * 32 threads") << QList<unsigned>{1, 1, 1, 33, 32, 1, 0};
  QTest::newRow("65 deep") << QList<unsigned>{1, 1, 1, 1, 1, 65, 0};
  QTest::newRow("65536 in y") << QList<unsigned>{1, 65536, 1, 1, 1, 1, 0};
  QTest::newRow("shared memory") << QList<unsigned>{1, 1, 1, 1, 1, 1, 48 * 1024 + 1};
}

void EmulatorTest::a_launch_that_no_gpu_takes_is_refused() {
  QFETCH(QList<unsigned>, shape);
  const DeviceArray<unsigned> out(std::vector<unsigned>(1, 99u));

  const cudaError_t error =
      launch_places({shape[0], shape[1], shape[2]}, {shape[3], shape[4], shape[5]}, shape[6], out.get());

  QCOMPARE(error, cudaErrorInvalidConfiguration);
  QCOMPARE(out.to_host()[0], 99u);
  QCOMPARE(cudaGetLastError(), cudaSuccess);
}

void EmulatorTest::more_dynamic_shared_memory_is_to_be_asked_for() {
  const DeviceArray<unsigned> out(std::vector<unsigned>(1));
  const auto anything = [] {};
  const void* const kernel = &anything;

  QCOMPARE(launch_places(1, 1, 100'000, out.get()), cudaErrorInvalidConfiguration);
  QCOMPARE(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024 + 1),
           cudaErrorInvalidValue);
  QCOMPARE(cudaGetLastError(), cudaErrorInvalidValue);
  QCOMPARE(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 100'000), cudaSuccess);
  QCOMPARE(launch_places(1, 1, 100'000, out.get()), cudaSuccess);
}

namespace {

std::vector<unsigned> order_of_seed(std::uint64_t seed) {
  const DeviceArray<unsigned> taken(std::vector<unsigned>(1, 0u));
  const DeviceArray<unsigned> order(std::vector<unsigned>(4 * 64));
  cuda_on_cpu::set_seed(seed);
  if (launch_order(4, 64, taken.get(), order.get()) != cudaSuccess) return {};
  return order.to_host();
}

}  // namespace

void EmulatorTest::threads_and_blocks_run_in_another_order_with_another_seed() {
  std::set<std::vector<unsigned>> orders, orders_of_blocks;
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    const auto order = order_of_seed(seed);
    QCOMPARE(std::set<unsigned>(order.begin(), order.end()).size(), std::size_t{256});
    orders.insert(order);
    orders_of_blocks.insert({order[0] / 64, order[64] / 64, order[128] / 64, order[192] / 64});
  }

  QVERIFY(orders.size() >= 12);
  QVERIFY(orders_of_blocks.size() >= 4);
}

void EmulatorTest::the_same_seed_gives_the_same_order() { QCOMPARE(order_of_seed(3), order_of_seed(3)); }

void EmulatorTest::shared_memory_is_nan_until_it_is_written() {
  const DeviceArray<float> out(std::vector<float>(64, 0.0f));

  QCOMPARE(launch_unwritten_shared(out.get()), cudaSuccess);

  for (const float value : out.to_host()) QVERIFY(std::isnan(value));
}

void EmulatorTest::warp_functions_give_what_cuda_says() {
  const DeviceArray<unsigned> out(std::vector<unsigned>(32 * kWarpRows));

  QCOMPARE(launch_warp_functions(out.get()), cudaSuccess);

  const auto got = out.to_host();
  for (unsigned lane = 0; lane < 32; ++lane) {
    const std::array<unsigned, kWarpRows> expected{
        lane / 8 * 8 + 3,
        (lane + 1) % 32,
        lane % 8 < 2 ? lane : lane - 2,
        lane % 16 > 12 ? lane : lane + 3,
        lane ^ 5u,
        (lane & 8u) != 0 ? lane - 8 : lane,  // an earlier segment may be read, a later one not
        lane == 31 ? 31 : lane + 1,
        0x49249249u,
        1u,
        0x11111111u << lane % 4,
        496u,
        static_cast<unsigned>(-16),
        15u,
        // 0 ^ 1 ^ 4 ^ ... ^ 31 * 31
        [] {
          unsigned all = 0;
          for (unsigned i = 0; i < 32; ++i) all ^= i * i;
          return all;
        }(),
    };
    for (std::size_t row = 0; row < expected.size(); ++row) {
      QVERIFY2(got[32 * row + lane] == expected[row],
               qPrintable(QString("row %1 lane %2: %3").arg(row).arg(lane).arg(got[32 * row + lane])));
    }
  }
}

void EmulatorTest::atomics_of_all_blocks_add_up() {
  const DeviceArray<float> sum(std::vector<float>{0.0f});
  const DeviceArray<int> largest(std::vector<int>{-1}), count(std::vector<int>{0});
  const DeviceArray<unsigned> first(std::vector<unsigned>{0u});

  QCOMPARE(launch_atomics(sum.get(), largest.get(), first.get(), count.get()), cudaSuccess);

  QCOMPARE(sum.to_host()[0], 128.0f);
  QCOMPARE(largest.to_host()[0], 127);
  QCOMPARE(first.to_host()[0], 7u);
  QCOMPARE(count.to_host()[0], 64);
}

void EmulatorTest::arguments_of_a_launch_are_evaluated_once() {
  const DeviceArray<int> out(std::vector<int>(64));
  int evaluations = 0;

  QCOMPARE(launch_counted_argument(out.get(), &evaluations), cudaSuccess);

  QCOMPARE(evaluations, 1);
  QCOMPARE(out.to_host(), std::vector<int>(64, 1));
}

void EmulatorTest::bf16_is_rounded_to_nearest_even() {
  std::vector<float> x{1.0f, -0.0f, 3e38f, 3.4028235e38f, std::numeric_limits<float>::infinity(), 1e-40f, 1e-45f};
  for (std::uint32_t i = 0; i < 300; ++i) x.push_back(std::bit_cast<float>(0x3f7f0000u + i * 0x4000u));
  const DeviceArray<float> gpu_x(x), gpu_y(std::vector<float>(x.size()));

  QCOMPARE(launch_bf16(gpu_x.get(), gpu_y.get(), static_cast<int>(x.size())), cudaSuccess);

  std::vector<std::byte> encoded(2 * x.size());
  std::vector<float> expected(x.size());
  encode_bf16(x.data(), x.size(), encoded.data());
  decode_bf16(encoded.data(), x.size(), expected.data());
  QCOMPARE(gpu_y.to_host(), expected);
}

void EmulatorTest::a_copy_past_the_end_is_refused() {
  const DeviceArray<float> x(std::vector<float>(4));
  std::vector<float> host(8);

  QCOMPARE(cudaMemcpy(host.data(), x.get(), 17, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  QCOMPARE(cudaMemcpyAsync(x.get() + 1, host.data(), 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  QCOMPARE(cudaMemsetAsync(x.get(), 0, 16), cudaSuccess);
  QCOMPARE(cudaGetLastError(), cudaErrorInvalidValue);
}

QTEST_APPLESS_MAIN(EmulatorTest)
#include "emulator_test.moc"
