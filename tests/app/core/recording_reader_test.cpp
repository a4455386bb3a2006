// A recording's lines: quick and thorough reading agree; which states are told at what speed.
#include <QTemporaryDir>
#include <QtTest>
#include <nlohmann/json.hpp>

#include "app/core/recorded_line.h"
#include "app/core/recording_reader.h"
#include "tests/app/core/recording_script.h"

using namespace atl;
using atl::test::RecordingScript;
using Kind = RecordingReader::Line::Kind;

class RecordingReaderTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_line_is_read_however_it_is_written_data();
  void a_line_is_read_however_it_is_written();
  void what_is_no_line_is_refused_data();
  void what_is_no_line_is_refused();
  void events_states_and_ends_come_in_order();
  void slowly_every_state_is_told();
  void fast_a_state_is_left_out_where_another_follows_soon();
  void a_state_before_a_silence_or_an_end_is_told();
  void what_breaks_off_is_said();

 private:
  QString path() const { return directory_.filePath("recording.jsonl"); }
  static std::vector<double> states_of(RecordingReader& reader, double reached) {
    std::vector<double> times;
    while (!reader.empty()) {
      const RecordingReader::Line line = reader.take(reached);
      if (line.kind == Kind::kState) times.push_back(line.t);
    }
    return times;
  }
  QTemporaryDir directory_;
};

namespace {

void say_state(RecordingScript& script, double t) {
  script.answer(t, "state.get", nlohmann::json::object(), test::training_state());
}

}  // namespace

void RecordingReaderTest::a_line_is_read_however_it_is_written_data() {
  QTest::addColumn<QByteArray>("text");
  QTest::newRow("plain") << QByteArray("{}");
  QTest::newRow("quotes and backslashes") << QByteArray(R"({"a":"b\"c\\d","t":5,"x":"\",\"t\":3"})");
  QTest::newRow("looks like the line's end") << QByteArray(R"(a","t":7})");
  QTest::newRow("control characters") << QByteArray("a\nb\tc\rd\be\ff\x01g\x7fh");
  QTest::newRow("solidus") << QByteArray("a/b");
  QTest::newRow("beyond ASCII") << QByteArray("caf\xc3\xa9 \xf0\x9f\x8c\x8a");
  QTest::newRow("empty") << QByteArray("");
}

void RecordingReaderTest::a_line_is_read_however_it_is_written() {
  QFETCH(const QByteArray, text);
  for (const auto& [key, kind] :
       {std::pair("in", RecordedLine::Kind::kReceived), std::pair("out", RecordedLine::Kind::kSent),
        std::pair("closed", RecordedLine::Kind::kClosed)}) {
    const nlohmann::json json = {{"t", 12.5}, {key, text.toStdString()}};
    const auto ascii = json.dump(-1, ' ', /*ensure_ascii=*/true), spaced = json.dump(1);
    for (const std::string& line : {json.dump() + "\n", json.dump() + "\r\n", ascii, spaced}) {
      const auto read = parse_recorded_line(QByteArray::fromStdString(line));
      QVERIFY2(read.ok(), line.c_str());
      QCOMPARE(QByteArray::fromStdString(read->text), text);
      QCOMPARE(read->t, 12.5);
      QCOMPARE(read->kind, kind);
    }
  }
}

void RecordingReaderTest::what_is_no_line_is_refused_data() {
  QTest::addColumn<QByteArray>("line");
  QTest::newRow("cut off") << QByteArray(R"({"in":"abc)");
  QTest::newRow("a bare quote") << QByteArray(R"({"in":"a"b","t":1})");
  QTest::newRow("a bare backslash") << QByteArray(R"({"in":"a\","t":1})");
  QTest::newRow("an unknown escape") << QByteArray(R"({"in":"a\q","t":1})");
  QTest::newRow("a control character") << QByteArray("{\"in\":\"a\x01\",\"t\":1}");
  QTest::newRow("no UTF-8") << QByteArray("{\"in\":\"a\xff\",\"t\":1}");
  QTest::newRow("no time") << QByteArray(R"({"in":"a"})");
  QTest::newRow("a time that is none") << QByteArray(R"({"in":"a","t":nan})");
  QTest::newRow("a time with more") << QByteArray(R"({"in":"a","t":1x})");
  QTest::newRow("another key") << QByteArray(R"({"on":"a","t":1})");
  QTest::newRow("nothing") << QByteArray();
}

