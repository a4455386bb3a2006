// The models of what an island does with others: the islands, the rounds, the all-reduce; over an agent in memory.
#include <fmt/format.h>

#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <QtTest>

#include "app/core/islands_model.h"
#include "app/core/rounds_model.h"
#include "app/core/sync_model.h"
#include "tests/app/core/model_fixture.h"
#include "tests/fakes/patience.h"

using namespace atl;
using atl::test::event_of;
using atl::test::ModelFixture;
using atl::test::shown;

namespace {

nlohmann::json phase(unsigned round, const char* name, double seconds) {
  return {{"round", round}, {"attempt", 1u}, {"phase", name}, {"seconds", seconds}, {"bytes", 1000u}};
}

nlohmann::json ring(std::initializer_list<std::pair<const char*, double>> members) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [island, rate] : members) {
    list.push_back({{"island", island},
                    {"name", fmt::format("name of {}", island)},
                    {"tokens", 1000u},
                    {"edge_bytes_per_second", rate > 0 ? nlohmann::json(rate) : nlohmann::json()}});
  }
  return list;
}

}  // namespace

class IslandModelsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { QLocale::setDefault(QLocale::c()); }

  void islands_are_listed_with_units();
  void islands_come_go_and_are_measured();
  void what_an_event_told_is_newer_than_the_list();
  void the_slowest_neighbour_is_named_where_another_is_twice_as_fast();
  void islands_stay_within_bounds();

  void rounds_are_newest_first_and_more_on_demand();
  void a_round_is_followed_from_its_beginning_to_its_end();
  void a_round_that_was_averaged_without_us_says_so();
  void compute_utilisation_is_the_part_of_the_time_computed_in();
  void rounds_stay_within_bounds();

  void an_all_reduce_is_followed();
  void a_round_that_is_tried_again_keeps_its_phases();
  void of_averages_that_overlap_the_newest_is_shown();
  void the_slowest_edge_is_named_where_it_holds_the_others_back();
  void links_measured_by_this_island_are_its_edges();
  void where_everybody_sends_to_everybody_no_edge_is_told_from_the_others();
  void nonsense_about_an_all_reduce_is_skipped();
};

// ---- islands

void IslandModelsTest::islands_are_listed_with_units() {
  ModelFixture f;
  QVERIFY(f.connect());
  IslandsModel islands(f.link);
  const QAbstractItemModelTester tester(&islands);

  islands.reload();

  QTRY_COMPARE(islands.rowCount(), 3);
  QCOMPARE(shown(islands, 0, IslandsModel::kName), QString("basement"));
  QCOMPARE(shown(islands, 0, IslandsModel::kRtt), QString("32 ms"));
  QCOMPARE(shown(islands, 0, IslandsModel::kUp), QString("100 Mbit/s"));
  QCOMPARE(shown(islands, 2, IslandsModel::kState), QString("\u25CB away"));
  QCOMPARE(islands.data(islands.index(0, IslandsModel::kUp), IslandsModel::kSortRole).toDouble(), 12.5e6);
  QCOMPARE(islands.data(islands.index(0, IslandsModel::kUp), Qt::AccessibleTextRole).toString(),
           QString("To it: 100 Mbit/s"));
  QVERIFY(islands.find("isl-bbbb") != nullptr);
  QVERIFY(islands.find("isl-none") == nullptr);
}

void IslandModelsTest::islands_come_go_and_are_measured() {
  ModelFixture f;
  IslandsModel islands(f.link);
  const QAbstractItemModelTester tester(&islands);
  QVERIFY(f.connect([&](const HeardEvent& event) { islands.take(event); }));

  f.agent.tell(
      "peer.up",
      {{"island", "isl-1"}, {"name", "one"}, {"address", "a:1"}, {"version", "atoll 0.1.0"}, {"region", "us"}});
  f.agent.tell("peer.link", {{"island", "isl-1"}, {"rtt_seconds", 0.08}, {"bytes_per_second", 2e6}});
  f.agent.tell("peer.link", {{"island", "isl-1"}, {"down_bytes_per_second", 3e6}});
  f.agent.tell("peer.link", {{"island", "isl-1"}, {"failed", true}});
  f.agent.tell("peer.down", {{"island", "isl-1"}, {"name", "one"}});
  f.agent.tell("peer.up", {{"name", "nobody"}});

  QTRY_VERIFY(islands.rowCount() == 1 && !islands.rows()[0].up);
  const IslandRow& row = islands.rows()[0];
  QCOMPARE(row.name, std::string("one"));
  QCOMPARE(row.region, std::string("us"));
  QCOMPARE(*row.rtt_seconds, 0.08);
  QCOMPARE(*row.up_bytes_per_second, 2e6);
  QCOMPARE(*row.down_bytes_per_second, 3e6);
  QCOMPARE(row.retries, 1u);
}

