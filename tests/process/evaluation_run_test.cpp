// A run that tries tasks on its outer states, with programs: `atoll hub init --evaluate`. The curve is what `atoll
// eval` says of the same states, and outlives the hub.
#include <QtCore/QProcess>
#include <QtTest/QTest>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "tests/process/run_parts.h"
#include "tests/process/scene.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr std::uint32_t kRounds = 3;

std::string choices() {
  std::string lines = "{\"kind\": \"multiple_choice\", \"task\": \"rings\"}\n";
  for (int i = 0; i < 6; ++i) {
    lines += "{\"context\": \"line " + std::to_string(i) +
             " of a ring of\", \"choices\": [\"islands\", \"gold and of stone\", \"sea\"], \"gold\": " +
             std::to_string(i % 3) + "}\n";
  }
  return lines;
}

}  // namespace

class EvaluationRunTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void what_no_run_can_ask_is_refused_before_anything_is_made_data();
  void what_no_run_can_ask_is_refused_before_anything_is_made();
  void the_run_says_what_is_asked_of_its_states();
  void the_curve_begins_with_the_first_state_and_ends_with_the_last();
  void its_last_point_is_what_eval_says_of_the_model();
  void the_card_of_its_model_names_who_trained_it();
  void an_export_of_another_round_is_that_round();
  void the_curve_outlives_the_hub();
  void a_backup_has_the_curve_and_the_tasks();

 private:
  ProgramOutcome hub(std::vector<std::string> arguments, const std::string& home = "hub") const {
    arguments.insert(arguments.begin(), "hub");
    arguments.insert(arguments.end(), {"--home", scene_.path(home).string()});
    return scene_.run(arguments);
  }
  nlohmann::json evaluations() const {
    const auto state = nlohmann::json::parse(hub({"status", "--json"}).out, nullptr, false);
    return state.is_object() ? state.at("evaluations") : nlohmann::json::array();
  }

  Scene scene_;
  nlohmann::json curves_;  // of the finished run
};

void EvaluationRunTest::initTestCase() {
  require(write_file_atomically(scene_.path("rings.jsonl"), choices(), FileMode::kPublic));
  require(write_file_atomically(scene_.path("tides.jsonl"),
                                "{\"kind\": \"loglikelihood_rolling\", \"task\": \"tides\"}\n"
                                "{\"text\": \"the tide comes and the tide goes around the ring of islands\"}\n",
                                FileMode::kPublic));
  scene_.make_hub("hub", {"--inner-steps", "2", "--batch", "2", "--validate-every", "2", "--rounds",
                          std::to_string(kRounds), "--evaluate", scene_.path("rings.jsonl").string(), "--evaluate",
                          scene_.path("tides.jsonl").string(), "--evaluate-every", "2"});
}

void EvaluationRunTest::what_no_run_can_ask_is_refused_before_anything_is_made_data() {
  QTest::addColumn<QByteArray>("content");
  QTest::addColumn<QByteArray>("says");
  QTest::newRow("no file") << QByteArray() << QByteArray("cannot open");
  QTest::newRow("no task") << QByteArray("tea\n") << QByteArray("line 1");
  QTest::newRow("no question") << QByteArray("{\"kind\": \"multiple_choice\"}\n") << QByteArray("asks nothing");
  QTest::newRow("a name that is none") << QByteArray(
                                              "{\"kind\": \"loglikelihood_rolling\", \"task\": \"a/b\"}\n"
                                              "{\"text\": \"tea\"}\n")
                                       << QByteArray("cannot have a task called 'a/b'");
  QTest::newRow("a name that stands twice")
      << QByteArray("{\"kind\": \"loglikelihood_rolling\", \"task\": \"rings\"}\n{\"text\": \"tea\"}\n")
      << QByteArray("another task is called rings");
}

void EvaluationRunTest::what_no_run_can_ask_is_refused_before_anything_is_made() {
  QFETCH(const QByteArray, content);
  QFETCH(const QByteArray, says);
  const auto path = scene_.path("wrong.jsonl");
  std::filesystem::remove(path);
  if (!content.isEmpty()) require(write_file_atomically(path, content.toStdString(), FileMode::kPublic));

  const ProgramOutcome outcome = hub({"init", "--data", scene_.path("data").string(), "--name", "wrong", "--evaluate",
                                      scene_.path("rings.jsonl").string(), "--evaluate", path.string()},
                                     "wrong");

  QVERIFY(outcome.exit_code != 0);
  QVERIFY2(outcome.err.find(says.toStdString()) != std::string::npos, outcome.err.c_str());
  QVERIFY(!std::filesystem::exists(scene_.path("wrong")));
}

void EvaluationRunTest::the_run_says_what_is_asked_of_its_states() {
  const auto run = nlohmann::json::parse(*read_file(scene_.path("hub") / "run.json"));
  QVERIFY(run.at("evaluation").at("every") == 2);
  QCOMPARE(run.at("evaluation").at("tasks").size(), std::size_t{2});
  QVERIFY(run.at("evaluation").at("tasks")[0].at("name") == "rings");
  QVERIFY(run.at("evaluation").at("tasks")[0].at("documents") == 6);
}

