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
    return [this](const char* event, const nlohmann::json& of) {
      events.emplace_back(event);
      data.push_back(of);
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
  news.round_done(begin + 14s);

  std::string phases, links;
  for (std::size_t i = 0; i < told.events.size(); ++i) {
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
  news.attempt_begins(attempt, roster);

  QCOMPARE(told.events, (std::vector<std::string>{"sync.phase", "sync.progress", "sync.phase"}));
  QCOMPARE(QString::fromStdString(told.data[0].dump()),
           QString(R"({"attempt":2,"phase":"begin","ring":[)"
                   R"({"edge_bytes_per_second":5000000.0,"island":"isl-a","name":"name of isl-a","tokens":4096},)"
                   R"({"edge_bytes_per_second":null,"island":"isl-gone","name":"","tokens":0}],"round":7})"));
  QCOMPARE(QString::fromStdString(told.data[1].dump()),
           QString(R"({"attempt":2,"bytes_done":10,"bytes_total":40,"phase":"all_gather",)"
                   R"("received_bytes_per_second":1.5,"round":7,"sent_bytes_per_second":2.5,"step":3,"steps":4})"));
  QVERIFY(told.data[2]["ring"][0]["edge_bytes_per_second"].is_null());
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
  news.round_done(Clock::now());

  // What callers go by does not depend on who listens.
  QVERIFY(news.hub_lost("no way there", {}));
  QVERIFY(!news.hub_lost("no way there", {}));
  news.hub_back();
  QVERIFY(news.hub_lost("no way there", {}));
}

QTEST_GUILESS_MAIN(IslandNewsTest)
#include "island_news_test.moc"
