// What an island makes of the memory that it finds, and of its owner's choice.
#include "trainer/island/memory_plan.h"

#include <QtTest>

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
};

void MemoryPlanTest::the_default_follows_the_memory_there_is() {
  const MemoryPlan much = plan_memory(model(), run_config(), {}, 24 * kGigabyte);
  const MemoryPlan less = plan_memory(model(), run_config(), {}, 8 * kGigabyte);

  QCOMPARE(much.micro_batch, 4u);
  QCOMPARE(less.micro_batch, 2u);
  for (const MemoryPlan& plan : {much, less}) {
    QVERIFY(plan.needs.most() <= plan.available);
    QVERIFY(!plan.chosen_by_owner);
    QCOMPARE(plan.share, 64u);
    QCOMPARE(plan.trouble(), std::string());
  }
  QVERIFY(much.log_line().starts_with("micro_batch=4 of=64 chosen_by=memory "));
}

void MemoryPlanTest::the_owners_choice_stands_and_what_does_not_fit_is_said() {
  const MemoryPlan fits = plan_memory(model(), run_config(), {.micro_batch = 8}, 24 * kGigabyte);
  const MemoryPlan does_not = plan_memory(model(), run_config(), {.micro_batch = 64}, 24 * kGigabyte);

  QCOMPARE(fits.micro_batch, 8u);
  QVERIFY(fits.chosen_by_owner);
  QCOMPARE(fits.trouble(), std::string());
  QCOMPARE(does_not.micro_batch, 64u);
  QVERIFY2(does_not.trouble().find("island.micro_batch") != std::string::npos, does_not.trouble().c_str());
}

void MemoryPlanTest::less_than_one_sequence_asks_for_is_said() {
  const MemoryPlan plan = plan_memory(model(), run_config(), {}, 4 * kGigabyte);

  QCOMPARE(plan.micro_batch, 1u);
  QVERIFY2(plan.trouble().find("one sequence") != std::string::npos, plan.trouble().c_str());
}

QTEST_APPLESS_MAIN(MemoryPlanTest)
#include "memory_plan_test.moc"
