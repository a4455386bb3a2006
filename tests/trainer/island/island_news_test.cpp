// What an island tells of the others and of its synchronisation.
#include <QtTest>
#include <nlohmann/json.hpp>

#include "trainer/island/island_news.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

struct Told {
  std::vector<std::string> events;
  std::vector<nlohmann::json> data;

  IslandNews::Publish publish() {
    return [this](const ControlEvent& event) {
      events.emplace_back(name_of(event));
      data.push_back(data_of(event));
    };
  }
};

RosterEntry entry(const char* id, std::uint16_t port = 47000) {
  return {IslandId{id}, "name of " + std::string(id), {"203.0.113.7", port}, "", "atoll 0.1.0", "Oslo"};
}

}  // namespace

class IslandNewsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void who_comes_and_goes_is_told_once();
  void each_part_of_a_round_is_timed();
  void an_attempt_begins_with_its_ring_and_says_how_far_it_is();
  void a_hub_that_is_lost_is_told_once_and_so_is_its_return();
  void without_a_listener_the_rest_goes_on();
  void a_round_that_began_elsewhere_has_no_figures_of_this_island();
  void each_reason_to_tell_the_state_is_its_event();
};

void IslandNewsTest::who_comes_and_goes_is_told_once() {
  Told told;
  IslandNews news(IslandId{"isl-self"}, told.publish());

  news.learn_roster({{entry("isl-self"), entry("isl-a"), entry("isl-b")}});
  news.learn_roster({{entry("isl-self"), entry("isl-a"), entry("isl-b")}});
  news.learn_roster({{entry("isl-self"), entry("isl-b", 47001)}});

  QCOMPARE(told.events, (std::vector<std::string>{"peer.up", "peer.up", "peer.up", "peer.down"}));
  QCOMPARE(told.data[2]["address"].get<std::string>(), std::string("203.0.113.7:47001"));
  QCOMPARE(told.data[2]["version"].get<std::string>(), std::string("atoll 0.1.0"));
  QCOMPARE(told.data[2]["region"].get<std::string>(), std::string("Oslo"));
  QCOMPARE(told.data[3]["island"].get<std::string>(), std::string("isl-a"));
}

void IslandNewsTest::each_part_of_a_round_is_timed() {
  Told told;
  IslandNews news(IslandId{"isl-self"}, told.publish());
  const auto begin = Clock::now();
  AllReduceSpec spec;
  spec.round = OuterStep{7};
  spec.attempt = Attempt{1};
  AllReduceReport report;
  report.bytes_sent = 100;
  report.phases = {500ms, 1s, 2s, 500ms};
  report.next = IslandId{"isl-a"};
  report.bytes_per_second = 5e6;
  report.rtt_seconds = 0.5;
  report.previous = IslandId{"isl-b"};
  report.bytes_per_second_received = 4e6;

  news.inner_phase_done(begin);
  AllReduceFailure failure;
  failure.peer = IslandId{"isl-b"};
  news.attempt_done(spec, failure, begin + 2s, begin + 5s);
  spec.attempt = Attempt{2};
  news.attempt_done(spec, report, begin + 6s, begin + 10s);
  news.committed(OuterStep{7}, begin + 11s);
  IslandState state;
  state.round = 7;
  news.round_begins(state);
  state.outer_step = 8;
  state.tokens = 4096;
  state.bytes_sent = 100;
  state.inner_seconds = 2;
  state.accepted_round = 7;
  news.round_done(begin + 14s, state);

  std::string phases, links;
  nlohmann::json round;
  for (std::size_t i = 0; i < told.events.size(); ++i) {
    if (told.events[i] == "round.done") round = told.data[i];
    if (told.events[i] == "peer.link") links += told.data[i].dump();
    if (told.events[i] != "sync.phase") continue;
    phases += told.data[i]["attempt"].dump() + told.data[i]["phase"].get<std::string>() +
              told.data[i]["seconds"].dump() + " ";
  }
  QCOMPARE(phases, std::string("1wait2.0 1failed3.0 2wait1.0 2connect0.5 2quantise1.0 2reduce_scatter2.0 "
                               "2all_gather0.5 2commit1.0 2apply3.0 "));
  QCOMPARE(links, std::string(R"({"failed":true,"island":"isl-b"})"
                              R"({"bytes_per_second":5000000.0,"island":"isl-a","rtt_seconds":0.5})"
                              R"({"down_bytes_per_second":4000000.0,"island":"isl-b"})"));
  QCOMPARE(round["round"].get<int>(), 7);
  QCOMPARE(round["tokens"].get<int>(), 4096);
  QCOMPARE(round["bytes_sent"].get<int>(), 100);
  QCOMPARE(round["inner_seconds"].get<double>(), 2.0);
  QCOMPARE(round["accepted"].get<bool>(), true);
  QCOMPARE(told.events.back(), std::string("round.done"));  // after its last part
}

