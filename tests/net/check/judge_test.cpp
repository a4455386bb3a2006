// Every row of the node check, on facts of a machine (tests/golden/check) with one figure changed: each threshold from
// both sides.
#include "net/check/judge.h"

#include <fmt/format.h>

#include <QtTest>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/check/run_needs.h"
#include "tests/net/check/judged_cases.h"

using namespace atl;
using namespace atl::test;

Q_DECLARE_METATYPE(FactsChange)

class JudgeTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void each_threshold_from_both_sides_data();
  void each_threshold_from_both_sides();
  void every_row_and_every_threshold_is_tested();
  void a_good_node_passes_every_row();
  void a_machine_without_gpu_is_told_what_it_can_do();
  void cards_that_lie_idle_are_never_said_to_compute();
  void what_is_wrong_with_gpus_fails_only_who_insists_on_them();
  void every_warning_and_failure_has_a_fix();
  void a_run_may_move_every_threshold();
  void a_wrong_policy_is_refused_data();
  void a_wrong_policy_is_refused();
  void a_required_row_that_was_skipped_fails();
  void facts_survive_json();
  void wrong_facts_are_refused();
  void a_report_survives_json();
  void needs_are_the_models();
};

void JudgeTest::each_threshold_from_both_sides_data() {
  QTest::addColumn<QString>("row");
  QTest::addColumn<int>("verdict");
  QTest::addColumn<FactsChange>("change");
  for (const JudgedCase& c : all_cases()) {
    QTest::addRow("%s: %s", c.row, c.name) << QString(c.row) << static_cast<int>(c.verdict) << c.change;
  }
}

void JudgeTest::each_threshold_from_both_sides() {
  QFETCH(const QString, row);
  QFETCH(const int, verdict);
  QFETCH(const FactsChange, change);
  NodeFacts facts = machine("h100x8");
  change(facts);

  const CheckRow judged = judge(row.toStdString(), facts);

  QVERIFY2(static_cast<int>(judged.verdict) == verdict,
           (judged.text + " / " + std::string(to_string(judged.verdict))).c_str());
  QCOMPARE(judged.id, row.toStdString());
  QVERIFY(!judged.text.empty());
}

void JudgeTest::every_row_and_every_threshold_is_tested() {
  std::map<std::string, std::set<Verdict>> seen;
  for (const JudgedCase& c : all_cases()) seen[c.row].insert(c.verdict);

  for (const RowRule& rule : check_rules()) QVERIFY2(seen.contains(std::string(rule.id)), std::string(rule.id).c_str());
  for (const std::string_view name : threshold_names())
    QVERIFY2(seen[std::string(name)].contains(kPass), std::string(name).c_str());
}

void JudgeTest::a_good_node_passes_every_row() {
  const NodeFacts facts = machine("h100x8");
  for (const RowRule& rule : check_rules()) {
    const CheckRow row = judge_row(rule, facts, {});
    if (rule.id == "cpu") continue;
    QVERIFY2(row.verdict == kPass, (row.id + ": " + row.text).c_str());
  }
}

void JudgeTest::a_machine_without_gpu_is_told_what_it_can_do() {
  const NodeFacts facts = machine("desk");

  QVERIFY(judge("cpu", facts).text.find("no GPU: can train models of up to 300 million parameters") !=
          std::string::npos);
  QVERIFY(judge("gpu.model", facts).text.find("it trains on its CPU") != std::string::npos);
  for (const RowRule& rule : check_rules()) {
    const CheckRow row = judge_row(rule, facts, {});
    QVERIFY2(row.verdict != kFail, (row.id + ": " + row.text).c_str());
    if (rule.id.starts_with("gpu.")) QCOMPARE(row.verdict, kSkip);
  }
}

void JudgeTest::cards_that_lie_idle_are_never_said_to_compute() {
  NodeFacts facts = machine("h100x8");
  idle(facts);

  const CheckRow model = judge("gpu.model", facts), cpu = judge("cpu", facts);

  QVERIFY2(model.text.find("left idle, as its owner chose") != std::string::npos, model.text.c_str());
  QVERIFY2(cpu.text.find("GPUs idle") != std::string::npos, cpu.text.c_str());
  for (const RowRule& rule : check_rules()) {
    const CheckRow row = judge_row(rule, facts, {});
    QVERIFY2(row.text.find("GPUs compute") == std::string::npos, row.text.c_str());
  }
  // Who needs the cards is told that they will not do.
  const auto policy = parse_check_policy(R"({"require": ["gpu.memory"]})");
  QVERIFY(policy.ok());
  QCOMPARE(judge("gpu.memory", facts, *policy).verdict, kFail);
}

