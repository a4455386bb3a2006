// The island's history: what events become, how it thins with age, what it survives.
#include <fcntl.h>
#include <sys/resource.h>

#include <QTemporaryDir>
#include <QtTest>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/agent/history/history_feed.h"
#include "app/agent/history/history_queries.h"
#include "net/control/island_state.h"
#include "tests/fakes/told_events.h"

using namespace atl;

namespace {

constexpr double kTime = 1'763'725'000;

IslandState training(std::uint32_t round, std::uint32_t step, double loss) {
  IslandState state;
  state.state = IslandPhase::kTraining;
  state.run_id = "0123456789abcdef";
  state.run_name = "first";
  state.pid = 41;
  state.round = round;
  state.inner_step = step;
  state.inner_steps = 100;
  state.loss_nats = loss;
  state.tokens_per_second = 1000;
  state.tokens = (round * 100ull + step) * 2048;
  state.islands_live = 3;
  return state;
}

nlohmann::json event_of(const char* name, double time, const nlohmann::json& data) {
  return {{"event", name}, {"seq", 1}, {"time", time}, {"data", data}};
}

nlohmann::json past_event(double time, const ToldPast& past, const char* run = "0123456789abcdef") {
  return event_of("run.past", time, data_of(event::PastTold{run, 100, past}));
}

class Fixture {
 public:
  explicit Fixture(HistoryLimits limits = {}) : limits_(limits) { open(); }

  void open() {
    feed.reset();
    store.reset();
    auto opened = HistoryStore::open(path(), limits_);
    if (!opened.ok()) qFatal("%s", opened.error().message.c_str());
    store = std::move(*opened);
    feed.emplace(*store);
  }
  std::filesystem::path path() const {
    return std::filesystem::path(directory_.path().toStdString()) / "history.sqlite";
  }
  void tell(const nlohmann::json& event) {
    told_.tell(event, [this](const HeardEvent& heard) { feed->take(heard, Clock::now()); });
  }
  void steps(int count, double begin = kTime) {
    for (int i = 0; i < count; ++i) {
      tell(event_of("step", begin + i, training(0, static_cast<std::uint32_t>(i), 5 - i * 1e-3).to_json()));
    }
    feed->flush();
  }
  nlohmann::json metric(const nlohmann::json& params) {
    auto answer = query_metrics(*store, params);
    if (!answer.ok()) qFatal("%s", answer.error().message.c_str());
    return *answer;
  }

  std::unique_ptr<HistoryStore> store;
  std::optional<HistoryFeed> feed;

 private:
  QTemporaryDir directory_;
  const HistoryLimits limits_;
  test::ToldEvents told_;
};

// The kernel refuses every byte beyond a small size, as a full disk does.
class FullDisk {
 public:
  FullDisk() {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, SIG_IGN);
    struct rlimit full = before_;
    full.rlim_cur = 4096;
    if (::setrlimit(RLIMIT_FSIZE, &full) != 0) qFatal("no limit on the size of files");
  }
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  struct rlimit before_ {};
};

std::uint64_t sum(const nlohmann::json& counts) {
  std::uint64_t total = 0;
  for (const nlohmann::json& count : counts) total += count.get<std::uint64_t>();
  return total;
}

}  // namespace

class HistoryTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void steps_become_series();
  void a_round_is_told_with_its_phases();
  void a_states_validation_and_scores_are_told_with_the_round_that_made_it();
  void the_past_that_a_hub_tells_lies_before_the_islands_own_rounds();
  void a_round_that_both_know_is_told_once();
  void the_past_is_told_again_after_a_restart_and_by_its_newest_word();
  void a_past_of_another_run_is_that_runs();
  void an_answer_about_the_past_has_no_more_points_than_asked();
  void an_answer_has_no_more_points_than_asked_and_keeps_the_extremes();
  void what_is_old_is_told_by_fewer_points();
  void the_file_stays_within_its_bound();
  void tokens_of_trainers_that_ended_still_count();
  void what_a_living_trainer_tells_again_counts_once();
  void a_clock_that_jumps_loses_nothing();
  void islands_come_and_go();
  void islands_that_came_before_the_run_was_known_are_kept();
  void each_gpu_has_its_series();
  void what_a_step_says_beside_its_loss_has_its_series();
  void a_damaged_file_is_set_aside_data();
  void a_damaged_file_is_set_aside();
  void a_full_disk_is_told_and_survived();
  void a_disk_that_stays_full_costs_points_before_rounds();
  void wrong_parameters_are_refused_data();
  void wrong_parameters_are_refused();
  void garbage_events_change_nothing();
  void a_command_reads_while_the_agent_writes();
};