void EvaluationRunTest::the_curve_begins_with_the_first_state_and_ends_with_the_last() {
  scene_.serve_hub();
  const ProgramOutcome island = scene_.run({"join", scene_.invite(), "--yes", "--threads", "1", "--listen",
                                            "127.0.0.1:0", "--home", scene_.path("island").string()});
  QVERIFY2(island.exit_code == 0, island.err.c_str());  // it ends with the run
  const std::string next = "the run is finished; its model: atoll export --home " + scene_.path("island").string();
  QVERIFY2(island.out.find(next) != std::string::npos, island.out.c_str());

  curves_ = evaluations();

  QCOMPARE(curves_.size(), std::size_t{2});
  for (const auto& curve : curves_) {
    QVERIFY(curve.at("points").front().at("outer_step") == 0);
    QVERIFY(curve.at("points").back().at("outer_step") == kRounds);
    QCOMPARE(curve.at("newest").size(), std::size_t{3});
  }
  QVERIFY(curves_[0].at("metric") == "acc");
  QVERIFY(curves_[1].at("metric") == "bits_per_byte");
  // Fresh parameters know nothing: 256 bytes and an end are about as likely.
  QVERIFY(std::abs(curves_[1].at("points").front().at("value").get<double>() - std::log2(257)) < 1);
  QVERIFY(curves_[1].at("points").back().at("value") < curves_[1].at("points").front().at("value"));
  const std::string status = hub({"status"}).out;
  QVERIFY2(status.find("rings: acc ") != std::string::npos, status.c_str());
}

void EvaluationRunTest::its_last_point_is_what_eval_says_of_the_model() {
  const ProgramOutcome outcome =
      scene_.run({"eval", "--home", scene_.path("island").string(), "--task", scene_.path("rings.jsonl").string(),
                  "--task", scene_.path("tides.jsonl").string(), "--threads", "1", "--json"});
  QVERIFY2(outcome.exit_code == 0, outcome.err.c_str());
  const auto results = nlohmann::json::parse(outcome.out).at("results");
  for (const auto& curve : curves_) {
    for (const auto& figure : curve.at("newest")) {
      const std::string key = figure.at("metric").get<std::string>() + ",none";
      const double said = results.at(curve.at("task").get<std::string>()).at(key);
      QVERIFY(std::abs(figure.at("value").get<double>() - said) <= 1e-4 * said);
    }
  }
}

void EvaluationRunTest::the_card_of_its_model_names_who_trained_it() {
  const ProgramOutcome outcome = scene_.run(
      {"export", "--home", scene_.path("island").string(), "--output", scene_.path("model").string(), "--json"});
  QVERIFY2(outcome.exit_code == 0, outcome.err.c_str());
  const std::string card = *read_file(scene_.path("model") / "README.md");
  QVERIFY2(card.find("## Contributors") != std::string::npos, card.c_str());
  QVERIFY2(card.find(" | " + std::to_string(kRounds) + " |\n") != std::string::npos, card.c_str());
  QVERIFY2(card.find("| licence | unknown |") != std::string::npos || card.find("% | ") != std::string::npos,
           card.c_str());
}

void EvaluationRunTest::an_export_of_another_round_is_that_round() {
  const auto exported = [&](const std::string& round) {
    return scene_.run({"export", "--home", scene_.path("island").string(), "--output",
                       scene_.path("round " + round).string(), "--round", round, "--json"});
  };
  const ProgramOutcome first = exported("2");
  QVERIFY2(first.exit_code == 0, first.err.c_str());
  QVERIFY(nlohmann::json::parse(first.out).at("outer_step") == 2);
  const ProgramOutcome none = exported("77");
  QVERIFY(none.exit_code != 0);
  QVERIFY2(none.err.find("the state after round 77") != std::string::npos, none.err.c_str());
}

void EvaluationRunTest::the_curve_outlives_the_hub() {
  scene_.kill_hub();
  scene_.serve_hub();
  QCOMPARE(QString::fromStdString(evaluations().dump()), QString::fromStdString(curves_.dump()));
}

void EvaluationRunTest::a_backup_has_the_curve_and_the_tasks() {
  const std::string file = scene_.path("hub.tar").string();
  QCOMPARE(hub({"backup", file}).exit_code, 0);
  scene_.kill_hub();
  std::filesystem::rename(scene_.path("hub"), scene_.path("lost"));
  const ProgramOutcome restored = hub({"restore", file});
  QVERIFY2(restored.exit_code == 0, restored.err.c_str());

  scene_.serve_hub();

  QCOMPARE(QString::fromStdString(evaluations().dump()), QString::fromStdString(curves_.dump()));
  for (const auto& entry : std::filesystem::directory_iterator(scene_.path("lost") / "evaluation")) {
    QCOMPARE(*read_file(scene_.path("hub") / "evaluation" / entry.path().filename()), *read_file(entry.path()));
  }
}

QTEST_GUILESS_MAIN(EvaluationRunTest)
#include "evaluation_run_test.moc"
