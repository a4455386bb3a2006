// How an island reaches the others: the hub's link and transfers, out of events and states.
#include "app/core/uplink.h"

#include <QtTest>

#include "tests/app/core/model_fixture.h"

using namespace atl;
using atl::test::event_of;

namespace {

HeardEvent lost(double time, const char* why = "no route") {
  HeardEvent event = event_of("hub.link", {{"up", false}, {"text", why}, {"tries_for_seconds", 600.0}});
  event.time = time;
  return event;
}

HeardEvent back(double time) {
  HeardEvent event = event_of("hub.link", {{"up", true}});
  event.time = time;
  return event;
}

HeardEvent transfer(const char* what, const char* status, unsigned done = 250) {
  return event_of("transfer", {{"what", what}, {"status", status}, {"done_bytes", done}, {"total_bytes", 1000u}});
}

NodeState state_of(const char* word, std::int64_t pid, const char* error = "") {
  NodeState state = *node_state_from_json(test::training_state());
  state.island.state = parse_word<IslandPhase>(word);
  state.island.pid = pid;
  state.island.error = error;
  return state;
}

class Fixture {
 public:
  void says(const HeardEvent& event) { uplink.take(event); }
  void is(const NodeState& state, double time = 2000) {
    uplink.take({.what = event::StateChanged{state}, .time = time});
  }
  Uplink uplink;
};

}  // namespace

class UplinkTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_trainer_that_trains_reaches_the_hub();
  void a_hub_that_is_lost_is_told_with_since_when_and_why();
  void it_is_lost_until_it_is_back();
  void what_was_told_before_somebody_looked_counts();
  void another_trainer_begins_anew();
  void while_no_trainer_reaches_it_it_stays_lost_since_then();
  void after_lost_events_nothing_is_made_up();
  void a_transfer_is_followed_to_its_end();
  void a_transfer_that_failed_says_why_until_it_begins_again();
  void nonsense_is_skipped();
};

void UplinkTest::a_trainer_that_trains_reaches_the_hub() {
  Fixture f;
  QVERIFY(!f.uplink.hub());
  f.is(state_of("joining", 4711));
  QVERIFY(!f.uplink.hub());

  f.is(state_of("waiting", 4711));

  QVERIFY(f.uplink.hub() && f.uplink.hub()->up);
  QVERIFY(!f.uplink.hub()->since);
}

void UplinkTest::a_hub_that_is_lost_is_told_with_since_when_and_why() {
  Fixture f;
  f.is(state_of("training", 4711));

  f.says(lost(1500));

  QVERIFY(f.uplink.hub() && !f.uplink.hub()->up);
  QCOMPARE(*f.uplink.hub()->since, 1500.0);
  QCOMPARE(*f.uplink.hub()->tries_until, 2100.0);
  QCOMPARE(f.uplink.hub()->cause, std::string("no route"));
}

void UplinkTest::it_is_lost_until_it_is_back() {
  Fixture f;
  f.is(state_of("training", 4711));
  f.says(lost(1500));
  f.is(state_of("training", 4711, "the hub does not answer (no route)"));
  f.is(state_of("training", 4711));  // it trains on
  QVERIFY(!f.uplink.hub()->up);

  f.says(back(1700));

  QVERIFY(f.uplink.hub()->up);
  QCOMPARE(*f.uplink.hub()->since, 1700.0);
  QVERIFY(f.uplink.hub()->cause.empty() && !f.uplink.hub()->tries_until);
}

void UplinkTest::what_was_told_before_somebody_looked_counts() {
  Fixture f;
  HeardEvent kept = lost(900);
  kept.kept = true;

  f.says(kept);
  f.is(state_of("training", 4711, "the hub does not answer (no route)"));

  QVERIFY(f.uplink.hub() && !f.uplink.hub()->up);
  QCOMPARE(*f.uplink.hub()->since, 900.0);
}

void UplinkTest::another_trainer_begins_anew() {
  Fixture f;
  f.is(state_of("training", 4711));
  f.says(lost(1500));
  f.says(transfer("state", "running"));

  f.is(state_of("joining", 4712));

  QVERIFY(!f.uplink.hub() && f.uplink.transfers().empty());
}