// By the owner, or by the run.
void JudgeTest::what_is_wrong_with_gpus_fails_only_who_insists_on_them() {
  int seen = 0;
  for (const JudgedCase& c : all_cases()) {
    const std::string id = c.row;
    if ((!id.starts_with("gpu.") && id != "host.shm") || c.verdict != kFail) continue;
    NodeFacts facts = machine("h100x8");
    facts.device = DeviceChoice::kGpu;
    c.change(facts);
    if (facts.gpu.devices.empty() && facts.gpu.problem.empty()) continue;  // nothing is wrong with what is not there
    ++seen;
    const auto judged_with = [&](DeviceChoice device, const CheckPolicy& policy = {}) {
      NodeFacts own = facts;
      own.device = device;
      return judge(id, own, policy);
    };
    const CheckRow asked = judged_with(DeviceChoice::kGpu), any = judged_with(DeviceChoice::kAuto);
    const CheckRow none = judged_with(DeviceChoice::kProcessor);

    QVERIFY2(asked.verdict == kFail, c.name);
    QVERIFY2(id == "host.shm" || any.verdict == kWarn, (id + ": " + c.name).c_str());
    QVERIFY2(id != "host.shm" || any.verdict != kFail, c.name);
    QVERIFY2(any.text.find("the CPU computes") != std::string::npos ||
                 any.fix.find("island.device processor") != std::string::npos,
             (any.text + " / " + any.fix).c_str());
    QVERIFY2(none.verdict == kSkip && none.fix.empty(), c.name);
    const auto policy = parse_check_policy(fmt::format(R"({{"require": ["{}"]}})", id));
    for (const DeviceChoice device : {DeviceChoice::kAuto, DeviceChoice::kProcessor}) {
      QVERIFY2(judged_with(device, *policy).verdict == kFail, c.name);
    }
  }
  QVERIFY(seen > 12);
}

void JudgeTest::every_warning_and_failure_has_a_fix() {
  for (const JudgedCase& c : all_cases()) {
    NodeFacts facts = machine("h100x8");
    c.change(facts);
    const CheckRow row = judge(c.row, facts);
    if (row.verdict == kWarn || row.verdict == kFail) QVERIFY2(!row.fix.empty(), c.row);
    if (row.verdict == kPass) QVERIFY2(row.fix.empty(), c.row);
  }
}

void JudgeTest::a_run_may_move_every_threshold() {
  // Each row, on facts that pass: with limits beyond them it fails.
  NodeFacts facts = machine("h100x8");
  facts.net.clock_offset_seconds = 1;
  for (const std::string_view name : threshold_names()) {
    NodeFacts own = facts;
    if (name == "cpu") cpu_for(1000)(own);
    const bool more_is_better =
        judge(std::string(name), own).verdict == kPass &&
        parse_check_policy(fmt::format(R"({{"thresholds":{{"{}":{{"pass":1e30,"warn":0}}}}}})", name)).ok();
    const std::string limit = more_is_better ? R"({"pass":1e30,"warn":1e29})" : R"({"pass":0,"warn":0})";
    const auto policy = parse_check_policy(fmt::format(R"({{"thresholds":{{"{}":{}}}}})", name, limit));
    QVERIFY2(policy.ok(), policy.ok() ? "" : policy.error().message.c_str());
    QVERIFY2(judge(std::string(name), own, *policy).verdict == kFail, std::string(name).c_str());
  }
}

void JudgeTest::a_wrong_policy_is_refused_data() {
  QTest::addColumn<QByteArray>("text");
  QTest::addColumn<QByteArray>("says");
  QTest::newRow("no JSON") << QByteArray("{") << QByteArray("no JSON");
  QTest::newRow("a list") << QByteArray("[]") << QByteArray("no object");
  QTest::newRow("unknown key") << QByteArray(R"({"requires": []})") << QByteArray("neither");
  QTest::newRow("unknown row required") << QByteArray(R"({"require": ["gpu.colour"]})") << QByteArray("no such row");
  QTest::newRow("unknown threshold") << QByteArray(R"({"thresholds": {"gpu.ecc": {}}})") << QByteArray("these have");
  QTest::newRow("no number") << QByteArray(R"({"thresholds": {"ram": {"pass": "2"}}})") << QByteArray("a number");
  QTest::newRow("negative") << QByteArray(R"({"thresholds": {"ram": {"pass": -2}}})") << QByteArray("a number");
  QTest::newRow("warns stricter") << QByteArray(R"({"thresholds": {"ram": {"pass": 1, "warn": 2}}})")
                                  << QByteArray("stricter");
  QTest::newRow("warns stricter, less is better")
      << QByteArray(R"({"thresholds": {"clock": {"pass": 3, "warn": 2}}})") << QByteArray("stricter");
}

