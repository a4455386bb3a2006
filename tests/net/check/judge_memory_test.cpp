// The row of main memory, where the CPU computes: what the trainer will hold there, activations and all.
#include <fmt/format.h>

#include <QtTest>

#include "net/base/file.h"
#include "net/check/judge.h"
#include "net/check/run_needs.h"

using namespace atl;

namespace {

constexpr Verdict kPass = Verdict::kPass, kWarn = Verdict::kWarn, kFail = Verdict::kFail;

// 149 million parameters, 64 sequences of 1,024 tokens a step.
RunConfig run_of_150m() {
  RunConfig run;
  run.model_json =
      R"({"vocab_size":32000,"hidden_size":1024,"intermediate_size":2304,"num_hidden_layers":12,"num_attention_heads":16,"num_key_value_heads":4,"head_dim":64,"tie_word_embeddings":true})";
  run.dataset_json = fmt::format(
      R"({{"format":"atoll-dataset","version":1,"tokenizer":"bytes","vocab_size":257,"train":{0},"validation":{0}}})",
      fmt::format(R"([{{"file":"a.bin","tokens":116,"bytes":264,"sha256":"{:064}"}}])", 0));
  run.sequences_per_step = 64;
  run.sequence_length = 1024;
  return run;
}

CheckRow judge_ram(const NodeFacts& facts) { return judge_row(*find_rule("ram"), facts, {}); }

// A machine without GPUs.
NodeFacts desk_for(const IslandShape& island, double gigabytes) {
  NodeFacts facts;
  facts.run = needs_of(run_of_150m(), island).value();
  facts.host.ram_bytes = static_cast<std::uint64_t>(gigabytes * 1e9);
  return facts;
}

}  // namespace

class JudgeMemoryTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void check_counts_activations_data();
  void check_counts_activations();
  void work_that_is_kept_takes_memory_and_disk();
  void a_choice_that_does_not_fit_is_judged_as_it_is();
  void cards_take_nothing_off_the_cpu_while_they_lie_idle();
  void its_limits_from_both_sides_data();
  void its_limits_from_both_sides();
};

void JudgeMemoryTest::check_counts_activations_data() {
  QTest::addColumn<int>("local_ranks");
  QTest::addColumn<int>("micro_batch");  // 0: not chosen
  QTest::addColumn<double>("memory");    // GB
  QTest::addColumn<int>("verdict");
  QTest::addColumn<QByteArray>("says");
  const auto row = [](const char* name, int ranks, int micro_batch, double memory, Verdict verdict, const char* says) {
    QTest::newRow(name) << ranks << micro_batch << memory << static_cast<int>(verdict) << QByteArray(says);
  };
  // Model, optimiser and outer state alone are 3 GB, of which twice is there in every row.
  row("four sequences at once", 1, 0, 24, kPass, "with 4 sequences of 1024 tokens computed at once");
  row("fewer where four do not fit", 1, 0, 8.2, kWarn, "with 2 sequences of 1024 tokens");
  row("not even one", 1, 0, 6.4, kFail, "with one sequence of 1024 tokens");
  row("eight ranks take eight times the activations", 8, 0, 8, kFail, "with one sequence of 1024 tokens");
  row("a whole batch, as the owner chose", 1, 64, 12, kFail, "with 64 sequences of 1024 tokens");
  row("a whole batch, and room for it with activations computed again", 1, 64, 24, kPass,
      "with 64 sequences of 1024 tokens");
  row("a whole batch, and room for it", 1, 64, 80, kPass, "with 64 sequences of 1024 tokens");
}

void JudgeMemoryTest::check_counts_activations() {
  QFETCH(const int, local_ranks);
  QFETCH(const int, micro_batch);
  QFETCH(const double, memory);
  QFETCH(const int, verdict);
  QFETCH(const QByteArray, says);

  const CheckRow row = judge_ram(desk_for({local_ranks, micro_batch}, memory));

  QVERIFY2(QByteArray::fromStdString(row.text).contains(says), row.text.c_str());
  QVERIFY2(static_cast<int>(row.verdict) == verdict, row.text.c_str());
  QCOMPARE(row.fix.empty(), row.verdict == kPass);
}

