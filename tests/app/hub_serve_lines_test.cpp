// What a hub says to who looks at its terminal.
#include "app/cli/hub_serve_lines.h"

#include <QtTest>
#include <nlohmann/json.hpp>

using namespace atl;

class HubServeLinesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_event_is_a_line_data();
  void an_event_is_a_line();
  void islands_are_called_by_their_names();
  void what_is_not_what_it_should_be_ends_nothing();
};

void HubServeLinesTest::an_event_is_a_line_data() {
  QTest::addColumn<QString>("event");
  QTest::addColumn<QString>("data");
  QTest::addColumn<QString>("line");
  QTest::newRow("a round") << "round.commit"
                           << R"({"round": 7, "attempt": 1, "members": [{"id": "isl-1"}, {"id": "isl-2"}],
                                  "tokens": 20480, "seconds": 130.2, "mean_loss_nats": 2.9141})"
                           << "round 8  loss 2.914  20,480 tokens  2m10s  2 islands";
  QTest::newRow("a round that went directly")
      << "round.commit"
      << R"({"round": 7, "attempt": 1, "members": [{"id": "isl-1"}, {"id": "isl-2"}, {"id": "isl-3"}],
             "tokens": 20480, "seconds": 130.2, "mean_loss_nats": 2.9141, "directly": true})"
      << "round 8  loss 2.914  20,480 tokens  2m10s  3 islands, directly";
  QTest::newRow("a round's beginning") << "round.begin"
                                       << R"({"round": 7, "islands": []})"
                                       << "";
  QTest::newRow("equal states") << "round.hashes"
                                << R"({"outer_step": 7, "equal": true})"
                                << "";
  QTest::newRow("different states") << "round.hashes"
                                    << R"({"outer_step": 7, "equal": false})"
                                    << "after round 7 islands hold DIFFERENT outer states";
  QTest::newRow("who comes") << "island.joined"
                             << R"({"island": "isl-1", "name": "attic"})"
                             << "attic is here";
  QTest::newRow("who goes") << "island.left"
                            << R"({"island": "isl-1", "name": "attic", "reason": "stopped"})"
                            << "attic left: stopped";
  QTest::newRow("who is gone") << "island.dead"
                               << R"({"island": "isl-1", "name": "", "reason": "silent"})"
                               << "isl-1 is gone: silent";
  QTest::newRow("a standstill") << "run.standstill"
                                << R"({"kind": "lost", "text": "nobody holds it"})"
                                << "the run stands still: nobody holds it";
  QTest::newRow("a failed upload") << "state.uploaded"
                                   << R"({"island": "isl-1", "outer_step": 3, "error": "403"})"
                                   << "the state after round 3 could not be published: 403";
  QTest::newRow("an evaluation") << "evaluation"
                                 << R"({"task": "arc", "outer_step": 4, "figures": {"acc": 0.251}})"
                                 << "arc after round 4: acc 0.251";
  QTest::newRow("the end") << "run.finished"
                           << R"({"outer_step": 20})"
                           << "the run is finished, after round 20";
  QTest::newRow("of another version") << "something.new"
                                      << R"({})"
                                      << "";
}

void HubServeLinesTest::an_event_is_a_line() {
  QFETCH(const QString, event);
  QFETCH(const QString, data);
  QFETCH(const QString, line);
  HubServeLines lines;
  QCOMPARE(QString::fromStdString(lines.line_of(event.toStdString(), nlohmann::json::parse(data.toStdString()))), line);
}

void HubServeLinesTest::islands_are_called_by_their_names() {
  HubServeLines lines;
  (void)lines.line_of("island.joined", {{"island", "isl-1"}, {"name", "attic\x1b[2J"}});
  const std::string line = lines.line_of("island.left_out", {{"island", "isl-1"}, {"round", 3}, {"reason", "late"}});
  QVERIFY2(line.starts_with("round 4 goes on without the work of attic"), line.c_str());
  QVERIFY2(line.find('\x1b') == std::string::npos, line.c_str());
}

void HubServeLinesTest::what_is_not_what_it_should_be_ends_nothing() {
  HubServeLines lines;
  for (const char* event : {"round.commit", "evaluation", "island.dead", "run.rolled_back", "validation"}) {
    for (const char* data : {"[]", "null", R"({"round": "x", "members": 3, "figures": [], "island": 4})"}) {
      (void)lines.line_of(event, nlohmann::json::parse(data));
    }
  }
  QCOMPARE(lines.line_of("run.goes_on", nlohmann::json::array()), std::string());
  QCOMPARE(lines.line_of("run.goes_on", nlohmann::json::object()), std::string("the run goes on"));
}

QTEST_GUILESS_MAIN(HubServeLinesTest)
#include "hub_serve_lines_test.moc"
