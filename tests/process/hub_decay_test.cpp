// `atoll hub decay` with programs: an organiser lets the learning rate of a run fall that has no decay of its own.
#include <QtTest/QTest>
#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/process/agent_service.h"
#include "tests/process/run_parts.h"
#include "tests/process/scene.h"

using namespace atl;
using namespace atl::test;

class HubDecayTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void cleanupTestCase();
  void a_wrong_wish_is_refused_and_says_what_is_allowed_data();
  void a_wrong_wish_is_refused_and_says_what_is_allowed();
  void a_decay_far_ahead_is_shown_and_can_be_taken_back();
  void the_islands_learning_rate_falls_to_where_it_is_to_end();
  void one_that_has_begun_stays();

 private:
  ProgramOutcome hub(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "hub");
    arguments.insert(arguments.end(), {"--home", scene_.path("hub").string()});
    return scene_.run(arguments);
  }
  nlohmann::json hub_state() const { return nlohmann::json::parse(hub({"status", "--json"}).out, nullptr, false); }
  nlohmann::json island_state() const {
    return nlohmann::json::parse(scene_.run({"status", "--json", "--home", scene_.path("island").string()}).out,
                                 nullptr, false);
  }

  Scene scene_;
  std::unique_ptr<QProcess> island_;
};

void HubDecayTest::initTestCase() {
  scene_.make_hub(
      "hub", {"--inner-steps", "2", "--batch", "2", "--validate-every", "0", "--lr", "0.001", "--warmup-steps", "2"});
  scene_.serve_hub();
  island_ = scene_.start({"join", scene_.invite(), "--yes", "--threads", "1", "--listen", "127.0.0.1:0", "--home",
                          scene_.path("island").string()});
  QVERIFY(wait_for([&] { return hub_state().value("outer_step", 0u) >= 2; }));
}

void HubDecayTest::cleanupTestCase() {
  ::kill(static_cast<pid_t>(island_->processId()), SIGINT);
  outcome_of(*island_);
}

void HubDecayTest::a_wrong_wish_is_refused_and_says_what_is_allowed_data() {
  QTest::addColumn<QStringList>("arguments");
  QTest::addColumn<QString>("says");
  QTest::newRow("no length") << QStringList{"decay"} << "--rounds";
  QTest::newRow("a round that has begun") << QStringList{"decay", "--rounds", "3", "--from-round", "1"} << "has begun";
  QTest::newRow("upwards") << QStringList{"decay", "--rounds", "3", "--final-lr", "0.01"} << "below the peak";
  QTest::newRow("no such shape") << QStringList{"decay", "--rounds", "3", "--shape", "steep"} << "cosine";
  QTest::newRow("nothing to take back") << QStringList{"decay", "--cancel"} << "nothing to take back";
  QTest::newRow("both") << QStringList{"decay", "--cancel", "--rounds", "3"} << "excludes";
}

void HubDecayTest::a_wrong_wish_is_refused_and_says_what_is_allowed() {
  QFETCH(const QStringList, arguments);
  QFETCH(const QString, says);
  std::vector<std::string> words;
  for (const QString& argument : arguments) words.push_back(argument.toStdString());
  const ProgramOutcome outcome = hub(words);
  QVERIFY(outcome.exit_code != 0);
  QVERIFY2(outcome.err.find(says.toStdString()) != std::string::npos, outcome.err.c_str());
  QVERIFY(hub_state().at("decay").is_null());
}

void HubDecayTest::a_decay_far_ahead_is_shown_and_can_be_taken_back() {
  const ProgramOutcome decided = hub(
      {"decay", "--from-round", "1000000", "--rounds", "10", "--shape", "cosine", "--final-lr", "0.0001", "--json"});
  QCOMPARE(decided.exit_code, 0);
  const nlohmann::json expected = {
      {"from_round", 999999}, {"rounds", 10}, {"final_learning_rate", 0.0001}, {"shape", "cosine"}};
  QVERIFY2(nlohmann::json::parse(decided.out) == expected, decided.out.c_str());
  QVERIFY(hub_state().at("decay") == expected);
  const ProgramOutcome status = hub({"status"});
  QVERIFY2(status.out.find("falls to 0.0001 from round 1000000 on, over 10 rounds (cosine)") != std::string::npos,
           status.out.c_str());
  QCOMPARE(hub({"decay", "--cancel"}).exit_code, 0);
  QVERIFY(hub_state().at("decay").is_null());
}

void HubDecayTest::the_islands_learning_rate_falls_to_where_it_is_to_end() {
  const double before = island_state().value("learning_rate", 0.0);
  QVERIFY2(before > 0.0005, std::to_string(before).c_str());
  QCOMPARE(hub({"decay", "--rounds", "3", "--shape", "linear", "--final-lr", "0.00025"}).exit_code, 0);
  QVERIFY(wait_for([&] { return std::abs(island_state().value("learning_rate", 0.0) - 0.00025) < 1e-9; }));
}

void HubDecayTest::one_that_has_begun_stays() {
  for (const auto& words : {std::vector<std::string>{"decay", "--cancel"}, {"decay", "--rounds", "7"}}) {
    const ProgramOutcome outcome = hub(words);
    QVERIFY(outcome.exit_code != 0);
    QVERIFY2(outcome.err.find("hub rollback --to") != std::string::npos, outcome.err.c_str());
  }
}

QTEST_GUILESS_MAIN(HubDecayTest)
#include "hub_decay_test.moc"