void UplinkTest::while_no_trainer_reaches_it_it_stays_lost_since_then() {
  Fixture f;
  f.is(state_of("training", 4711));
  f.says(lost(1500));
  NodeState waits = state_of("reconnecting", 0, "the hub did not answer for 600 s");
  waits.agent.last_exit = TrainerExitView{ExitCause::kHubUnreachable, "the hub did not answer for 600 s", 2100};
  waits.agent.restart_in_seconds = 8;

  f.is(waits, 2101);

  QVERIFY(f.uplink.hub() && !f.uplink.hub()->up);
  QCOMPARE(*f.uplink.hub()->since, 1500.0);
  QCOMPARE(f.uplink.hub()->cause, std::string("no route"));
  QCOMPARE(*f.uplink.hub()->tries_until, 2109.0);
  f.is(state_of("stopped", 0));
  f.is(state_of("training", 4713));
  QVERIFY(f.uplink.hub()->up && !f.uplink.hub()->since);

  Fixture late;  // somebody looks only then
  late.is(waits, 2101);
  QCOMPARE(*late.uplink.hub()->since, 2100.0);
  QCOMPARE(late.uplink.hub()->cause, std::string("the hub did not answer for 600 s"));
}

void UplinkTest::after_lost_events_nothing_is_made_up() {
  Fixture f;
  f.is(state_of("training", 4711));
  f.says(back(1500));

  f.uplink.reset();
  f.is(state_of("training", 4711, "the hub does not answer (no route)"));

  QVERIFY(!f.uplink.hub());
}

void UplinkTest::a_transfer_is_followed_to_its_end() {
  Fixture f;
  HeardEvent running = transfer("state", "running");
  std::get<event::Transfer>(running.what).bytes_per_second = 50.0;
  std::get<event::Transfer>(running.what).seconds_left = 15.0;

  f.says(transfer("data", "running"));
  f.says(running);
  f.says(transfer("data", "done"));

  QCOMPARE(f.uplink.transfers().size(), 1u);
  const event::Transfer& state = f.uplink.transfers().front();
  QCOMPARE(state.what, Download::kState);
  QCOMPARE(state.done_bytes, 250u);
  QCOMPARE(state.total_bytes, 1000u);
  QCOMPARE(*state.bytes_per_second, 50.0);
  QCOMPARE(*state.seconds_left, 15.0);
  f.says(transfer("state", "done"));
  QVERIFY(f.uplink.transfers().empty());
}

void UplinkTest::a_transfer_that_failed_says_why_until_it_begins_again() {
  Fixture f;
  HeardEvent failed = transfer("state", "failed");
  std::get<event::Transfer>(failed.what).text = "nobody has it";

  f.says(failed);
  QCOMPARE(f.uplink.transfers().front().status, DownloadStatus::kFailed);
  QCOMPARE(f.uplink.transfers().front().text, std::string("nobody has it"));
  f.says(transfer("state", "running", 300));

  QCOMPARE(f.uplink.transfers().size(), 1u);
  QVERIFY(f.uplink.transfers().front().status == DownloadStatus::kRunning && f.uplink.transfers().front().text.empty());
}

void UplinkTest::nonsense_is_skipped() {
  Fixture f;
  for (const nlohmann::json& data :
       {nlohmann::json(), nlohmann::json("up"), nlohmann::json{{"up", "yes"}}, nlohmann::json{{"text", "x"}}}) {
    f.says(event_of("hub.link", data));
  }
  for (const nlohmann::json& data :
       {nlohmann::json(), nlohmann::json{{"what", "state"}, {"status", "running"}, {"done_bytes", -1}},
        nlohmann::json{{"what", "soup"}, {"status", "running"}, {"done_bytes", 1u}, {"total_bytes", 2u}}}) {
    f.says(event_of("transfer", data));
  }
  QVERIFY(!f.uplink.hub() && f.uplink.transfers().empty());

  f.says(transfer("data", "running", 5000));  // more than there is
  QCOMPARE(f.uplink.transfers().front().done_bytes, 1000u);
}

QTEST_GUILESS_MAIN(UplinkTest)
#include "uplink_test.moc"