void JudgeTest::a_wrong_policy_is_refused() {
  QFETCH(const QByteArray, text);
  QFETCH(const QByteArray, says);

  const auto policy = parse_check_policy(text.toStdString());

  QVERIFY(!policy.ok());
  QVERIFY2(policy.error().message.find(says.toStdString()) != std::string::npos, policy.error().message.c_str());
}

void JudgeTest::a_required_row_that_was_skipped_fails() {
  const auto policy = parse_check_policy(R"({"require": ["gpu.bf16", "ram"]})");
  const NodeFacts facts = machine("desk");

  const CheckRow row = judge("gpu.bf16", facts, *policy);

  QCOMPARE(row.verdict, kFail);
  QVERIFY2(row.text.find("no NVIDIA driver") != std::string::npos, row.text.c_str());
  QCOMPARE(judge("gpu.hbm", facts, *policy).verdict, kSkip);
  QCOMPARE(judge("ram", machine("h100x8"), *policy).verdict, kPass);
}

void JudgeTest::facts_survive_json() {
  for (const char* name : {"h100x8", "desk"}) {
    const NodeFacts facts = machine(name);
    const auto again = NodeFacts::from_json(facts.to_json().dump());
    QVERIFY(again.ok());
    QCOMPARE(again->to_json().dump(), facts.to_json().dump());
  }
}

void JudgeTest::wrong_facts_are_refused() {
  const std::string good = to_json(machine("h100x8").gpu).dump();
  QVERIFY(gpu_facts_from_json(good).ok());
  for (const char* wrong :
       {R"({"bf16_flops":null})", R"({"bf16_flops":-1})", R"({"celsius":"hot"})", R"({"nvlinks":-3})"}) {
    auto json = nlohmann::json::parse(good);
    const auto change = nlohmann::json::parse(wrong);
    for (const auto& [key, value] : change.items()) json["devices"][0][key] = value;
    QVERIFY2(!gpu_facts_from_json(json.dump()).ok(), wrong);
  }
  QVERIFY(!gpu_facts_from_json("").ok());
  QVERIFY(!gpu_facts_from_json("[]").ok());
  QVERIFY(!gpu_facts_from_json(std::string(300'000, ' ')).ok());
  auto many = nlohmann::json::parse(good);
  many["devices"] = nlohmann::json::array();
  for (int i = 0; i <= 64; ++i) many["devices"].push_back(nlohmann::json::parse(good)["devices"][0]);
  QVERIFY(!gpu_facts_from_json(many.dump()).ok());
}

void JudgeTest::a_report_survives_json() {
  CheckReport report{.software = "atoll 0.1.0", .run_id = "0123456789abcdef", .time = 1763725000.25, .full = true};
  for (const RowRule& rule : check_rules()) report.rows.push_back(judge_row(rule, machine("desk"), {}));

  const auto again = CheckReport::from_json(report.to_json().dump());

  QVERIFY2(again.ok(), again.ok() ? "" : again.error().message.c_str());
  QCOMPARE(again->to_json().dump(), report.to_json().dump());
  QVERIFY(!CheckReport::from_json(R"({"version": 2})").ok());
}

void JudgeTest::needs_are_the_models() {
  RunConfig run;
  run.model_json =
      R"({"vocab_size":128256,"hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8})";
  run.dataset_json = R"({})";
  run.wire = WireFormat::kFp32;
  QVERIFY(!needs_of(run).ok());  // no dataset

  const std::string shard = fmt::format(R"([{{"file":"a.bin","tokens":116,"bytes":264,"sha256":"{:064}"}}])", 0);
  run.dataset_json = fmt::format(
      R"({{"format":"atoll-dataset","version":1,"tokenizer":"bytes","vocab_size":257,"train":{0},"validation":{0}}})",
      shard);
  const auto needs = needs_of(run);

  QVERIFY2(needs.ok(), needs.ok() ? "" : needs.error().message.c_str());
  QCOMPARE(needs->parameters, std::uint64_t{8'030'261'248});  // Llama 3 8B
  QCOMPARE(needs->payload_bytes, 4 * needs->parameters);
  QCOMPARE(needs->round_payload_bytes, needs->payload_bytes);
  run.fragments = 4;
  const auto in_parts = needs_of(run);
  QVERIFY(in_parts.ok());
  QCOMPARE(in_parts->payload_bytes, needs->payload_bytes);
  QVERIFY(in_parts->round_payload_bytes < 0.3 * static_cast<double>(needs->payload_bytes));
  QVERIFY(in_parts->round_payload_bytes >= needs->payload_bytes / 4);
  QCOMPARE(needs->data_bytes, std::uint64_t{2 * 264});
  QCOMPARE(checkpoint_bytes(*needs), 8.0 * 8'030'261'248);
}

QTEST_APPLESS_MAIN(JudgeTest)
#include "judge_test.moc"