void HistoryTest::steps_become_series() {
  Fixture history;

  history.steps(5);

  const nlohmann::json loss = history.metric({{"name", "loss_nats"}});
  QCOMPARE(loss["step"].dump(), std::string("[0,1,2,3,4]"));
  QCOMPARE(loss["width"].get<double>(), 0.0);
  QCOMPARE(loss["time"][4].get<double>(), kTime + 4);
  QCOMPARE(loss["tokens"][4].get<int>(), 4 * 2048);
  QCOMPARE(history.metric({}).at("names").dump(), std::string(R"(["loss_nats","tokens_per_second"])"));
  QCOMPARE(history.metric({{"name", "loss_nats"}, {"axis", "step"}, {"from", 1}, {"to", 3}})["step"].dump(),
           std::string("[1,2,3]"));
}

void HistoryTest::a_round_is_told_with_its_phases() {
  Fixture history;
  IslandState state = training(7, 0, 3);
  history.tell(event_of("round.begin", kTime, state.to_json()));
  state.tokens += 50'000;
  state.bytes_sent = 9'000'000;
  state.inner_seconds = 40;
  for (const char* phase : {"quantise", "reduce_scatter"}) {
    const nlohmann::json data = {{"round", 7}, {"attempt", 2}, {"phase", phase}, {"seconds", 1.5}, {"bytes", 77}};
    history.tell(event_of("sync.phase", kTime + 41, data));
  }
  state.round = state.outer_step = 8;
  state.accepted_round = 7;
  state.last_sync_seconds = 3;
  state.state_hash = "ab12";
  history.tell(event_of("sync.done", kTime + 44, state.to_json()));
  history.feed->flush();

  const auto answer = list_rounds(*history.store, nlohmann::json::object());

  QVERIFY2(answer.ok(), answer.ok() ? "" : answer.error().message.c_str());
  QCOMPARE((*answer)["rounds"].size(), 1u);
  const nlohmann::json round = (*answer)["rounds"][0];
  QCOMPARE(round["round"].get<int>(), 7);
  QCOMPARE(round["began"].get<double>(), kTime);
  QCOMPARE(round["ended"].get<double>(), kTime + 44);
  QCOMPARE(round["tokens"].get<int>(), 50'000);
  QCOMPARE(round["bytes_sent"].get<int>(), 9'000'000);
  QCOMPARE(round["inner_seconds"].get<double>(), 40.0);
  QCOMPARE(round["accepted"].get<bool>(), true);
  QCOMPARE(round["phases"].size(), 2u);
  QCOMPARE(round["phases"][0].dump(), std::string(R"({"attempt":2,"bytes":77,"name":"quantise","seconds":1.5})"));
}

void HistoryTest::a_states_validation_and_scores_are_told_with_the_round_that_made_it() {
  Fixture history;
  history.tell(event_of("round.begin", kTime, training(7, 0, 3).to_json()));
  history.tell(event_of("state.validated", kTime, {{"outer_step", 0}, {"loss_nats", 9.5}}));  // no round made that
  history.tell(event_of("state.validated", kTime + 1, {{"outer_step", 8}, {"loss_nats", 2.25}}));
  const nlohmann::json figures = {{{"metric", "acc"}, {"value", 0.5}}, {{"metric", "acc_norm"}, {"value", 0.25}}};
  history.tell(event_of("state.evaluated", kTime + 2, {{"outer_step", 8}, {"task", "capitals"}, {"figures", figures}}));
  history.feed->flush();

  const auto answer = list_rounds(*history.store, nlohmann::json::object());

  QVERIFY2(answer.ok(), answer.ok() ? "" : answer.error().message.c_str());
  QCOMPARE((*answer)["rounds"].size(), 1u);
  const nlohmann::json round = (*answer)["rounds"][0];
  QCOMPARE(round["round"].get<int>(), 7);
  QCOMPARE(round["validation_loss_nats"].get<double>(), 2.25);
  const nlohmann::json scores = {{{"task", "capitals"}, {"metric", "acc"}, {"value", 0.5}},
                                 {{"task", "capitals"}, {"metric", "acc_norm"}, {"value", 0.25}}};
  QCOMPARE(round["scores"].dump(), scores.dump());
}

void HistoryTest::the_past_that_a_hub_tells_lies_before_the_islands_own_rounds() {
  Fixture history;
  history.tell(past_event(kTime, {{{0, 2, 200, 20, 5}, {2, 2, 200, 40, 4}}, {{0, 5.5}, {4, 4.25}}}));
  history.feed->flush();

  const nlohmann::json loss = history.metric({{"name", "run.mean_loss_nats"}});
  QCOMPARE(loss["step"].dump(), std::string("[100,300]"));  // in the middle of their rounds of 100 steps
  QCOMPARE(loss["mean"].dump(), std::string("[5.0,4.0]"));
  QCOMPARE(loss["count"].dump(), std::string("[2,2]"));
  QCOMPARE(loss["time"][0].get<double>(), kTime - 50);  // the second took 40 s until it was told
  QCOMPARE(loss["time"][1].get<double>(), kTime - 20);
  const nlohmann::json validation = history.metric({{"name", "run.validation_loss_nats"}, {"axis", "step"}});
  QCOMPARE(validation["step"].dump(), std::string("[0,400]"));
  QCOMPARE(validation["time"][0].get<double>(), kTime - 60);
  QCOMPARE(validation["time"][1].get<double>(), kTime);
  // Tokens are this island's own.
  QCOMPARE(history.metric({{"name", "run.mean_loss_nats"}, {"axis", "tokens"}})["mean"].size(), 0u);
  QCOMPARE(history.metric({}).at("names").dump(), std::string(R"(["run.mean_loss_nats","run.validation_loss_nats"])"));
  const auto listed = list_rounds(*history.store, {{"past", true}});
  QVERIFY(listed.ok());
  QCOMPARE((*listed)["rounds"].size(), 0u);
  QCOMPARE((*listed)["past"].size(), 2u);
  QCOMPARE((*listed)["past"][1].dump(),
           std::string(R"({"mean_loss_nats":4.0,"round":2,"rounds":2,"seconds":40.0,"tokens":200})"));
  QCOMPARE((*listed)["validations"][1].dump(), std::string(R"({"loss_nats":4.25,"outer_step":4})"));
  QVERIFY(!list_rounds(*history.store, nlohmann::json::object())->contains("past"));
}

void HistoryTest::a_round_that_both_know_is_told_once() {
  Fixture history;
  history.tell(past_event(kTime, {{{0, 1, 100, 10, 5}, {1, 1, 100, 10, 4}}, {{1, 4.5}, {2, 4.25}}}));
  history.tell(event_of("state.validated", kTime + 1, {{"outer_step", 2}, {"loss_nats", 4.2}}));
  IslandState state = training(1, 99, 3);
  history.tell(event_of("round.begin", kTime - 300, state.to_json()));
  state.round = state.outer_step = 2;
  history.tell(event_of("sync.done", kTime - 200, state.to_json()));
  history.feed->flush();

  const nlohmann::json validation = history.metric({{"name", "run.validation_loss_nats"}});
  QCOMPARE(validation["step"].dump(), std::string("[100]"));  // the other one is the island's
  const nlohmann::json listed = *list_rounds(*history.store, nlohmann::json::object());
  QCOMPARE(listed["rounds"][0]["validation_loss_nats"].get<double>(), 4.2);
  // By this machine's clock the round ended then.
  const nlohmann::json loss = history.metric({{"name", "run.mean_loss_nats"}});
  QCOMPARE(loss["time"].dump(), nlohmann::json({kTime - 215, kTime - 205}).dump());
}

void HistoryTest::the_past_is_told_again_after_a_restart_and_by_its_newest_word() {
  Fixture history;
  history.steps(3);
  history.tell(past_event(kTime, {{{0, 1, 100, 10, 5}, {1, 1, 100, 10, 4}}, {}}));
  history.tell(past_event(kTime + 60, {{{0, 2, 200, 20, 4.5}, {2, 1, 100, 10, 3}}, {{3, 3.5}}}));
  history.feed->flush();

  history.open();

  QCOMPARE(history.metric({{"name", "run.mean_loss_nats"}})["mean"].dump(), std::string("[4.5,3.0]"));
  QCOMPARE(history.metric({{"name", "run.validation_loss_nats"}})["mean"].dump(), std::string("[3.5]"));
  QCOMPARE(sum(history.metric({{"name", "loss_nats"}})["count"]), 3u);  // the island's own stays
}

void HistoryTest::a_past_of_another_run_is_that_runs() {
  Fixture history;
  history.tell(past_event(kTime, {{{0, 1, 100, 10, 5}}, {}}));
  history.tell(past_event(kTime + 9, {{{0, 1, 100, 10, 2}}, {}}, "fedcba9876543210"));
  history.feed->flush();

  const auto mean_of = [&](const char* run) {
    return history.metric({{"run", run}, {"name", "run.mean_loss_nats"}})["mean"].dump();
  };
  QCOMPARE(mean_of("0123456789abcdef"), std::string("[5.0]"));
  QCOMPARE(mean_of("fedcba9876543210"), std::string("[2.0]"));
  QVERIFY(!query_metrics(*history.store, {{"run", "0"}, {"name", "run.mean_loss_nats"}}).ok());
}

void HistoryTest::an_answer_about_the_past_has_no_more_points_than_asked() {
  Fixture history;
  ToldPast past;
  for (std::uint32_t i = 0; i < kMaxPastRounds; ++i) past.rounds.push_back({i, 1, 100, 10, i == 100 ? 9.0 : 3.0});
  history.tell(past_event(kTime, past));
  history.feed->flush();

  for (const char* axis : {"time", "step"}) {
    const nlohmann::json answer = history.metric({{"name", "run.mean_loss_nats"}, {"axis", axis}, {"max_points", 16}});
    QVERIFY(answer["mean"].size() <= 16 && answer["mean"].size() >= 15);
    QCOMPARE(sum(answer["count"]), std::uint64_t{kMaxPastRounds});
    QCOMPARE(*std::max_element(answer["high"].begin(), answer["high"].end()), nlohmann::json(9.0));
    QVERIFY(answer["width"].get<double>() > 0);
  }
  const nlohmann::json part =
      history.metric({{"name", "run.mean_loss_nats"}, {"axis", "step"}, {"from", 1000}, {"to", 1200}});
  QCOMPARE(part["step"].dump(), std::string("[1050,1150]"));
}

void HistoryTest::an_answer_has_no_more_points_than_asked_and_keeps_the_extremes() {
  Fixture history;
  history.steps(1000);

  for (const char* axis : {"time", "step", "tokens"}) {
    const nlohmann::json answer = history.metric({{"name", "loss_nats"}, {"axis", axis}, {"max_points", 10}});
    QVERIFY(answer["mean"].size() <= 10);
    QVERIFY(answer["mean"].size() >= 9);
    QCOMPARE(sum(answer["count"]), 1000u);
    QCOMPARE(answer["high"].front().get<float>(), 5.0f);
    QCOMPARE(answer["low"].back().get<float>(), static_cast<float>(5 - 0.999));
    QVERIFY(answer["width"].get<double>() > 0);
  }
}

void HistoryTest::what_is_old_is_told_by_fewer_points() {
  Fixture history({.keep_points = 64});

  history.steps(3000);

  const nlohmann::json all = history.metric({{"name", "loss_nats"}, {"max_points", 5000}});
  QVERIFY2(all["mean"].size() < 500, all["mean"].dump().c_str());
  QCOMPARE(sum(all["count"]), 3000u);  // merged, not forgotten
  QCOMPARE(all["count"].back().get<int>(), 1);
  QVERIFY(all["count"].front().get<int>() >= 8);
  QVERIFY(std::is_sorted(all["step"].begin(), all["step"].end()));
}

void HistoryTest::the_file_stays_within_its_bound() {
  constexpr std::uint64_t kBound = 256 * 1024;
  Fixture history({.keep_points = 100'000, .max_bytes = kBound});

  for (int part = 0; part < 20; ++part) history.steps(2000, kTime + part * 2000);

  QVERIFY(std::filesystem::file_size(history.path()) < 2 * kBound);
  const nlohmann::json all = history.metric({{"name", "loss_nats"}, {"max_points", 5000}});
  QCOMPARE(sum(all["count"]), 40'000u);
  QCOMPARE(all["time"].back().get<double>(), kTime + 39'999);
}

void HistoryTest::tokens_of_trainers_that_ended_still_count() {
  Fixture history;
  history.steps(11);
  IslandState restarted = training(0, 0, 3);
  restarted.pid = 42;
  restarted.tokens = 500;

  history.open();  // the agent starts again as well
  history.tell(event_of("step", kTime + 60, restarted.to_json()));
  history.feed->flush();

  QCOMPARE(history.metric({{"name", "loss_nats"}})["tokens"].back().get<int>(), 10 * 2048 + 500);
}

void HistoryTest::what_a_living_trainer_tells_again_counts_once() {
  Fixture history;
  history.steps(11);

  history.open();  // the agent ended; the trainer went on, and tells the next agent what it kept
  for (std::uint32_t i = 5; i < 14; ++i) {
    nlohmann::json event = event_of("step", kTime + i, training(0, i, 5 - i * 1e-3).to_json());
    event["kept"] = true;
    history.tell(event);
  }
  history.feed->flush();

  const nlohmann::json all = history.metric({{"name", "loss_nats"}});
  QCOMPARE(sum(all["count"]), 14u);
  QCOMPARE(all["tokens"].back().get<int>(), 13 * 2048);
}

void HistoryTest::a_clock_that_jumps_loses_nothing() {
  Fixture history({.keep_points = 64});
  history.steps(100, kTime);
  history.steps(100, kTime + 3e9);  // somebody set it to the year 2120 ...
  history.steps(100, kTime - 3e6);  // ... and back

  const nlohmann::json all = history.metric({{"name", "loss_nats"}, {"max_points", 5000}});
  QCOMPARE(sum(all["count"]), 300u);
  // What was written last is not thinned because its clock looks old.
  const nlohmann::json last = history.metric({{"name", "loss_nats"}, {"to", kTime - 2e6}, {"max_points", 5000}});
  QVERIFY(last["mean"].size() >= 64);
}

void HistoryTest::islands_come_and_go() {
  Fixture history;
  history.steps(1);
  for (const char* name : {"isl-a", "isl-b"}) {
    const nlohmann::json data = {{"island", name},
                                 {"name", "n"},
                                 {"address", "203.0.113.7:47000"},
                                 {"region", "Oslo"},
                                 {"version", "atoll 0.1.0"}};
    history.tell(event_of("peer.up", kTime, data));
    history.tell(event_of("peer.link", kTime, {{"island", name}, {"rtt_seconds", 0.04}}));
  }
  history.tell(event_of("peer.down", kTime + 9, {{"island", "isl-a"}, {"name", "n"}}));
  history.feed->flush();

  const auto answer = list_peers(*history.store, nlohmann::json::object());

  QVERIFY(answer.ok());
  QCOMPARE((*answer)["peers"].size(), 2u);
  QCOMPARE((*answer)["peers"][0]["island"].get<std::string>(), std::string("isl-b"));
  QCOMPARE((*answer)["peers"][0]["region"].get<std::string>(), std::string("Oslo"));
  QCOMPARE((*answer)["peers"][0]["version"].get<std::string>(), std::string("atoll 0.1.0"));
  QCOMPARE((*answer)["peers"][1]["state"].get<std::string>(), std::string("down"));
  QCOMPARE((*answer)["peers"][1]["rtt_seconds"].get<double>(), 0.04);  // the last one known stays
}

void HistoryTest::islands_that_came_before_the_run_was_known_are_kept() {
  Fixture history;
  history.tell(event_of("peer.up", kTime, {{"island", "isl-a"}, {"name", "attic"}}));

  history.steps(1);
  for (const nlohmann::json& link :
       {nlohmann::json{{"bytes_per_second", 5e6}}, nlohmann::json{{"down_bytes_per_second", 4e6}},
        nlohmann::json{{"failed", true}}, nlohmann::json{{"failed", true}}}) {
    nlohmann::json data = link;
    data["island"] = "isl-a";
    history.tell(event_of("peer.link", kTime + 5, data));
  }
  history.feed->flush();

  const nlohmann::json peer = list_peers(*history.store, nlohmann::json::object())->at("peers").at(0);
  QCOMPARE(peer["name"].get<std::string>(), std::string("attic"));
  QCOMPARE(peer["bytes_per_second"].get<double>(), 5e6);
  QCOMPARE(peer["down_bytes_per_second"].get<double>(), 4e6);
  QCOMPARE(peer["retries"].get<int>(), 2);
  QCOMPARE(peer["last_change"].get<double>(), kTime);
}

void HistoryTest::each_gpu_has_its_series() {
  Fixture history;
  history.steps(1);
  const nlohmann::json data = {
      {"gpus", {{{"index", 3}, {"power_watts", 640}, {"memory_total_bytes", 85e9}}, {{"power_watts", 612}}}}};

  history.tell(event_of("gpu.sample", kTime + 1, data));
  history.feed->flush();

  QCOMPARE(history.metric({{"name", "gpu.3.power_watts"}})["mean"].dump(), std::string("[640.0]"));
  QCOMPARE(history.metric({{"name", "gpu.1.power_watts"}})["mean"].dump(), std::string("[612.0]"));
  const std::string names = history.metric(nlohmann::json::object())["names"].dump();
  QVERIFY2(names.find("memory_total") == std::string::npos, names.c_str());  // it never changes
}

void HistoryTest::what_a_step_says_beside_its_loss_has_its_series() {
  Fixture history;
  IslandState state = training(0, 1, 5);
  state.learning_rate = 0.0625;
  state.gradient_norm = 0.25;
  state.flops_per_second = 0x1p41;

  history.tell(event_of("step", kTime, state.to_json()));
  history.feed->flush();

  QCOMPARE(history.metric({{"name", "learning_rate"}})["mean"].dump(), std::string("[0.0625]"));
  QCOMPARE(history.metric({{"name", "gradient_norm"}})["mean"].dump(), std::string("[0.25]"));
  QCOMPARE(history.metric({{"name", "flops_per_second"}})["mean"].dump(), std::string("[2199023255552.0]"));
  const nlohmann::json names = history.metric(nlohmann::json::object())["names"];
  QVERIFY2(names.dump().find("mfu") == std::string::npos, names.dump().c_str());  // it was not known
}

void HistoryTest::a_damaged_file_is_set_aside_data() {
  QTest::addColumn<QString>("damage");
  QTest::newRow("no database") << "text";
  QTest::newRow("torn in the middle") << "middle";
  QTest::newRow("of a newer version") << "version";
}

void HistoryTest::a_damaged_file_is_set_aside() {
  QFETCH(const QString, damage);
  Fixture history;
  history.steps(5000);
  history.feed.reset();
  history.store.reset();
  if (damage == "text") {
    std::ofstream(history.path()) << "this was a database once, before the disk had its way with it";
  } else if (damage == "middle") {
    std::fstream file(history.path(), std::ios::in | std::ios::out | std::ios::binary);
    for (int page = 8; page < 40; ++page) file.seekp(page * 4096).write(std::string(3000, '\x5a').data(), 3000);
  } else {
    QVERIFY(Database::open(history.path())->exec("PRAGMA user_version = 99").ok());
  }

  history.open();
  history.steps(3);

  QVERIFY2(history.store->notice().find(".damaged-") != std::string::npos, history.store->notice().c_str());
  QCOMPARE(sum(history.metric({{"name", "loss_nats"}})["count"]), 3u);
  int kept = 0;
  for (const auto& entry : std::filesystem::directory_iterator(history.path().parent_path())) {
    if (entry.path().string().find(".damaged-") != std::string::npos) ++kept;
  }
  QCOMPARE(kept, 1);
}

void HistoryTest::a_full_disk_is_told_and_survived() {
  Fixture history;
  history.steps(10);
  std::string trouble;
  {
    const FullDisk full;
    history.steps(10, kTime + 100);
    trouble = history.feed->trouble();
  }

  QVERIFY2(trouble.find("Training goes on") != std::string::npos, trouble.c_str());
  QCOMPARE(sum(history.metric({{"name", "loss_nats"}})["count"]), 10u);
  history.feed->flush();  // there is room again: nothing was lost
  QCOMPARE(history.feed->trouble(), std::string());
  QCOMPARE(sum(history.metric({{"name", "loss_nats"}})["count"]), 20u);
}

void HistoryTest::a_disk_that_stays_full_costs_points_before_rounds() {
  Fixture history;
  history.steps(1);
  {
    const FullDisk full;
    for (std::uint32_t round = 0; round < 50; ++round) {
      history.tell(event_of("round.begin", kTime + round, training(round, 0, 3).to_json()));
      for (std::uint32_t step = 0; step < 100; ++step) {
        history.tell(event_of("step", kTime + round, training(round, step, 3).to_json()));
      }
      history.feed->flush();
    }
  }

  history.feed->flush();

  QCOMPARE(history.feed->trouble(), std::string());
  const std::uint64_t points = sum(history.metric({{"name", "loss_nats"}})["count"]);
  QVERIFY2(points > 1000 && points < 5000, std::to_string(points).c_str());
  QCOMPARE(list_rounds(*history.store, {{"limit", 100}})->at("rounds").size(), 50u);
}

void HistoryTest::wrong_parameters_are_refused_data() {
  QTest::addColumn<QString>("params");
  QTest::addColumn<QString>("says");
  QTest::newRow("name") << R"({"name": 5})"
                        << "\"name\"";
  QTest::newRow("too many") << R"({"name": "loss_nats", "max_points": 5001})"
                            << "from 1 to 5000";
  QTest::newRow("none") << R"({"name": "loss_nats", "max_points": 0})"
                        << "from 1 to 5000";
  QTest::newRow("axis") << R"({"name": "loss_nats", "axis": "moon"})"
                        << "time, step or tokens";
  QTest::newRow("from") << R"({"name": "loss_nats", "from": "yesterday"})"
                        << "\"from\"";
  QTest::newRow("the past of nobody") << R"({"name": "run.mean_loss_nats"})"
                                      << "no metric 'run.mean_loss_nats'";
  QTest::newRow("unknown") << R"({"name": "los_nats"})"
                           << "no metric 'los_nats'";
}

void HistoryTest::wrong_parameters_are_refused() {
  QFETCH(const QString, params);
  QFETCH(const QString, says);
  Fixture history;
  history.steps(2);

  const auto answer = query_metrics(*history.store, nlohmann::json::parse(params.toStdString()));

  QVERIFY(!answer.ok());
  QVERIFY2(answer.error().message.find(says.toStdString()) != std::string::npos, answer.error().message.c_str());
}

void HistoryTest::garbage_events_change_nothing() {
  Fixture history;
  history.steps(2);
  for (const char* text :
       {"[]", "{}", R"({"event":"step","time":"now","data":{}})",
        R"({"event":"step","time":5,"data":{"loss_nats":{}}})",
        R"({"event":"sync.phase","time":5,"data":{"phase":[],"seconds":-1}})",
        R"({"event":"sync.phase","time":5,"data":{"phase":"x","seconds":1,"round":1e300}})",
        R"({"event":"sync.phase","time":5,"data":{"phase":"begin","round":1,"attempt":1,"ring":[{"island":"isl-a"}]}})",
        R"({"event":"sync.progress","time":5,"data":{"phase":"all_gather","round":1,"attempt":1,"bytes_done":5}})",
        R"({"event":"transfer","time":5,"data":{"what":"state","done_bytes":5}})",
        R"({"event":"gpu.sample","time":5,"data":{"gpus":{"0":1}}})", R"({"event":"peer.up","time":5,"data":{}})"}) {
    history.tell(nlohmann::json::parse(text));
  }
  history.feed->flush();

  QCOMPARE(sum(history.metric({{"name", "loss_nats"}})["count"]), 2u);
  QCOMPARE(list_rounds(*history.store, nlohmann::json::object())->at("rounds").size(), 0u);
  QCOMPARE(history.feed->trouble(), std::string());
}

void HistoryTest::a_command_reads_while_the_agent_writes() {
  Fixture history;
  history.steps(4);

  const auto reader = HistoryStore::open_to_read(history.path());

  QVERIFY2(reader.ok(), reader.ok() ? "" : reader.error().message.c_str());
  QCOMPARE(sum(query_metrics(**reader, {{"name", "loss_nats"}})->at("count")), 4u);
  QCOMPARE(HistoryStore::open_to_read(history.path().parent_path() / "none.sqlite").error().code, ErrorCode::kNotFound);
}

QTEST_GUILESS_MAIN(HistoryTest)
#include "history_test.moc"
