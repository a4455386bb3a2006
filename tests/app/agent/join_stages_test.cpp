#include "app/agent/join_stages.h"

#include <QtTest>
#include <nlohmann/json.hpp>
#include <vector>

using namespace atl;

namespace {

const std::string kRun = "0123456789abcdef";

struct Told {
  std::vector<nlohmann::json> all;
  JoinStages stages{[this](const event::JoinProgress& progress) { all.push_back(data_of(progress)); }};

  void stage(const std::string& name, const std::string& status) {
    stages.take({.kind = JoinNews::Kind::kStage,
                 .stage = parse_word<JoinStage>(name),
                 .status = parse_word<StageStatus>(status)});
  }
  void enrol() {
    stages.take({.kind = JoinNews::Kind::kBegan});
    JoinNews enrolled{.kind = JoinNews::Kind::kEnrolled};
    enrolled.text = kRun;
    stages.take(enrolled);
    all.clear();
  }
  void fail(const std::string& why) {
    JoinNews news{.kind = JoinNews::Kind::kFailed};
    news.text = why;
    stages.take(news);
  }
  void says(const std::string& word, std::uint64_t tokens = 0, const std::string& run = kRun) {
    IslandState state;
    state.state = parse_word<IslandPhase>(word);
    state.tokens = tokens;
    state.run_id = run;
    stages.trainer_says(state);
  }
  std::string text() {
    std::string text;
    for (const nlohmann::json& one : all) {
      text += one["stage"].get<std::string>() + ":" + one["status"].get<std::string>() + " ";
    }
    return text;
  }
};

}  // namespace

class JoinStagesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_joining_goes_through_all_stages();
  void a_download_is_told_with_its_figures();
  void a_trainer_that_trains_already_is_done_at_once();
  void what_fails_is_the_stage_under_way();
  void a_trainer_that_ends_fails_its_stage_and_the_next_may_go_on();
  void the_words_of_another_runs_trainer_are_not_heard();
  void without_a_joining_nothing_is_told();
};

void JoinStagesTest::a_joining_goes_through_all_stages() {
  Told told;

  told.stages.take({.kind = JoinNews::Kind::kBegan});
  for (const char* stage : {"check", "key", "enrol", "check"}) {
    told.stage(stage, "running");
    told.stage(stage, "done");
  }
  JoinNews enrolled{.kind = JoinNews::Kind::kEnrolled};
  enrolled.text = kRun;
  told.stages.take(enrolled);
  told.stages.trainer_started();
  for (const char* word : {"joining", "joining", "recovering", "waiting", "training"}) told.says(word);
  QVERIFY(told.stages.follows());
  told.says("training", 4096);

  QCOMPARE(told.text(), std::string("check:running check:done key:running key:done enrol:running enrol:done "
                                    "check:running check:done trainer:running trainer:done data:running data:done "
                                    "state:running state:done first_step:running first_step:done "));
  QVERIFY(!told.stages.follows());
}

void JoinStagesTest::a_download_is_told_with_its_figures() {
  Told told;
  told.enrol();
  told.says("joining");
  told.all.clear();

  told.stages.transfer({.what = Download::kData,
                        .status = DownloadStatus::kRunning,
                        .done_bytes = 5,
                        .total_bytes = 10,
                        .bytes_per_second = 2.5,
                        .seconds_left = 2.0});
  told.stages.transfer({.what = Download::kData, .status = DownloadStatus::kDone, .done_bytes = 10, .total_bytes = 10});
  told.stages.transfer({.what = Download::kState, .status = DownloadStatus::kFailed, .text = "its sources moved on"});
  told.stages.transfer({.what = Download::kUnknown, .status = DownloadStatus::kRunning});

  QCOMPARE(told.all.size(), std::size_t{3});
  QCOMPARE(told.all[0].dump(), std::string(R"({"bytes_per_second":2.5,"done_bytes":5,"seconds_left":2.0,)"
                                           R"("stage":"data","status":"running","total_bytes":10})"));
  QCOMPARE(told.all[1]["status"].get<std::string>(), std::string("done"));
  // It is tried again.
  QCOMPARE(told.all[2].dump(),
           std::string(
               R"({"done_bytes":0,"stage":"state","status":"running","text":"its sources moved on","total_bytes":0})"));
}

void JoinStagesTest::a_trainer_that_trains_already_is_done_at_once() {
  Told told;
  told.enrol();

  told.says("syncing", 4096);

  QCOMPARE(told.text(), std::string("trainer:done data:done state:done first_step:done "));
}

void JoinStagesTest::what_fails_is_the_stage_under_way() {
  Told told;

  told.stages.take({.kind = JoinNews::Kind::kBegan});
  told.fail("no such port");
  told.stages.take({.kind = JoinNews::Kind::kBegan});
  told.stage("check", "running");
  told.stage("check", "done");
  told.stage("key", "done");
  told.stage("enrol", "running");
  told.fail("the hub does not know this invite");

  QCOMPARE(told.text(), std::string("key:failed check:running check:done key:done enrol:running enrol:failed "));
  QCOMPARE(told.all.back()["text"].get<std::string>(), std::string("the hub does not know this invite"));
}

void JoinStagesTest::a_trainer_that_ends_fails_its_stage_and_the_next_may_go_on() {
  Told told;
  told.enrol();

  told.says("joining");
  told.stages.trainer_ended("out of memory");
  told.stages.trainer_started();
  told.says("joining");
  told.says("error");
  told.stages.trainer_ended("");
  QVERIFY(told.stages.follows());

  QCOMPARE(told.text(), std::string("trainer:done data:running data:failed trainer:running trainer:done data:running "
                                    "data:failed "));
  QCOMPARE(told.all[2]["text"].get<std::string>(), std::string("out of memory"));
  QVERIFY(!told.all.back()["text"].get<std::string>().empty());
}

void JoinStagesTest::the_words_of_another_runs_trainer_are_not_heard() {
  Told told;
  told.enrol();

  told.says("training", 4096, "fedcba9876543210");

  QVERIFY(told.all.empty());
  QVERIFY(told.stages.follows());
}

void JoinStagesTest::without_a_joining_nothing_is_told() {
  Told told;

  told.stages.trainer_started();
  told.says("joining", 0, "");
  told.stages.transfer({.what = Download::kState, .status = DownloadStatus::kRunning});
  told.stages.trainer_ended("killed");

  QVERIFY(told.all.empty());
}

QTEST_GUILESS_MAIN(JoinStagesTest)
#include "join_stages_test.moc"
