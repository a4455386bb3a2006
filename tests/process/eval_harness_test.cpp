// `atoll eval` scores tasks as lm-evaluation-harness does: the same model directory and the same task files, asked by
// `atoll eval` and by the harness through transformers. Needs a Python with lm_eval, torch and transformers, which
// ATOLL_LM_EVAL_PYTHON names; without it this is skipped, and tests/trainer/evaluate/harness_golden_test.cpp compares
// with what the harness said once. ATOLL_EVAL_GOLDEN names a file to which its answers are written, for that test.
#include <QtCore/QProcess>
#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <cmath>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/model_files/model_writer.h"
#include "tests/process/program.h"
#include "tests/trainer/evaluate/asked_model.h"

using namespace atl;
using namespace atl::test;

namespace {

// Log-likelihoods of up to 200 tokens, of 5 to 10 nats each: fp32 sums in another order move each by some 1e-6.
constexpr double kTolerance = 1e-4;
constexpr char kScript[] = ATOLL_TEST_DATA_DIR "/../process/harness_results.py";
constexpr int kPythonMilliseconds = 300'000;  // to import torch from a cold disk, most of it

}  // namespace

class EvalHarnessTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void the_harness_says_the_same_of_the_same_model();
  void samples_are_the_same_for_the_same_seed();
  void what_cannot_be_done_is_refused_with_what_to_do_data();
  void what_cannot_be_done_is_refused_with_what_to_do();

 private:
  std::string path(const char* name) const { return directory_.filePath(name).toStdString(); }
  ProgramOutcome atoll(const std::vector<std::string>& arguments) const {
    return outcome_of(*start_atoll(arguments, QProcessEnvironment::systemEnvironment()));
  }
  nlohmann::json harness(const QString& python) const;

  QTemporaryDir directory_;
};

void EvalHarnessTest::initTestCase() {
  const Status written = write_model_directory(path("model"), asked_config(), asked_parameters());
  QVERIFY2(written.ok(), written.ok() ? "" : written.error().message.c_str());
}

nlohmann::json EvalHarnessTest::harness(const QString& python) const {
  QStringList arguments{kScript, directory_.filePath("model"), QString::number(asked_config().max_position_embeddings)};
  for (const char* name : kTaskNames) arguments << QString::fromStdString(task_file(name).string());
  QProcess process;
  process.start(python, arguments);
  const bool ended = process.waitForFinished(kPythonMilliseconds) && process.exitCode() == 0;
  if (!ended) qFatal("%s %s: %s", qPrintable(python), kScript, process.readAllStandardError().constData());
  const QByteArray lines = process.readAllStandardOutput().trimmed();
  return nlohmann::json::parse(lines.mid(lines.lastIndexOf('\n') + 1).toStdString());
}

void EvalHarnessTest::the_harness_says_the_same_of_the_same_model() {
  const QString python = qEnvironmentVariable("ATOLL_LM_EVAL_PYTHON");
  if (python.isEmpty()) QSKIP("ATOLL_LM_EVAL_PYTHON names no Python with lm_eval, torch and transformers");
  const nlohmann::json expected = harness(python);
  if (const QString golden = qEnvironmentVariable("ATOLL_EVAL_GOLDEN"); !golden.isEmpty()) {
    QVERIFY(write_file_atomically(golden.toStdString(), expected.dump(1) + "\n", FileMode::kPublic).ok());
  }
  std::vector<std::string> arguments{"eval",   "--model",  path("model"),   "--bootstrap",  "1000",
                                     "--json", "--output", path("results"), "--log-samples"};
  for (const char* name : kTaskNames) arguments.insert(arguments.end(), {"--task", task_file(name).string()});
  const ProgramOutcome outcome = atoll(arguments);
  QVERIFY2(outcome.exit_code == 0, outcome.err.c_str());
  const nlohmann::json results = nlohmann::json::parse(outcome.out).at("results");

  for (const char* name : kTaskNames) {
    for (const auto& [metric, value] : expected.at(name).at("metrics").items()) {
      const double ours = results.at(name).at(metric + ",none").get<double>();
      const auto theirs = value.get<double>();
      QVERIFY2(std::abs(ours - theirs) <= 2 * kTolerance * std::abs(theirs),
               (std::string(name) + " " + metric).c_str());
    }
    // The samples, document by document.
    std::size_t item = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path("results"))) {
      if (!entry.path().filename().string().starts_with(std::string("samples_") + name + "_2")) continue;
      QFile file(QString::fromStdString(entry.path().string()));
      QVERIFY(file.open(QIODevice::ReadOnly));
      while (!file.atEnd()) {
        const nlohmann::json sample = nlohmann::json::parse(file.readLine().toStdString());
        for (const auto& answer : sample.at("filtered_resps")) {
          const auto& theirs = expected.at(name).at("items").at(item++);
          QVERIFY(std::abs(answer.at(0).get<double>() - theirs.at(0).get<double>()) < kTolerance);
          if (theirs.at(1).is_boolean()) QCOMPARE(answer.at(1).get<bool>(), theirs.at(1).get<bool>());
        }
      }
    }
    QCOMPARE(item, expected.at(name).at("items").size());
  }
}

void EvalHarnessTest::samples_are_the_same_for_the_same_seed() {
  const std::vector<std::string> arguments{"sample", "--model",  path("model"), "--prompt", "The tide", "--prompt",
                                           "-x",     "--tokens", "40",          "--seed",   "5",        "--json"};
  const ProgramOutcome first = atoll(arguments), second = atoll(arguments);
  QVERIFY2(first.exit_code == 0, first.err.c_str());
  QCOMPARE(first.out, second.out);
  const std::size_t end = first.out.find('\n');
  const auto one = nlohmann::json::parse(first.out.substr(0, end)), two = nlohmann::json::parse(first.out.substr(end));
  QCOMPARE(one.at("prompt").get<std::string>(), std::string("The tide"));
  QCOMPARE(two.at("prompt").get<std::string>(), std::string("-x"));
  QVERIFY(one.at("continuation") != two.at("continuation"));
}

void EvalHarnessTest::what_cannot_be_done_is_refused_with_what_to_do_data() {
  QTest::addColumn<QStringList>("arguments");
  QTest::addColumn<QString>("words");
  QTest::newRow("nothing to be tried on") << QStringList{"eval"} << "--task FILE";
  QTest::newRow("a task file that is none")
      << QStringList{"eval", "--task", directory_.filePath("model/config.json")} << "line 1";
  QTest::newRow("more context than the model takes")
      << QStringList{"eval", "--max-length", "161", "--task", QString::fromStdString(task_file("pages").string())}
      << "160 tokens that this model takes";
  QTest::newRow("a file of prompts that is not there")
      << QStringList{"sample", "--prompts", directory_.filePath("nowhere.jsonl")} << "nowhere.jsonl";
}

void EvalHarnessTest::what_cannot_be_done_is_refused_with_what_to_do() {
  QFETCH(QStringList, arguments);
  QFETCH(QString, words);
  std::vector<std::string> all;
  for (const QString& argument : arguments) all.push_back(argument.toStdString());
  all.insert(all.end(), {"--model", path("model")});
  const ProgramOutcome outcome = atoll(all);
  QVERIFY(outcome.exit_code != 0);
  QVERIFY2(outcome.err.find(words.toStdString()) != std::string::npos, outcome.err.c_str());
}

QTEST_GUILESS_MAIN(EvalHarnessTest)
#include "eval_harness_test.moc"