void IslandNewsTest::an_attempt_begins_with_its_ring_and_says_how_far_it_is() {
  Told told;
  IslandNews news(IslandId{"isl-self"}, told.publish());
  Roster roster;
  roster.replace({{entry("isl-self"), entry("isl-a")}});
  HubAttempt attempt{OuterStep{7}, Attempt{2}, {{IslandId{"isl-a"}, {}, 4096}, {IslandId{"isl-gone"}, {}, 0}}};
  attempt.edge_bytes_per_second = {5e6, 0};

  news.attempt_begins(attempt, roster);
  AllReduceSpec spec;
  spec.round = OuterStep{7};
  spec.attempt = Attempt{2};
  news.progress(spec, {RingPhase::kAllGather, 10, 40, 3, 4, 2.5, 1.5});
  attempt.edge_bytes_per_second.clear();
  attempt.schedule = Schedule::kDirect;
  news.attempt_begins(attempt, roster);

  QCOMPARE(told.events, (std::vector<std::string>{"sync.phase", "sync.progress", "sync.phase"}));
  QCOMPARE(QString::fromStdString(told.data[0].dump()),
           QString(R"({"attempt":2,"fragment":0,"phase":"begin","ring":[)"
                   R"({"edge_bytes_per_second":5000000.0,"island":"isl-a","name":"name of isl-a","tokens":4096},)"
                   R"({"edge_bytes_per_second":null,"island":"isl-gone","name":"","tokens":0}],"round":7})"));
  QCOMPARE(QString::fromStdString(told.data[1].dump()),
           QString(R"({"attempt":2,"bytes_done":10,"bytes_total":40,"fragment":0,"phase":"all_gather",)"
                   R"("received_bytes_per_second":1.5,"round":7,"sent_bytes_per_second":2.5,"step":3,"steps":4})"));
  QVERIFY(told.data[2]["ring"][0]["edge_bytes_per_second"].is_null());
  QVERIFY(told.data[2]["directly"].get<bool>());
}

void IslandNewsTest::a_hub_that_is_lost_is_told_once_and_so_is_its_return() {
  Told told;
  IslandNews news(IslandId{"isl-self"}, told.publish());

  news.hub_back();
  QVERIFY(news.hub_lost("refused", 120s));
  QVERIFY(!news.hub_lost("timeout", 100s));
  news.hub_back();
  news.hub_back();
  QVERIFY(news.hub_lost("refused", std::nullopt));

  QCOMPARE(told.events, (std::vector<std::string>(3, "hub.link")));
  QCOMPARE(told.data[0].dump(), std::string(R"({"text":"refused","tries_for_seconds":120.0,"up":false})"));
  QCOMPARE(told.data[1].dump(), std::string(R"({"up":true})"));
  QCOMPARE(told.data[2].dump(), std::string(R"({"text":"refused","up":false})"));  // for ever
}

void IslandNewsTest::without_a_listener_the_rest_goes_on() {
  IslandNews news(IslandId{"isl-self"}, {});

  news.learn_roster({{entry("isl-a")}});
  news.attempt_begins({}, {});
  news.progress({}, {});
  news.attempt_done({}, AllReduceFailure{}, Clock::now(), Clock::now());
  news.round_done(Clock::now(), IslandState{});

  // What callers go by does not depend on who listens.
  QVERIFY(news.hub_lost("no way there", {}));
  QVERIFY(!news.hub_lost("no way there", {}));
  news.hub_back();
  QVERIFY(news.hub_lost("no way there", {}));
}

// A round that began before this trainer came has no figures of its own; one that it did is told with them.
void IslandNewsTest::a_round_that_began_elsewhere_has_no_figures_of_this_island() {
  Told told;
  IslandNews news(IslandId{"isl-self"}, told.publish());
  IslandState state;
  state.outer_step = 9;
  state.tokens = 4096;

  news.round_done(Clock::now(), state);

  QCOMPARE(told.events, std::vector<std::string>{"round.done"});
  QCOMPARE(told.data[0]["round"].get<int>(), 8);
  QVERIFY(!told.data[0].contains("tokens") && !told.data[0].contains("bytes_sent"));
}

void IslandNewsTest::each_reason_to_tell_the_state_is_its_event() {
  RunConfig run;
  run.fragments = 2;
  IslandState state;
  state.round = 3;
  state.outer_step = 3;
  const auto named = [&](StateNews news) { return std::string(name_of(event_of(news, state, run))); };

  QCOMPARE(named(StateNews::kChanged), std::string("state.changed"));
  QCOMPARE(named(StateNews::kRoundBegin), std::string("round.begin"));
  QCOMPARE(named(StateNews::kStep), std::string("step"));
  QCOMPARE(named(StateNews::kSyncing), std::string("sync.phase"));
  QCOMPARE(named(StateNews::kSyncDone), std::string("sync.done"));
  QCOMPARE(named(StateNews::kCheckpointSaved), std::string("checkpoint.saved"));
  QCOMPARE(named(StateNews::kError), std::string("error"));
  const ControlEvent step = event_of(StateNews::kStep, state, run);
  QCOMPARE(state_in(step)->island.round, 3u);
  QVERIFY(!data_of(step).contains("agent"));  // which is its agent's to tell
  QCOMPARE(std::get<event::RoundBegin>(event_of(StateNews::kRoundBegin, state, run)).fragment, FragmentId{1});
  QCOMPARE(std::get<event::SyncDone>(event_of(StateNews::kSyncDone, state, run)).fragment, FragmentId{0});
}

QTEST_GUILESS_MAIN(IslandNewsTest)
#include "island_news_test.moc"
