// What an island makes of the memory that it finds, and of its owner's choice.
#include "trainer/island/memory_plan.h"

#include <QtTest>

#include "kernels/model/gemm.h"

namespace {

using namespace atl;

// 149 million parameters.
ModelConfig model() {
  ModelConfig config;
  config.vocab_size = 32'000;
  config.hidden_size = 1024;
  config.intermediate_size = 2304;
  config.num_hidden_layers = 12;
  config.num_attention_heads = 16;
  config.num_key_value_heads = 4;
  config.head_dim = 64;
  config.tie_word_embeddings = true;
  return config;
}

RunConfig run_config() {
  RunConfig run;
  run.sequences_per_step = 64;
  run.sequence_length = 1024;
  return run;
}

constexpr std::uint64_t kGigabyte = 1'000'000'000;

}  // namespace

class MemoryPlanTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_default_follows_the_memory_there_is();
  void the_owners_choice_stands_and_what_does_not_fit_is_said();
  void less_than_one_sequence_asks_for_is_said();
  void ranks_are_as_many_as_threads_sequences_and_memory_allow_data();
  void ranks_are_as_many_as_threads_sequences_and_memory_allow();
  void bf16_is_for_processors_that_have_it();
  void gpus_take_what_fits_them_data();
  void gpus_take_what_fits_them();
};

void MemoryPlanTest::the_default_follows_the_memory_there_is() {
  const MemoryPlan much = plan_memory(model(), run_config(), {}, 24 * kGigabyte);
  const MemoryPlan less = plan_memory(model(), run_config(), {}, 8 * kGigabyte);

  QCOMPARE(much.island.micro_batch, std::int64_t{4});
  QCOMPARE(less.island.micro_batch, std::int64_t{2});
  for (const MemoryPlan& plan : {much, less}) {
    QVERIFY(plan.needs.most() <= plan.available);
    QVERIFY(!plan.chosen_by_owner);
    QCOMPARE(plan.share, 64u);
    QCOMPARE(plan.trouble(), std::string());
  }
  QVERIFY(
      much.log_line().starts_with("local_ranks=1 precision=fp32 micro_batch=4 of=64 chosen_by=memory recompute=none "));
}

void MemoryPlanTest::the_owners_choice_stands_and_what_does_not_fit_is_said() {
  const MemoryPlan fits = plan_memory(model(), run_config(), {.micro_batch = 8}, 24 * kGigabyte);
  const MemoryPlan again = plan_memory(model(), run_config(), {.micro_batch = 64}, 24 * kGigabyte);
  const MemoryPlan does_not = plan_memory(model(), run_config(), {.micro_batch = 64}, 12 * kGigabyte);

  QCOMPARE(fits.island.micro_batch, std::int64_t{8});
  QVERIFY(fits.chosen_by_owner);
  QCOMPARE(fits.trouble(), std::string());
  QCOMPARE(again.island.micro_batch, std::int64_t{64});
  QCOMPARE(again.island.recompute, Recompute::kAll);
  QCOMPARE(again.trouble(), std::string());
  QCOMPARE(does_not.island.micro_batch, std::int64_t{64});
  QVERIFY2(does_not.trouble().find("island.micro_batch") != std::string::npos, does_not.trouble().c_str());
}

void MemoryPlanTest::less_than_one_sequence_asks_for_is_said() {
  const MemoryPlan plan = plan_memory(model(), run_config(), {}, 4 * kGigabyte);

  QCOMPARE(plan.island.micro_batch, std::int64_t{1});
  QVERIFY2(plan.trouble().find("one sequence") != std::string::npos, plan.trouble().c_str());
}

void MemoryPlanTest::ranks_are_as_many_as_threads_sequences_and_memory_allow_data() {
  QTest::addColumn<int>("threads");
  QTest::addColumn<int>("sequences");
  QTest::addColumn<int>("gigabytes");
  QTest::addColumn<int>("ranks");
  QTest::newRow("one a thread") << 6 << 64 << 64 << 6;
  QTest::newRow("one a sequence") << 16 << 4 << 64 << 4;
  QTest::newRow("fewer where memory is short: half of what does not fit") << 32 << 64 << 24 << 8;
  QTest::newRow("one where nothing fits") << 32 << 64 << 4 << 1;
  QTest::newRow("as many as an engine has at most") << 1024 << 1024 << 1000 << 64;
}

