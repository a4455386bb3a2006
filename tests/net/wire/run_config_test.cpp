// A run's configuration as JSON: it comes back as it was, says nothing that programs of before would not know without
// need, and what is wrong in it is named.
#include "net/wire/run_config.h"

#include <QtTest>

#include <nlohmann/json.hpp>

#include "net/model/train_only.h"
#include "net/wire/mesh.h"
#include "tests/net/wire/sample_run.h"

namespace atl {
namespace {

const std::string kHash(64, 'a');

std::string text_of(const RunConfig& run) { return run.to_json().dump(); }

}  // namespace

class RunConfigTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void what_a_run_asks_of_machines_travels_only_where_it_is_said();
  void what_a_run_asks_of_its_states_travels_only_where_it_is_said();
  void a_task_that_no_run_can_have_is_refused_data();
  void a_task_that_no_run_can_have_is_refused();
  void a_run_configuration_survives_a_round_trip();
  void attention_is_told_only_where_it_is_kept_within_documents();
  void what_is_trained_is_told_only_where_it_is_not_everything();
  void a_wrong_run_configuration_names_its_field_data();
  void a_wrong_run_configuration_names_its_field();
  void fragments_share_the_connections_of_an_edge();
};

void RunConfigTest::what_a_run_asks_of_machines_travels_only_where_it_is_said() {
  RunConfig run = sample_run();
  QVERIFY(!run.to_json().contains("check"));  // so that islands of before take it
  run.check_json = R"({"require":["ram"],"thresholds":{"ram":{"pass":3}}})";

  const auto decoded = RunConfig::from_json(text_of(run));

  QVERIFY2(decoded.ok(), decoded.ok() ? "" : decoded.error().message.c_str());
  QCOMPARE(decoded->check_json, run.check_json);
  run.check_json = "[]";
  QVERIFY(!run.validate().ok());
}

void RunConfigTest::what_a_run_asks_of_its_states_travels_only_where_it_is_said() {
  RunConfig run = sample_run();
  QVERIFY(!run.to_json().contains("evaluation"));  // so that islands of before take it
  run.evaluation = {10,
                    {{"hellaswag", TaskKind::kMultipleChoice, 500, 1u << 20, kHash},
                     {"wiki.text-2", TaskKind::kRolling, 1, 7, kHash}}};

  const auto decoded = RunConfig::from_json(text_of(run));

  QVERIFY2(decoded.ok(), decoded.ok() ? "" : decoded.error().message.c_str());
  QCOMPARE(text_of(*decoded), text_of(run));
  QCOMPARE(decoded->evaluation.every, 10u);
  QCOMPARE(decoded->evaluation.tasks.size(), std::size_t{2});
  QCOMPARE(decoded->evaluation.tasks[1].name, std::string("wiki.text-2"));
  QVERIFY(decoded->evaluation.tasks[1].kind == TaskKind::kRolling);
  QVERIFY(decoded->evaluation.is_due(0) && decoded->evaluation.is_due(20) && !decoded->evaluation.is_due(21));
}

void RunConfigTest::a_task_that_no_run_can_have_is_refused_data() {
  QTest::addColumn<QByteArray>("evaluation");
  QTest::addColumn<QByteArray>("says");
  const auto task = [](const char* name, const char* kind = "multiple_choice", const char* bytes = "7") {
    return R"({"name":")" + QByteArray(name) + R"(","kind":")" + kind + R"(","documents":1,"bytes":)" + bytes +
           R"(,"sha256":")" + QByteArray(64, 'a') + "\"}";
  };
  const auto row = [](const char* name, const QByteArray& tasks, const char* says, const char* every = "10") {
    QTest::newRow(name) << R"({"every":)" + QByteArray(every) + R"(,"tasks":[)" + tasks + "]}" << QByteArray(says);
  };
  QByteArray many = task("task-0");
  for (int i = 1; i < 17; ++i) many += "," + task(("task-" + QByteArray::number(i)).constData());
  row("no rounds", task("a"), "tasks without a number of rounds", "0");
  row("no tasks", "", "rounds without tasks");
  row("a name that leads away", task("../a"), "name");
  row("a hidden name", task(".a"), "name");
  row("two of one name", task("a") + "," + task("a"), "two tasks of one name");
  row("a kind that is none", task("a", "essay"), "no kind of task");
  row("a file without bytes", task("a", "multiple_choice", "0"), "asks nothing");
  row("files that are too large", task("a", "multiple_choice", "67108864") + "," + task("b"), "64 MiB");
  row("more than a number holds", task("a", "multiple_choice", "18446744073709551615") + "," + task("b"), "64 MiB");
  row("seventeen tasks", many, "at most 16");
  row("a task that is no object", "7", "evaluation");
}