void RecordingReaderTest::what_is_no_line_is_refused() {
  QFETCH(const QByteArray, line);
  const auto read = parse_recorded_line(line);
  QVERIFY(!read.ok());
  QCOMPARE(read.error().code, ErrorCode::kCorrupt);
}

void RecordingReaderTest::events_states_and_ends_come_in_order() {
  RecordingScript script(path());
  script.greet(0);
  script.event(1, "round.begin", test::training_state());
  script.answer(2, "peers.list", nlohmann::json::object(), {{"peers", nlohmann::json::array()}});
  script.line(3, "closed", "gone");
  script.close();
  RecordingReader reader;
  QVERIFY(reader.open(path(), 1000).ok());

  std::vector<std::pair<Kind, double>> told;
  while (!reader.empty()) {
    const double next = reader.next_time();
    const RecordingReader::Line line = reader.take(0);
    QCOMPARE(line.t, next);
    told.emplace_back(line.kind, line.t);
    if (line.kind == Kind::kClosed) QCOMPARE(line.text, std::string("gone"));
    if (line.kind != Kind::kState) continue;
    const auto event = nlohmann::json::parse(line.text);
    QCOMPARE(event["params"]["event"].get<std::string>(), std::string("state.changed"));
    QCOMPARE(event["params"]["time"].get<double>(), 1000 + line.t);
    QVERIFY(event["params"]["data"] == test::training_state());
  }
  const std::vector<std::pair<Kind, double>> right = {{Kind::kState, 0}, {Kind::kEvent, 1}, {Kind::kClosed, 3}};
  QVERIFY(told == right);
  QVERIFY(!reader.cut_off());
}

void RecordingReaderTest::slowly_every_state_is_told() {
  RecordingScript script(path());
  for (int t = 0; t < 10; ++t) say_state(script, t);
  script.close();
  RecordingReader reader;
  QVERIFY(reader.open(path(), 0).ok());
  // As the clock goes on: the next one is not due yet.
  std::size_t told = 0;
  for (; !reader.empty(); ++told) (void)reader.take(reader.next_time());
  QCOMPARE(told, 10u);
}

void RecordingReaderTest::fast_a_state_is_left_out_where_another_follows_soon() {
  RecordingScript script(path());
  for (int t = 0; t < 100; ++t) {
    say_state(script, t);
    // A step that tells the state; then one is enough in half a minute, which says what steps do not.
    if (t >= 40) script.event(t + 0.5, "step", test::training_state());
  }
  script.close();
  RecordingReader reader;
  QVERIFY(reader.open(path(), 0).ok());

  const std::vector<double> told = states_of(reader, 1e9);

  double before = 0;
  for (const double t : told) {
    QVERIFY2(t - before <= (t <= 40 ? 4 : 30), qPrintable(QString("%1 after %2").arg(t).arg(before)));
    before = t;
  }
  QVERIFY2(told.size() <= 14, qPrintable(QString::number(told.size())));
  QCOMPARE(told.back(), 99.0);
}

void RecordingReaderTest::a_state_before_a_silence_or_an_end_is_told() {
  RecordingScript script(path());
  for (const double t : {0.0, 1.0, 20.0, 21.0}) say_state(script, t);
  script.line(21.5, "closed", "gone");
  say_state(script, 22);
  script.close();
  RecordingReader reader;
  QVERIFY(reader.open(path(), 0).ok());
  QCOMPARE(states_of(reader, 1e9), (std::vector<double>{1, 20, 21, 22}));
}

void RecordingReaderTest::what_breaks_off_is_said() {
  RecordingScript script(path());
  script.greet(0);
  script.close();
  QFile file(path());
  QVERIFY(file.open(QIODevice::Append));
  file.write(R"({"in":"{\"id)");
  file.close();
  RecordingReader reader;
  QVERIFY(reader.open(path(), 0).ok());
  QCOMPARE(states_of(reader, 0).size(), 1u);
  QVERIFY(reader.cut_off());
}

QTEST_GUILESS_MAIN(RecordingReaderTest)
#include "recording_reader_test.moc"