void IslandModelsTest::what_an_event_told_is_newer_than_the_list() {
  ModelFixture f;
  IslandsModel islands(f.link);
  QVERIFY(f.connect([&](const HeardEvent& event) { islands.take(event); }));
  islands.reload();
  QTRY_COMPARE(islands.rowCount(), 3);
  f.agent.tell("peer.down", {{"island", "isl-aaaa"}});
  f.agent.tell("peer.up", {{"island", "isl-new"}});
  QTRY_COMPARE(islands.rowCount(), 4);

  islands.reload();  // the list was written before
  QTRY_COMPARE(f.agent.count("peers.list"), 2u);
  QTest::qWait(20);

  QCOMPARE(islands.rowCount(), 4);
  QVERIFY(!islands.find("isl-aaaa")->up);
  QVERIFY(islands.find("isl-new")->up);
}

void IslandModelsTest::the_slowest_neighbour_is_named_where_another_is_twice_as_fast() {
  ModelFixture f;
  QVERIFY(f.connect());
  IslandsModel islands(f.link);

  islands.reload();

  QTRY_COMPARE(islands.rowCount(), 3);
  QVERIFY(islands.find("isl-bbbb")->slowest);
  QCOMPARE(shown(islands, 1, IslandsModel::kState), QString("\u26A0 slowest"));
  islands.take(event_of("peer.link", {{"island", "isl-bbbb"}, {"bytes_per_second", 10e6}}));
  QVERIFY(!islands.find("isl-bbbb")->slowest);
}

void IslandModelsTest::islands_stay_within_bounds() {
  ModelFixture f;
  IslandsModel islands(f.link);

  for (int i = 0; i < 1500; ++i) {
    HeardEvent event = event_of(i < 1000 ? "peer.down" : "peer.up", {{"island", fmt::format("isl-{}", i)}});
    event.time = i;
    islands.take(event);
  }

  QCOMPARE(islands.rowCount(), static_cast<int>(IslandsModel::kMaxRows));
  QVERIFY(islands.find("isl-1499") != nullptr);
  QVERIFY(islands.find("isl-0") == nullptr);
}

// ---- rounds

void IslandModelsTest::rounds_are_newest_first_and_more_on_demand() {
  ModelFixture f;
  QVERIFY(f.connect());
  RoundsModel rounds(f.link);
  const QAbstractItemModelTester tester(&rounds);
  f.agent.answer("rounds.list", [](const nlohmann::json& params) {
    nlohmann::json list = nlohmann::json::array();
    unsigned next = params.value("before", 100u);
    for (unsigned i = 0; i < std::min(params.value("limit", 50u), 40u) && next > 0; ++i) {
      --next;
      list.push_back(test::round_json(next, 1000.0 + 300 * next));
    }
    return nlohmann::json{{"run", "run-1"}, {"rounds", list}, {"more", next > 0}};
  });

  rounds.reload();
  QTRY_COMPARE(rounds.rowCount(), 40);
  QVERIFY(rounds.canFetchMore({}));
  QTRY_VERIFY((rounds.fetchMore({}), rounds.rowCount() == 100));

  QCOMPARE(rounds.rowCount(), 100);
  QCOMPARE(rounds.rows().front().round, 99u);
  QCOMPARE(rounds.rows().back().round, 0u);
  QCOMPARE(rounds.rows()[10].phases.size(), 7u);
  QCOMPARE(shown(rounds, 0, RoundsModel::kBytes), QString("1.9 GB"));
  QCOMPARE(shown(rounds, 0, RoundsModel::kAccepted), QString("\u2713 accepted"));
}

