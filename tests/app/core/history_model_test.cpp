// The history over an agent in memory: three axes, from coarse to fine, live points, another run; and what it is made
// of.
#include "app/core/history_model.h"

#include <QSignalSpy>
#include <QtTest>

#include "app/core/fetched_ranges.h"
#include "app/core/token_count.h"
#include "net/control/event_reader.h"
#include "tests/app/core/fake_agent.h"
#include "tests/fakes/patience.h"

using namespace atl;
using namespace std::chrono_literals;
using atl::test::FakeAgent;

namespace {

constexpr LinkTiming kFast{.first_retry = 10ms, .longest_retry = 80ms, .answer_time = 5s, .hello_time = 5s};

// The model with a node's part: events go to it, and the state is asked for once.
class Fixture {
 public:
  explicit Fixture(std::size_t points = 2000) : link(agent.open(), kFast), history(link) {
    agent.set_history(points);
    // The last step of the history is the island's.
    agent.say({{"round", 0u}, {"inner_steps", 1'000'000u}, {"inner_step", points - 1}, {"tokens", 5000u}});
    QObject::connect(&link, &AgentLink::eventReceived, &link, [this](const LinkEvent& event) {
      const auto heard = reader.read(event.name, event.data, event.time, event.seq, event.kept);
      if (!heard.ok()) return;
      for (const HeardEvent& one : *heard) history.take(one);
    });
    QObject::connect(&link, &AgentLink::mustReload, &link, [this] {
      link.call("state.get", nlohmann::json::object(), &link, [this](const auto& answer) {
        const auto state = answer.ok() ? node_state_from_json(*answer) : Result<NodeState>(answer.error());
        if (state.ok()) history.take({.what = event::StateChanged{*state}});
      });
      history.reload();
    });
  }
  bool connect() {
    link.start();
    return QTest::qWaitFor([this] { return link.state() == LinkState::kConnected && !history.names().empty(); });
  }
  bool load(const std::string& name, SeriesAxis axis) {
    (void)history.series(name, axis);
    return QTest::qWaitFor([&] { return !history.loading(name, axis); });
  }
  const Series& loss(SeriesAxis axis = SeriesAxis::kTime) { return history.series("loss_nats", axis); }

  FakeAgent agent;
  AgentLink link;
  EventReader reader;
  HistoryModel history;
};

}  // namespace

class HistoryModelTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_series_is_fetched_when_it_is_first_looked_at();
  void each_axis_is_a_series_of_its_own();
  void a_closer_look_fetches_what_is_finer();
  void a_look_at_what_is_fine_enough_fetches_nothing();
  void requests_are_gathered_and_one_is_under_way_at_most();
  void live_steps_are_appended();
  void what_was_told_but_not_written_yet_is_there_once();
  void tokens_go_on_where_the_history_counts();
  void samples_of_gpus_are_series_too();
  void the_past_is_fetched_again_when_it_was_told_anew();
  void another_run_begins_anew();
  void what_was_lost_is_fetched_again();
  void a_failed_query_is_said_and_a_missing_history_is_none();
  void answers_that_make_no_sense_are_skipped_data();
  void answers_that_make_no_sense_are_skipped();
  void live_points_without_end_stay_within_bounds();
  void fetched_ranges_know_what_is_coarser();
  void fetched_ranges_stay_within_bounds();
  void tokens_are_learned_from_a_step_that_both_know();
};

void HistoryModelTest::a_series_is_fetched_when_it_is_first_looked_at() {
  Fixture f;
  QVERIFY(f.connect());
  QSignalSpy changed(&f.history, &HistoryModel::changed);
  const std::size_t before = f.agent.count("metrics.query");

  QVERIFY(f.loss().empty());
  QVERIFY(f.history.loading("loss_nats", SeriesAxis::kTime));

  QTRY_COMPARE(f.loss().size(), 2000u);
  QVERIFY(!f.history.loading("loss_nats", SeriesAxis::kTime));
  QTRY_VERIFY(!changed.empty());
  QCOMPARE(changed.back().front().toString(), QString("loss_nats"));
  QCOMPARE(f.agent.count("metrics.query"), before + 1);
  QCOMPARE(f.agent.last_params("metrics.query")["run"], "run-1");
}