// 12 bytes a parameter are copied, and lie on the disk twice while they are written.
void JudgeMemoryTest::work_that_is_kept_takes_memory_and_disk() {
  const RunConfig run = run_of_150m();
  const RunNeeds without = needs_of(run, {.micro_batch = 2}).value();
  const RunNeeds with = needs_of(run, {.micro_batch = 2, .keeps_work = true}).value();
  QCOMPARE(with.work_bytes, 24 * with.parameters);
  QCOMPARE(without.work_bytes, std::uint64_t{0});
  QVERIFY(disk_bytes(with, 1) > disk_bytes(without, 1) + static_cast<double>(with.work_bytes));
  // A step of so many sequences takes more than what it has to make room for between steps.
  const RunNeeds large = needs_of(run, {.micro_batch = 64}).value();
  const RunNeeds large_with = needs_of(run, {.micro_batch = 64, .keeps_work = true}).value();
  QCOMPARE(large_with.micro_batches.back().bytes, large.micro_batches.back().bytes + 12 * with.parameters);
}

void JudgeMemoryTest::a_choice_that_does_not_fit_is_judged_as_it_is() {
  const CheckRow chosen = judge_ram(desk_for({1, 64}, 12));
  const CheckRow left_open = judge_ram(desk_for({1, 0}, 4));

  QVERIFY2(chosen.fix.find("island.micro_batch") != std::string::npos, chosen.fix.c_str());
  QVERIFY2(left_open.fix.find("smaller model") != std::string::npos, left_open.fix.c_str());
}

void JudgeMemoryTest::cards_take_nothing_off_the_cpu_while_they_lie_idle() {
  NodeFacts facts = desk_for({1, 0}, 8.2);
  const CheckRow without = judge_ram(facts);
  facts.gpu.devices.resize(1);
  facts.device = DeviceChoice::kProcessor;

  const CheckRow idle = judge_ram(facts);
  facts.device = DeviceChoice::kGpu;
  const CheckRow computing = judge_ram(facts);

  QCOMPARE(idle.text, without.text);
  QCOMPARE(idle.verdict, without.verdict);
  QVERIFY(computing.text != without.text);
}

void JudgeMemoryTest::its_limits_from_both_sides_data() {
  QTest::addColumn<double>("memory");  // GB
  QTest::addColumn<double>("unused");  // of it, GB; 0: not known
  QTest::addColumn<int>("verdict");
  const auto row = [](const char* name, double memory, double unused, Verdict verdict) {
    QTest::newRow(name) << memory << unused << static_cast<int>(verdict);
  };
  row("room for four", 20, 0, kPass);
  row("room for one and a quarter more", 12.5, 0, kPass);
  row("a little less", 12.4, 0, kWarn);
  row("room for just one", 10, 0, kWarn);
  row("less than that", 9.9, 0, kFail);
  row("others use too much of it", 20, 9.9, kWarn);
  row("others use some of it", 20, 10, kPass);
}

void JudgeMemoryTest::its_limits_from_both_sides() {
  QFETCH(const double, memory);
  QFETCH(const double, unused);
  QFETCH(const int, verdict);
  NodeFacts facts = desk_for({}, memory);
  facts.run->micro_batches = {{1, Recompute::kNone, 10'000'000'000},
                              {2, Recompute::kNone, 12'000'000'000},
                              {4, Recompute::kNone, 16'000'000'000}};
  if (unused > 0) facts.host.ram_available_bytes = static_cast<std::uint64_t>(unused * 1e9);

  const CheckRow row = judge_ram(facts);

  QVERIFY2(static_cast<int>(row.verdict) == verdict, row.text.c_str());
  QCOMPARE(row.fix.empty(), row.verdict == kPass);
}

QTEST_APPLESS_MAIN(JudgeMemoryTest)
#include "judge_memory_test.moc"
