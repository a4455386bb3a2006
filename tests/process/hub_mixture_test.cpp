// A run on two sources of data, with programs: its islands fetch what they train on, and its organiser changes the
// shares while it lives.
#include <QtTest/QTest>
#include <csignal>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/control/home.h"
#include "tests/process/agent_service.h"
#include "tests/process/run_parts.h"
#include "tests/process/scene.h"

using namespace atl;
using namespace atl::test;

class HubMixtureTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void cleanupTestCase();
  void shares_are_shown();
  void a_wrong_wish_is_refused_and_says_what_is_allowed_data();
  void a_wrong_wish_is_refused_and_says_what_is_allowed();
  void a_mixture_far_ahead_is_shown_and_can_be_taken_back();
  void the_run_goes_on_with_other_shares();
  void a_hub_that_is_started_again_remembers_them();
  void an_island_keeps_chunks_within_its_bound();

 private:
  ProgramOutcome hub(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "hub");
    arguments.insert(arguments.end(), {"--home", scene_.path("hub").string()});
    return scene_.run(arguments);
  }
  nlohmann::json hub_state() const { return nlohmann::json::parse(hub({"status", "--json"}).out, nullptr, false); }
  bool passes(std::uint32_t rounds) const {
    const std::uint32_t now = hub_state().value("outer_step", 0u);
    return wait_for([&] { return hub_state().value("outer_step", 0u) >= now + rounds; });
  }

  Scene scene_;
  std::unique_ptr<QProcess> island_;
};

void HubMixtureTest::initTestCase() {
  std::string text;
  for (int i = 0; text.size() < 64 * 1024; ++i) text += "int f" + std::to_string(i) + "() { return 7; }\n";
  QVERIFY(write_file_atomically(scene_.path("code.txt"), text, FileMode::kPublic).ok());
  const auto prepared =
      scene_.run({"data", "prepare", scene_.path("code.txt").string(), "--output", scene_.path("code").string()});
  QVERIFY2(prepared.exit_code == 0, prepared.err.c_str());
  // No validation: of one source only, it may grow until the run stands still, as it should.
  scene_.make_hub("hub", {"--data", scene_.path("code").string(), "--weights", "data=3,code=1", "--inner-steps", "2",
                          "--batch", "2", "--validate-every", "0"});
  scene_.serve_hub();
  const auto home = scene_.path("island").string();
  QCOMPARE(scene_.run({"config", "set", "island.data_cache", "200 kB", "--home", home}).exit_code, 0);
  island_ =
      scene_.start({"join", scene_.invite(), "--yes", "--threads", "1", "--listen", "127.0.0.1:0", "--home", home});
  QVERIFY(wait_for([&] { return hub_state().value("outer_step", 0u) >= 2; }));
}

void HubMixtureTest::cleanupTestCase() {
  ::kill(static_cast<pid_t>(island_->processId()), SIGINT);
  outcome_of(*island_);
}

void HubMixtureTest::shares_are_shown() {
  QCOMPARE(hub_state().at("mixture").at("weights"), nlohmann::json("data=0.75,code=0.25"));
  QVERIFY(hub({"status"}).out.find("data: data=0.75,code=0.25\n") != std::string::npos);
  QVERIFY(hub({"data"}).out.find("code=" + scene_.path("code").string()) != std::string::npos);
}

void HubMixtureTest::a_wrong_wish_is_refused_and_says_what_is_allowed_data() {
  QTest::addColumn<QStringList>("arguments");
  QTest::addColumn<QString>("says");
  QTest::newRow("no shares") << QStringList{"mixture"} << "--weights";
  QTest::newRow("no such source") << QStringList{"mixture", "--weights", "math=1"} << "data, code";
  QTest::newRow("no number") << QStringList{"mixture", "--weights", "code=much"} << "NAME=NUMBER";
  QTest::newRow("nothing of anything") << QStringList{"mixture", "--weights", "code=0"} << "above 0";
  QTest::newRow("a round that has begun")
      << QStringList{"mixture", "--weights", "code=1", "--from-round", "1"} << "has begun";
  QTest::newRow("nothing to take back") << QStringList{"mixture", "--cancel"} << "nothing to take back";
}

void HubMixtureTest::a_wrong_wish_is_refused_and_says_what_is_allowed() {
  QFETCH(const QStringList, arguments);
  QFETCH(const QString, says);
  std::vector<std::string> words;
  for (const QString& argument : arguments) words.push_back(argument.toStdString());
  const ProgramOutcome outcome = hub(words);
  QVERIFY(outcome.exit_code != 0);
  QVERIFY2(outcome.err.find(says.toStdString()) != std::string::npos, outcome.err.c_str());
  QVERIFY(hub_state().at("mixture").at("next_round").is_null());
}

void HubMixtureTest::a_mixture_far_ahead_is_shown_and_can_be_taken_back() {
  const ProgramOutcome decided = hub({"mixture", "--weights", "code=1,data=1", "--from-round", "1000000", "--json"});
  QVERIFY2(decided.exit_code == 0, decided.err.c_str());
  const nlohmann::json expected = {{"from_round", 999999}, {"weights", "data=0.5,code=0.5"}};
  QVERIFY2(nlohmann::json::parse(decided.out) == expected, decided.out.c_str());
  QCOMPARE(hub_state().at("mixture").at("next_round"), nlohmann::json(999999));
  QVERIFY(hub({"status"}).out.find("data from round 1000000 on: data=0.5,code=0.5\n") != std::string::npos);
  QCOMPARE(hub({"mixture", "--cancel"}).exit_code, 0);
  QVERIFY(hub_state().at("mixture").at("next_round").is_null());
}

void HubMixtureTest::the_run_goes_on_with_other_shares() {
  QCOMPARE(hub({"mixture", "--weights", "code=1"}).exit_code, 0);
  QVERIFY(passes(3));
  QCOMPARE(hub_state().at("mixture").at("weights"), nlohmann::json("data=0,code=1"));
}

void HubMixtureTest::a_hub_that_is_started_again_remembers_them() {
  scene_.kill_hub();
  scene_.serve_hub();
  QCOMPARE(hub_state().at("mixture").at("weights"), nlohmann::json("data=0,code=1"));
  QVERIFY(passes(2));
}

void HubMixtureTest::an_island_keeps_chunks_within_its_bound() {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(IslandHome{scene_.path("island")}.data())) {
    QVERIFY(entry.path().extension() != ".tok");
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  QVERIFY(bytes > 0);
  QVERIFY2(bytes <= 200'000, std::to_string(bytes).c_str());
}

QTEST_GUILESS_MAIN(HubMixtureTest)
#include "hub_mixture_test.moc"