void RunConfigTest::a_task_that_no_run_can_have_is_refused() {
  QFETCH(const QByteArray, evaluation);
  QFETCH(const QByteArray, says);
  nlohmann::json run = sample_run().to_json();
  run["evaluation"] = nlohmann::json::parse(evaluation.toStdString());

  const auto decoded = RunConfig::from_json(run.dump());

  QVERIFY(!decoded.ok());
  QVERIFY2(decoded.error().message.find(says.toStdString()) != std::string::npos, decoded.error().message.c_str());
}

void RunConfigTest::a_run_configuration_survives_a_round_trip() {
  RunConfig run = sample_run();
  run.wire = WireFormat::kFp32;
  run.inner.learning_rate = 0.1 + 0.2;  // needs all its digits
  run.seed = ~0ull;
  run.straggler_grace = std::chrono::milliseconds(1234);
  run.attention = AttentionScope::kDocument;

  const auto decoded = RunConfig::from_json(text_of(run));

  QVERIFY2(decoded.ok(), decoded.ok() ? "" : decoded.error().message.c_str());
  QCOMPARE(text_of(*decoded), text_of(run));
  QCOMPARE(decoded->inner.learning_rate, run.inner.learning_rate);
  QCOMPARE(decoded->attention, AttentionScope::kDocument);
}

void RunConfigTest::attention_is_told_only_where_it_is_kept_within_documents() {
  nlohmann::json packed = sample_run().to_json();
  QVERIFY(!packed.contains("attention"));  // so that islands of before take it

  QCOMPARE(RunConfig::from_json(packed.dump())->attention, AttentionScope::kPacked);
  packed["attention"] = "packed";
  QCOMPARE(RunConfig::from_json(packed.dump())->attention, AttentionScope::kPacked);
  packed["attention"] = "all";
  QVERIFY(!RunConfig::from_json(packed.dump()).ok());
}

void RunConfigTest::what_is_trained_is_told_only_where_it_is_not_everything() {
  RunConfig run = sample_run();
  nlohmann::json json = run.to_json();
  QVERIFY(!json.contains("train_only"));  // so that islands of before take it
  run.train_only = {"model.layers.1.*", "lm_head.weight"};

  const auto decoded = RunConfig::from_json(text_of(run));

  QVERIFY2(decoded.ok(), decoded.ok() ? "" : decoded.error().message.c_str());
  QCOMPARE(decoded->train_only, run.train_only);
  const std::vector<std::string> too_many(kMostTrainPatterns + 1, "*");
  const std::string too_long(kMostTrainPatternBytes + 1, '*');
  for (const nlohmann::json& wrong :
       {nlohmann::json::array(), nlohmann::json::array({1}), nlohmann::json("*"), nlohmann::json::array({""}),
        nlohmann::json::array({too_long}), nlohmann::json::array({"a\nb"}), nlohmann::json(too_many)}) {
    json["train_only"] = wrong;
    const auto refused = RunConfig::from_json(json.dump());
    QVERIFY2(!refused.ok(), wrong.dump().substr(0, 80).c_str());
    QVERIFY2(refused.error().message.find("train_only") != std::string::npos, refused.error().message.c_str());
  }
}