void IslandModelsTest::a_round_is_followed_from_its_beginning_to_its_end() {
  ModelFixture f;
  RoundsModel rounds(f.link);
  const QAbstractItemModelTester tester(&rounds);
  QSignalSpy changed(&rounds, &RoundsModel::changed);
  QVERIFY(f.connect([&](const HeardEvent& event) { rounds.take(event); }));

  f.agent.tell_state("round.begin", {{"round", 43u}, {"tokens", 1000u}, {"bytes_sent", 10u}, {"inner_seconds", 100.0}});
  f.agent.tell("sync.phase", phase(43, "wait", 2.5));
  f.agent.tell("sync.phase", phase(43, "reduce_scatter", 12.5));
  f.agent.tell_state("sync.done", {{"outer_step", 44u},
                                   {"tokens", 5000u},
                                   {"bytes_sent", 90u},
                                   {"inner_seconds", 350.0},
                                   {"last_sync_seconds", 38.0},
                                   {"accepted_round", 43u},
                                   {"loss_nats", 2.5}});

  QTRY_VERIFY(rounds.rowCount() == 1 && rounds.rows()[0].ended);
  const RoundRow& row = rounds.rows()[0];
  QCOMPARE(row.round, 43u);
  QCOMPARE(*row.tokens, 4000u);
  QCOMPARE(*row.bytes_sent, 80u);
  QCOMPARE(*row.inner_seconds, 250.0);
  QCOMPARE(*row.sync_seconds, 38.0);
  QVERIFY(*row.accepted);
  QCOMPARE(row.phases.size(), 2u);
  QCOMPARE(row.phases[1].part, SyncPart::kReduceScatter);
  QTRY_VERIFY(!changed.empty());
}

void IslandModelsTest::a_round_that_was_averaged_without_us_says_so() {
  ModelFixture f;
  RoundsModel rounds(f.link);

  rounds.take({.what = event::RoundDone{.round = 42, .accepted = false}, .time = 1000});

  QCOMPARE(rounds.rowCount(), 1);
  QVERIFY(!*rounds.rows()[0].accepted);
  QCOMPARE(shown(rounds, 0, RoundsModel::kAccepted), QString("\u26A0 not in it"));
}

void IslandModelsTest::compute_utilisation_is_the_part_of_the_time_computed_in() {
  ModelFixture f;
  QVERIFY(f.connect());
  RoundsModel rounds(f.link);
  QVERIFY(!rounds.compute_utilisation());

  rounds.reload();

  QTRY_VERIFY(rounds.rowCount() > 0);
  QVERIFY(*rounds.compute_utilisation() > 0.8 && *rounds.compute_utilisation() < 0.95);
}