void MemoryPlanTest::ranks_are_as_many_as_threads_sequences_and_memory_allow() {
  QFETCH(const int, threads);
  QFETCH(const int, sequences);
  QFETCH(const int, gigabytes);
  QFETCH(const int, ranks);
  RunConfig run = run_config();
  run.sequences_per_step = static_cast<std::uint32_t>(sequences);
  const std::uint64_t available = static_cast<std::uint64_t>(gigabytes) * kGigabyte;

  QCOMPARE(plan_memory(model(), run, {.threads = threads}, available).island.local_ranks, std::int64_t{ranks});
  QCOMPARE(plan_memory(model(), run, {.local_ranks = 3, .threads = threads}, available).island.local_ranks,
           std::int64_t{3});  // the owner's choice
}

void MemoryPlanTest::bf16_is_for_processors_that_have_it() {
  const MemoryPlan asked = plan_memory(model(), run_config(), {.precision = PrecisionChoice::kBf16}, 64 * kGigabyte);
  const MemoryPlan automatic = plan_memory(model(), run_config(), {}, 64 * kGigabyte);

  const bool has_it = chosen_gemm_kernel() == GemmKernel::kAvx512Bf16;
  QCOMPARE(automatic.island.precision, Precision::kFp32);
  QCOMPARE(asked.island.precision, has_it ? Precision::kBf16 : Precision::kFp32);
  QCOMPARE(asked.lacks_bf16, !has_it);
  QCOMPARE(asked.trouble().empty(), has_it);
  if (has_it) QVERIFY(asked.needs.step < automatic.needs.step * 3 / 5);
}

void MemoryPlanTest::gpus_take_what_fits_them_data() {
  QTest::addColumn<int>("gpus");
  QTest::addColumn<double>("gigabytes");  // free on each
  QTest::addColumn<int>("micro_batch");
  QTest::addColumn<int>("recompute");
  QTest::addColumn<bool>("whole");
  QTest::addColumn<bool>("fits");
  QTest::newRow("one large: 16,384 tokens at once") << 1 << 78.0 << 16 << 0 << false << true;
  QTest::newRow("eight: all of a share") << 8 << 78.0 << 8 << 0 << false << true;
  QTest::newRow("two: both shares in two parts, gathered once") << 2 << 78.0 << 16 << 0 << true << true;
  QTest::newRow("small: fewer at once") << 1 << 4.5 << 2 << 0 << false << true;
  QTest::newRow("smaller: computed again") << 1 << 3.1 << 1 << 2 << false << true;
  QTest::newRow("too small") << 1 << 2.0 << 1 << 2 << false << false;
}

void MemoryPlanTest::gpus_take_what_fits_them() {
  QFETCH(const int, gpus);
  QFETCH(const double, gigabytes);
  QFETCH(const int, micro_batch);
  QFETCH(const int, recompute);
  QFETCH(const bool, whole);
  QFETCH(const bool, fits);

  const auto each = static_cast<std::uint64_t>(gigabytes * 1e9);
  const MemoryPlan plan = plan_gpu_memory(model(), run_config(), {}, gpus, each, 64 * kGigabyte);

  QCOMPARE(plan.island.local_ranks, std::int64_t{gpus});
  QCOMPARE(plan.island.precision, Precision::kBf16);
  QCOMPARE(plan.island.micro_batch, std::int64_t{micro_batch});
  QCOMPARE(static_cast<int>(plan.island.recompute), recompute);
  QCOMPARE(plan.island.keep_gathered, whole);
  QCOMPARE(plan.gpu_bytes <= each, fits);
  QCOMPARE(plan.gpu_trouble().empty(), fits);
  QCOMPARE(plan.trouble(), std::string());     // the machine beside them has room
  QVERIFY(plan.needs.most() < 5 * kGigabyte);  // of the machine: the outer state alone
}

QTEST_APPLESS_MAIN(MemoryPlanTest)
#include "memory_plan_test.moc"