void RunConfigTest::a_wrong_run_configuration_names_its_field_data() {
  QTest::addColumn<QString>("from");
  QTest::addColumn<QString>("to");
  QTest::addColumn<QString>("says");
  QTest::newRow("inner_steps") << R"("inner_steps":20)"
                               << R"("inner_steps":0)"
                               << "inner_steps = 0 is not between";
  QTest::newRow("momentum") << R"("outer_momentum":0.9)"
                            << R"("outer_momentum":1.0)"
                            << "outer_momentum = 1 is not";
  QTest::newRow("not a number") << R"("outer_momentum":0.9)"
                                << R"("outer_momentum":null)"
                                << "outer_momentum = nan";
  QTest::newRow("fragments") << R"("fragments":1)"
                             << R"("fragments":5)"
                             << "fragments = 5 is not between 1 and 4";
  QTest::newRow("beta2") << R"("beta2":0.95)"
                         << R"("beta2":2.0)"
                         << "inner.beta2";
  QTest::newRow("timeouts") << R"("dead_after_ms":6000)"
                            << R"("dead_after_ms":2500)"
                            << "two heartbeats";
  QTest::newRow("wire") << R"("wire":"int8-block")"
                        << R"("wire":"int3")"
                        << "wire 'int3'";
  QTest::newRow("wire of benchmarks") << R"("wire":"int8-block")"
                                      << R"("wire":"int8-codebook")"
                                      << "a run takes one of fp32, int8-block, bf16, int4-e3m0";
  QTest::newRow("decay without a length") << R"("decay_start_step":0)"
                                          << R"("decay_start_step":900)"
                                          << "say how many steps it takes";
  QTest::newRow("decay within the warm-up") << R"("decay_start_step":0,"decay_steps":0)"
                                            << R"("decay_start_step":39,"decay_steps":10)"
                                            << "begins at step 39, within the 40 steps of the warm-up";
  QTest::newRow("decay that rises")
      << R"("decay_start_step":0,"decay_steps":0,"epsilon":1e-08,"final_learning_rate":0.0003)"
      << R"("decay_start_step":40,"decay_steps":9,"epsilon":1e-08,"final_learning_rate":0.5)"
      << "would decay from 0.003 up to 0.5";
  QTest::newRow("steps beyond all bounds") << R"("decay_steps":0)"
                                           << R"("decay_steps":9007199254740993)"
                                           << "inner.decay_steps = 9007199254740993 is not";
  QTest::newRow("islands") << R"("min_islands":1)"
                           << R"("min_islands":999)"
                           << "min_islands = 999";
  QTest::newRow("model") << R"({\"hidden_size\":64})"
                         << "[]"
                         << "model_json is no JSON object";
  QTest::newRow("run id") << "0123456789abcdef"
                          << "0123456789abcdeX"
                          << "run_id";
  QTest::newRow("version") << R"("version":1)"
                           << R"("version":2)"
                           << "version 2";
  QTest::newRow("unknown field") << R"("seed":1)"
                                 << R"("seed":1,"sead":2)"
                                 << "field 'sead'";
}

void RunConfigTest::a_wrong_run_configuration_names_its_field() {
  QFETCH(QString, from);
  QFETCH(QString, to);
  QFETCH(QString, says);
  QString text = QString::fromStdString(text_of(sample_run()));
  QVERIFY2(text.contains(from), qPrintable(text));

  const auto decoded = RunConfig::from_json(text.replace(from, to).toStdString());

  QVERIFY(!decoded.ok());
  QVERIFY2(QString::fromStdString(decoded.error().message).contains(says), decoded.error().message.c_str());
}

void RunConfigTest::fragments_share_the_connections_of_an_edge() {
  RunConfig run = sample_run();
  run.fragments = 4;
  run.connections_per_edge = 4;
  QVERIFY(run.validate().ok());
  run.connections_per_edge = 5;

  const Status refused = run.validate();

  QVERIFY(!refused.ok());
  QVERIFY2(refused.error().message.find("connections_per_edge = 5 is not between 0 and 4") != std::string::npos,
           refused.error().message.c_str());
}

}  // namespace atl

QTEST_APPLESS_MAIN(atl::RunConfigTest)
#include "run_config_test.moc"
