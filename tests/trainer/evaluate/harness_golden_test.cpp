// Scores on tasks are those of lm-evaluation-harness: tests/golden/eval/harness.json holds what it computed of the same
// model on the same task files, by transformers in fp32 (tests/process/eval_harness_test.cpp writes it).
#include <QtTest>

#include <cmath>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/base/json_text.h"
#include "tests/trainer/evaluate/asked_model.h"
#include "trainer/evaluate/evaluate_tasks.h"

namespace {

using namespace atl;
using namespace atl::test;

// Log-likelihoods of up to 200 tokens, of 5 to 10 nats each: fp32 sums in another order move each by some 1e-6.
constexpr double kTolerance = 1e-4;

class HarnessGoldenTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void each_answer_is_as_likely_as_the_harness_says_data();
  void each_answer_is_as_likely_as_the_harness_says();
};

void HarnessGoldenTest::each_answer_is_as_likely_as_the_harness_says_data() {
  QTest::addColumn<QString>("task");
  QTest::addColumn<int>("batch");
  for (const char* name : kTaskNames) {
    QTest::addRow("%s, one at a time", name) << QString(name) << 1;
    QTest::addRow("%s, five at once", name) << QString(name) << 5;
  }
}

void HarnessGoldenTest::each_answer_is_as_likely_as_the_harness_says() {
  QFETCH(QString, task);
  QFETCH(int, batch);
  const std::string name = task.toStdString();
  const std::string file = read_file(std::filesystem::path(ATOLL_TEST_DATA_DIR) / "eval" / "harness.json").value();
  const nlohmann::json golden = parse_bounded_json(file, file.size(), 8).value().at(name);
  const std::int64_t max_length = asked_config().max_position_embeddings;
  ModelText text = byte_text();
  Task asked = load_task(task_file(name)).value();
  const TokenTask tokens = tokenise_task(asked, text, max_length).value();
  const auto engine = asked_engine(batch, longest_input(tokens.pairs, max_length));
  const EvaluatedTask result = evaluate_task(*engine, std::move(asked), tokens, max_length, 1000, {}).value();

  std::size_t item = 0;
  for (const auto& answers : result.likelihoods) {
    for (const LogLikelihood& answer : answers) {
      const nlohmann::json& expected = golden.at("items").at(item++);
      QVERIFY2(std::abs(answer.sum - expected.at(0).get<double>()) < kTolerance,
               qPrintable(QString::number(answer.sum)));
      if (expected.at(1).is_boolean()) QCOMPARE(answer.greedy, expected.at(1).get<bool>());
    }
  }
  QCOMPARE(item, golden.at("items").size());
  for (const Metric& metric : result.scores.metrics) {
    const double expected = golden.at("metrics").at(metric.name).get<double>();
    // Perplexities are exponentials of sums that are kTolerance off at most, over at least one document or word.
    QVERIFY2(std::abs(metric.value - expected) <= 2 * kTolerance * std::abs(expected), metric.name.c_str());
    const std::string error = metric.name + "_stderr";
    QCOMPARE(metric.standard_error.has_value(), golden.at("metrics").contains(error));
    if (!metric.standard_error) continue;
    const double expected_error = golden.at("metrics").at(error).get<double>();
    QVERIFY2(std::abs(*metric.standard_error - expected_error) <= 2 * kTolerance * expected_error, error.c_str());
  }
}

}  // namespace

QTEST_APPLESS_MAIN(HarnessGoldenTest)
#include "harness_golden_test.moc"