void HistoryModelTest::each_axis_is_a_series_of_its_own() {
  Fixture f;
  QVERIFY(f.connect());

  for (const SeriesAxis axis : {SeriesAxis::kTime, SeriesAxis::kStep, SeriesAxis::kTokens})
    QVERIFY(f.load("loss_nats", axis));

  QCOMPARE(f.loss(SeriesAxis::kTime).last(), f.agent.time());
  QCOMPARE(f.loss(SeriesAxis::kStep).last(), 1999.0);
  QCOMPARE(f.loss(SeriesAxis::kTokens).last(), 1999 * 636'300.0);
}

void HistoryModelTest::a_closer_look_fetches_what_is_finer() {
  Fixture f(400'000);
  QVERIFY(f.connect());
  QVERIFY(f.load("loss_nats", SeriesAxis::kStep));
  const std::size_t coarse = f.loss(SeriesAxis::kStep).size();
  QVERIFY(coarse <= 4001);

  f.history.want("loss_nats", SeriesAxis::kStep, 100'000, 101'000, 1000);

  QTRY_VERIFY(f.loss(SeriesAxis::kStep).size() > coarse);
  const Series& series = f.loss(SeriesAxis::kStep);
  QTRY_COMPARE(series.view(100'000, 101'000, 5000).size(), 1001u + 2);
  for (std::size_t i = 1; i < series.size(); ++i) QVERIFY(series.at(i - 1).x <= series.at(i).x);
  QCOMPARE(series.first(), 0.0);
  QVERIFY(series.last() > 399'000);
}

void HistoryModelTest::a_look_at_what_is_fine_enough_fetches_nothing() {
  Fixture f;
  QVERIFY(f.connect());
  QVERIFY(f.load("loss_nats", SeriesAxis::kStep));
  const std::size_t before = f.agent.count("metrics.query");

  f.history.want("loss_nats", SeriesAxis::kStep, 10, 12, 2000);
  f.history.want("loss_nats", SeriesAxis::kStep, -1e6, 1e7, 100);
  QTest::qWait(200);

  QCOMPARE(f.agent.count("metrics.query"), before);
}

void HistoryModelTest::requests_are_gathered_and_one_is_under_way_at_most() {
  Fixture f(400'000);
  QVERIFY(f.connect());
  QVERIFY(f.load("loss_nats", SeriesAxis::kStep));
  const std::size_t before = f.agent.count("metrics.query");

  for (int i = 0; i < 200; ++i) f.history.want("loss_nats", SeriesAxis::kStep, 1000.0 * i, 1000.0 * i + 1000, 1000);
  QTRY_VERIFY(f.agent.count("metrics.query") > before);
  QTest::qWait(200);

  QCOMPARE(f.agent.count("metrics.query"), before + 1);
  QCOMPARE(f.agent.last_params("metrics.query")["from"], 199'000.0 - 500);
}

void HistoryModelTest::live_steps_are_appended() {
  Fixture f;
  QVERIFY(f.connect());
  QVERIFY(f.load("loss_nats", SeriesAxis::kTime) && f.load("loss_nats", SeriesAxis::kStep));

  f.agent.step(1.25);
  f.agent.step(1.5);

  QTRY_COMPARE(f.loss().size(), 2002u);
  QCOMPARE(f.loss().at(2001).mean, 1.5);
  QCOMPARE(f.loss().last(), f.agent.time());
  QCOMPARE(f.loss(SeriesAxis::kStep).last(), 2001.0);
}

void HistoryModelTest::what_was_told_but_not_written_yet_is_there_once() {
  Fixture f;
  QVERIFY(f.connect());
  QVERIFY(f.load("loss_nats", SeriesAxis::kTime));
  const std::size_t written = f.loss().size();
  const double last = f.loss().last();
  const NodeState state = *node_state_from_json(f.agent.state());
  HeardEvent event{.what = event::Step{state}, .kept = true};

  for (const double after : {-5.0, 0.0, 1.0, 2.0, 2.0}) {
    event.time = last + after;
    f.history.take(event);
  }

  QCOMPARE(f.loss().size(), written + 2);
  QCOMPARE(f.loss().last(), last + 2);
}

void HistoryModelTest::tokens_go_on_where_the_history_counts() {
  Fixture f;
  f.agent.tell_state("step");  // the last one of the history, by a trainer that began at 0
  QVERIFY(f.connect());
  QVERIFY(f.load("loss_nats", SeriesAxis::kTokens));
  QTest::qWait(50);

  f.agent.step(1.25);

  QTRY_COMPARE(f.loss(SeriesAxis::kTokens).last(), 2000 * 636'300.0);
}

void HistoryModelTest::samples_of_gpus_are_series_too() {
  Fixture f;
  QVERIFY(f.connect());
  QSignalSpy names(&f.history, &HistoryModel::namesChanged);
  QVERIFY(f.load("gpu.1.power_watts", SeriesAxis::kTime));
  const std::size_t before = f.history.series("gpu.1.power_watts", SeriesAxis::kTime).size();

  f.agent.tell("gpu.sample",
               {{"gpus", {{{"index", 0}, {"power_watts", 300.0}}, {{"index", 1}, {"power_watts", 612.0}}}}});

  QTRY_COMPARE(f.history.series("gpu.1.power_watts", SeriesAxis::kTime).size(), before + 1);
  QVERIFY(!names.empty());
  QVERIFY(std::ranges::find(f.history.names(), "gpu.0.power_watts") != f.history.names().end());
}

void HistoryModelTest::the_past_is_fetched_again_when_it_was_told_anew() {
  Fixture f;
  std::vector<double> steps = {50, 150, 250};
  f.agent.answer("metrics.query", [&steps](const nlohmann::json& params) -> Result<nlohmann::json> {
    const std::string name = params.value("name", "");
    if (name.empty()) return nlohmann::json{{"run", "run-1"}, {"names", {"loss_nats", kPastLossSeries}}};
    const std::vector<double> x = name == kPastLossSeries ? steps : std::vector<double>();
    const std::vector<double> ones(x.size(), 1);
    return nlohmann::json{{"run", "run-1"}, {"width", 0},   {"time", x},   {"step", x},   {"tokens", x},
                          {"count", ones},  {"mean", ones}, {"low", ones}, {"high", ones}};
  });
  QVERIFY(f.connect());
  QVERIFY(f.load(kPastLossSeries, SeriesAxis::kStep));
  QCOMPARE(f.history.series(kPastLossSeries, SeriesAxis::kStep).size(), std::size_t{3});
  steps = {100, 200};  // of more rounds, in fewer pieces

  f.agent.tell("run.past", data_of(event::PastTold{"run-1", 100, {{{0, 2}, {2, 1}}, {}}}));

  QTRY_COMPARE(f.history.series(kPastLossSeries, SeriesAxis::kStep).size(), std::size_t{2});
  QCOMPARE(f.history.series(kPastLossSeries, SeriesAxis::kStep).last(), 200.0);
}

void HistoryModelTest::another_run_begins_anew() {
  Fixture f;
  QVERIFY(f.connect());
  QVERIFY(f.load("loss_nats", SeriesAxis::kTime));
  QCOMPARE(f.loss().size(), 2000u);

  f.agent.set_history(3);
  f.agent.tell_state("round.begin", {{"run_id", "run-2"}, {"inner_step", 0u}});

  QTRY_COMPARE(f.loss().size(), 3u);
  QCOMPARE(f.agent.last_params("metrics.query")["run"], "run-2");
}

void HistoryModelTest::what_was_lost_is_fetched_again() {
  Fixture f;
  QVERIFY(f.connect());
  QVERIFY(f.load("loss_nats", SeriesAxis::kTime));
  f.agent.step(1.25);
  QTRY_COMPARE(f.loss().size(), 2001u);

  f.agent.set_history(2500);
  f.agent.lose_events(100);
  f.agent.tell("something", nullptr);

  QTRY_COMPARE(f.loss().size(), 2500u);
}

void HistoryModelTest::a_failed_query_is_said_and_a_missing_history_is_none() {
  Fixture f;
  QVERIFY(f.connect());
  f.agent.fail("metrics.query", ErrorCode::kIo, "the history cannot be read");
  QVERIFY(f.load("loss_nats", SeriesAxis::kTime));
  QCOMPARE(f.history.problem(), std::string("the history cannot be read"));

  f.agent.fail("metrics.query", ErrorCode::kNotFound, "no history yet");
  QVERIFY(f.load("mfu", SeriesAxis::kTime));
  QVERIFY(f.history.problem().empty());
}

void HistoryModelTest::answers_that_make_no_sense_are_skipped_data() {
  QTest::addColumn<QString>("answer");
  QTest::newRow("no columns") << "{}";
  QTest::newRow("a list") << "[]";
  QTest::newRow("columns of unequal length") << R"({"time":[1,2],"mean":[1],"low":[1,2],"high":[1,2],"count":[1,1]})";
  QTest::newRow("texts") << R"({"time":["a"],"mean":["b"],"low":[1],"high":[1],"count":[1]})";
  QTest::newRow("nulls") << R"({"time":[1],"mean":[null],"low":[null],"high":[null],"count":[1]})";
}

void HistoryModelTest::answers_that_make_no_sense_are_skipped() {
  QFETCH(const QString, answer);
  Fixture f;
  QVERIFY(f.connect());
  f.agent.answer("metrics.query", nlohmann::json::parse(answer.toStdString()));

  QVERIFY(f.load("loss_nats", SeriesAxis::kTime));

  QVERIFY(f.loss().empty());
}

void HistoryModelTest::live_points_without_end_stay_within_bounds() {
  Fixture f(10);
  QVERIFY(f.connect());
  QVERIFY(f.load("loss_nats", SeriesAxis::kTime));
  HeardEvent event{.what = event::Step{*node_state_from_json(f.agent.state())}, .time = f.agent.time()};

  for (int i = 0; i < 600'000; ++i) {
    event.time += 1;
    state_in(event.what)->island.inner_step += 1;
    f.history.take(event);
  }

  QVERIFY(f.loss().size() <= HistoryModel::kMaxPoints);
  QVERIFY(f.loss().memory_bytes() < 16u << 20);
  QCOMPARE(f.loss().last(), event.time);
  // Where it was thinned, a close look asks for what the agent kept.
  const std::size_t before = f.agent.count("metrics.query");
  f.history.want("loss_nats", SeriesAxis::kTime, event.time - 590'000, event.time - 589'000, 1000);
  QTRY_VERIFY(f.agent.count("metrics.query") > before);
}

void HistoryModelTest::fetched_ranges_know_what_is_coarser() {
  FetchedRanges ranges;
  QVERIFY(!ranges.coarser_than(1, 0, 100));
  ranges.add(0, 1000, 10);
  QVERIFY(ranges.coarser_than(1, 0, 100));
  QVERIFY(!ranges.coarser_than(10, 0, 100));
  QVERIFY(!ranges.coarser_than(1, 2000, 3000));  // live

  ranges.add(400, 600, 0);

  QVERIFY(!ranges.coarser_than(1, 400, 600));
  QVERIFY(ranges.coarser_than(1, 390, 600));
  QVERIFY(ranges.coarser_than(1, 600, 610));
}

void HistoryModelTest::fetched_ranges_stay_within_bounds() {
  FetchedRanges ranges;
  ranges.add(0, 1e6, 100);

  for (int i = 0; i < 500; ++i) ranges.add(1000.0 * i, 1000.0 * i + 100, 1);

  // What was forgotten counts as coarse, never as finer than it is.
  for (int i = 0; i < 500; ++i) QVERIFY(ranges.coarser_than(1, 1000.0 * i + 100, 1000.0 * i + 1000));
}

void HistoryModelTest::tokens_are_learned_from_a_step_that_both_know() {
  TokenCount count;
  QVERIFY(!count.total() && !count.known_since());
  count.take(1, 100, 5000);
  count.take(1, 101, 6000);
  QCOMPARE(*count.known_since(), 100.0);
  count.learn(99, 1'000'000);
  QVERIFY(!count.total());

  count.learn(100, 1'000'000);

  QCOMPARE(*count.total(), 1'001'000.0);
  count.take(1, 102, 7000);
  QCOMPARE(*count.total(), 1'002'000.0);
  count.take(2, 103, 10);  // another trainer counts from zero
  QCOMPARE(*count.total(), 1'002'010.0);
}

QTEST_GUILESS_MAIN(HistoryModelTest)
#include "history_model_test.moc"