void IslandModelsTest::rounds_stay_within_bounds() {
  ModelFixture f;
  QVERIFY(f.connect());
  RoundsModel rounds(f.link);
  f.agent.answer("rounds.list", [](const nlohmann::json& params) {
    nlohmann::json list = nlohmann::json::array();
    for (unsigned next = params.value("before", 30'000u); next > 0 && list.size() < params.value("limit", 50u);) {
      --next;
      list.push_back({{"round", next}});
    }
    return nlohmann::json{{"run", "run-1"}, {"rounds", list}, {"more", true}};
  });
  rounds.reload();
  QTRY_VERIFY(rounds.rowCount() > 0);
  QTRY_VERIFY_WITH_TIMEOUT(
      (rounds.fetchMore({}), !rounds.canFetchMore({}) && rounds.rows().size() == RoundsModel::kMaxRows), 30'000);
  NodeState state = *node_state_from_json(test::training_state());

  for (std::uint32_t i = 30'000; i < 30'200; ++i) {
    state.island.round = i;
    rounds.take({.what = event::RoundBegin{state}, .time = 1000});
    for (int j = 0; j < 2; ++j) rounds.take(event_of("sync.phase", phase(i, "wait", 1)));
  }
  for (int j = 0; j < 5000; ++j) rounds.take(event_of("sync.phase", phase(30'100, "failed", 1)));

  QCOMPARE(rounds.rows().size(), RoundsModel::kMaxRows);
  QCOMPARE(rounds.rows().front().round, 30'199u);
  for (const RoundRow& row : rounds.rows()) QVERIFY(row.phases.size() <= 256);
}

// ---- the all-reduce

void IslandModelsTest::an_all_reduce_is_followed() {
  SyncModel sync;
  QSignalSpy changed(&sync, &SyncModel::changed);
  QVERIFY(!sync.active() && sync.ring().empty());

  sync.take(event_of("sync.phase", {{"phase", "begin"},
                                    {"round", 42u},
                                    {"attempt", 1u},
                                    {"ring", ring({{"isl-a", 10e6}, {"isl-b", 0}, {"isl-c", 8e6}})}}),
            "isl-b");
  QVERIFY(sync.active());
  QCOMPARE(sync.ring().size(), 3u);
  QVERIFY(sync.ring()[1].self && !sync.ring()[0].self);
  QCOMPARE(sync.ring()[0].name, std::string("name of isl-a"));
  QVERIFY(!sync.ring()[1].edge_bytes_per_second);
  sync.take(event_of("sync.progress", {{"round", 42u},
                                       {"attempt", 1u},
                                       {"phase", "all_gather"},
                                       {"bytes_done", 250u},
                                       {"bytes_total", 1000u},
                                       {"step", 3u},
                                       {"steps", 4u},
                                       {"sent_bytes_per_second", 1e6},
                                       {"received_bytes_per_second", 2e6}}),
            "isl-b");
  QCOMPARE(sync.progress()->fraction(), 0.25);
  QCOMPARE(sync.progress()->step, 3u);
  sync.take(event_of("sync.phase", phase(42, "all_gather", 14)), "isl-b");
  QCOMPARE(sync.phases().size(), 1u);
  nlohmann::json after = test::training_state();
  after["outer_step"] = 43u;
  sync.take(event_of("sync.done", after), "isl-b");

  QVERIFY(!sync.active());
  QCOMPARE(sync.ring().size(), 3u);  // as it was
  QTRY_VERIFY(!changed.empty());
  sync.reset();
  QVERIFY(sync.ring().empty() && sync.phases().empty() && !sync.progress());
}

void IslandModelsTest::a_round_that_is_tried_again_keeps_its_phases() {
  SyncModel sync;
  const auto begin = [&](unsigned round, unsigned attempt) {
    sync.take(
        event_of(
            "sync.phase",
            {{"phase", "begin"}, {"round", round}, {"attempt", attempt}, {"ring", ring({{"isl-a", 1}, {"isl-b", 1}})}}),
        "isl-a");
  };
  begin(42, 1);
  sync.take(event_of("sync.phase", phase(42, "failed", 5)), "isl-a");
  begin(42, 2);
  QCOMPARE(sync.phases().size(), 1u);
  QVERIFY(sync.active());

  begin(43, 1);

  QVERIFY(sync.phases().empty());
  QCOMPARE(*sync.round(), 43u);
}

void IslandModelsTest::of_averages_that_overlap_the_newest_is_shown() {
  SyncModel sync;
  const auto begin = [&](unsigned round) {
    sync.take(
        event_of("sync.phase",
                 {{"phase", "begin"}, {"round", round}, {"attempt", 1u}, {"ring", ring({{"isl-a", 1}, {"isl-b", 1}})}}),
        "isl-a");
  };
  const auto say = [&](const char* what, unsigned round, unsigned outer_step) {
    nlohmann::json state = test::training_state();
    state["round"] = round;
    state["outer_step"] = outer_step;
    sync.take(event_of(what, state), "isl-a");
  };
  begin(42);
  say("step", 43, 42);  // while it averages
  QVERIFY(sync.active());
  begin(43);
  sync.take(event_of("sync.phase", phase(42, "all_gather", 14)), "isl-a");
  say("sync.done", 44, 43);  // of 42
  QCOMPARE(*sync.round(), 43u);
  QVERIFY(sync.active() && sync.phases().empty());
  sync.take(event_of("sync.phase", phase(43, "reduce_scatter", 14)), "isl-a");
  say("sync.done", 43, 43);  // of 42, while nothing is trained
  QVERIFY(sync.active() && sync.phases().size() == 1);

  say("sync.done", 44, 44);
  QVERIFY(!sync.active());

  begin(44);
  say("step", 45, 45);  // its end was not heard
  QVERIFY(!sync.active());
  begin(45);
  sync.take(event_of("sync.phase", phase(45, "failed", 5)), "isl-a");
  say("step", 45, 45);  // the round is begun anew
  QVERIFY(!sync.active());
  begin(45);
  QVERIFY(sync.active() && sync.phases().empty());
  say("round.begin", 43, 43);  // the run went back
  begin(43);
  QVERIFY(sync.active());
  QCOMPARE(*sync.round(), 43u);
}

void IslandModelsTest::the_slowest_edge_is_named_where_it_holds_the_others_back() {
  SyncModel sync;
  const auto begin = [&](const nlohmann::json& members) {
    sync.take(event_of("sync.phase", {{"phase", "begin"}, {"round", 1u}, {"attempt", 1u}, {"ring", members}}), "isl-a");
  };
  begin(ring({{"isl-a", 10e6}, {"isl-b", 6e6}, {"isl-c", 0}}));
  QVERIFY(!sync.slowest_edge());
  begin(ring({{"isl-a", 10e6}, {"isl-b", 5e6}, {"isl-c", 0}}));
  QCOMPARE(*sync.slowest_edge(), 1u);
  begin(ring({{"isl-a", 10e6}, {"isl-b", 0}, {"isl-c", 0}}));
  QVERIFY(!sync.slowest_edge());
}

void IslandModelsTest::links_measured_by_this_island_are_its_edges() {
  SyncModel sync;
  sync.take(event_of("sync.phase", {{"phase", "begin"},
                                    {"round", 1u},
                                    {"attempt", 1u},
                                    {"ring", ring({{"isl-a", 0}, {"isl-b", 0}, {"isl-c", 0}})}}),
            "isl-a");

  sync.take(event_of("peer.link", {{"island", "isl-b"}, {"rtt_seconds", 0.1}, {"bytes_per_second", 5e6}}), "isl-a");
  sync.take(event_of("peer.link", {{"island", "isl-c"}, {"down_bytes_per_second", 7e6}}), "isl-a");
  sync.take(event_of("peer.link", {{"island", "isl-c"}, {"bytes_per_second", 9e6}}), "isl-a");  // not its edge

  QCOMPARE(*sync.ring()[0].edge_bytes_per_second, 5e6);
  QCOMPARE(*sync.ring()[2].edge_bytes_per_second, 7e6);
  QVERIFY(!sync.ring()[1].edge_bytes_per_second);
}

void IslandModelsTest::where_everybody_sends_to_everybody_no_edge_is_told_from_the_others() {
  SyncModel sync;
  nlohmann::json begin = {{"phase", "begin"},
                          {"round", 1u},
                          {"attempt", 1u},
                          {"directly", true},
                          {"ring", ring({{"isl-a", 1e6}, {"isl-b", 9e6}, {"isl-c", 9e6}})}};

  sync.take(event_of("sync.phase", begin), "isl-a");
  sync.take(event_of("peer.link", {{"island", "isl-b"}, {"rtt_seconds", 0.1}, {"bytes_per_second", 5e6}}), "isl-a");

  QVERIFY(sync.directly());
  QVERIFY(!sync.slowest_edge());
  for (const RingIsland& member : sync.ring()) QVERIFY(!member.edge_bytes_per_second);
  begin.erase("directly");
  begin["attempt"] = 2u;
  sync.take(event_of("sync.phase", begin), "isl-a");
  QVERIFY(!sync.directly());
  QCOMPARE(sync.slowest_edge(), std::optional<std::size_t>(0));
}

void IslandModelsTest::nonsense_about_an_all_reduce_is_skipped() {
  SyncModel sync;
  for (const char* text :
       {R"({"phase":"begin"})", R"({"phase":"begin","round":1,"ring":[{"name":1}]})", R"({"phase":7})",
        R"({"phase":"wait","round":-1,"seconds":1,"bytes":1,"attempt":1})", "[]", "null"}) {
    sync.take(event_of("sync.phase", nlohmann::json::parse(text)), "isl-a");
    sync.take(event_of("sync.progress", nlohmann::json::parse(text)), "isl-a");
    sync.take(event_of("peer.link", nlohmann::json::parse(text)), "isl-a");
  }
  QVERIFY(!sync.active() && sync.ring().empty() && sync.phases().empty());
}

QTEST_GUILESS_MAIN(IslandModelsTest)
#include "island_models_test.moc"
