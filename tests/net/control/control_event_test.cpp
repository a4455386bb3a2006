// Events of the control protocol: each survives the wire, old recordings are read as new ones, and docs/control.md and
// the schema of the state name the fields that are archived, no more and no less.
#include "net/control/events.h"

#include <QtTest>
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "net/control/event_reader.h"
#include "tests/net/control/event_samples.h"

using namespace atl;
using atl::test::event_samples;
using atl::test::FieldNames;

namespace {

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::string golden(const char* name) { return std::string(ATOLL_TEST_DATA_DIR) + "/control/" + name; }

std::string line_of(const ControlEvent& event) {
  return nlohmann::json{{"event", name_of(event)}, {"data", data_of(event)}}.dump();
}

Result<ControlEvent> decode_line(const std::string& line) {
  const nlohmann::json json = nlohmann::json::parse(line);
  return decode_event(json["event"].get<std::string>(), json["data"]);
}

template <std::size_t kAt = 0>
void collect_fields(std::map<std::string, std::set<std::string>>& of_events) {
  if constexpr (kAt < std::variant_size_v<ControlEvent>) {
    using Event = std::variant_alternative_t<kAt, ControlEvent>;
    if constexpr (!std::is_same_v<Event, event::Unknown>) {
      const auto names = FieldNames::of<Event>();
      of_events[std::string(Event::kName)].insert(names.begin(), names.end());
    }
    collect_fields<kAt + 1>(of_events);
  }
}

template <class Word>
void collect_words(std::set<std::string>& words) {
  for (const std::string_view word : WordTable<Word>::kWords) words.insert(std::string(word));
}

std::set<std::string> all_words() {
  std::set<std::string> words{"begin", "true", "false"};
  collect_words<SyncPart>(words);
  collect_words<Download>(words);
  collect_words<DownloadStatus>(words);
  collect_words<StageStatus>(words);
  collect_words<JoinStage>(words);
  collect_words<GpuAlertKind>(words);
  return words;
}

std::set<std::string> code_in(const std::string& text) {
  static const std::regex kCode("`([a-z_.]+)\\??`");
  std::set<std::string> found;
  for (std::sregex_iterator i(text.begin(), text.end(), kCode), end; i != end; ++i) found.insert((*i)[1]);
  return found;
}

// Of the table beneath "## Events": by the event's name, what its rows name.
std::map<std::string, std::set<std::string>> documented() {
  std::map<std::string, std::set<std::string>> events;
  bool within = false;
  for (const std::string& line : lines_of(std::string(ATOLL_DOCS_DIR) + "/control.md")) {
    if (line.starts_with("## ")) within = line == "## Events";
    if (!within || !line.starts_with("| `")) continue;
    const std::size_t end = line.find(" | ", 2);
    for (const std::string& name : code_in(line.substr(0, end))) {
      if (name == "phase" || name == "begin") continue;  // which of those that are named sync.phase
      const auto said = code_in(line.substr(end));
      events[name].insert(said.begin(), said.end());
    }
  }
  return events;
}

std::set<std::string> schema_names(const nlohmann::json& schema, const std::string& before = "") {
  std::set<std::string> names;
  const nlohmann::json properties = schema.value("properties", nlohmann::json::object());
  for (const auto& [name, property] : properties.items()) {
    names.insert(before + name);
    const nlohmann::json inner = property.contains("items") ? property["items"] : property;
    for (const std::string& deeper : schema_names(inner, before + name + ".")) names.insert(deeper);
  }
  return names;
}

std::string listed(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += name + " ";
  return text;
}

std::string without(const std::set<std::string>& names, const std::set<std::string>& others) {
  std::set<std::string> left;
  std::ranges::set_difference(names, others, std::inserter(left, left.end()));
  return listed(left);
}

}  // namespace

class ControlEventTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void there_is_an_example_of_every_event();
  void the_example_of_the_state_tells_every_field();
  void every_event_survives_the_round_trip();
  void every_event_is_encoded_as_the_golden_recording_says();
  void the_golden_recording_is_read();
  void what_a_newer_program_says_is_passed_on();
  void what_is_left_out_is_as_it_was();
  void nonsense_is_refused_with_its_field_data();
  void nonsense_is_refused_with_its_field();
  void every_word_is_read_as_it_is_written();
  void a_recording_of_before_is_read_as_one_of_now();
  void a_round_that_is_told_is_not_made_up();
  void of_events_that_were_missed_nothing_is_made_up();
  void the_document_names_the_fields_of_every_event();
  void the_schema_names_the_fields_of_the_state();
};

void ControlEventTest::there_is_an_example_of_every_event() {
  std::set<std::size_t> seen;
  for (const ControlEvent& event : event_samples()) seen.insert(event.index());

  QCOMPARE(seen.size(), std::variant_size_v<ControlEvent>);
}

// A field that the example leaves as it is by default is neither in the golden recording nor in the round trip.
void ControlEventTest::the_example_of_the_state_tells_every_field() {
  NodeState state = test::sample_state(), blank;
  state.gpus = {test::sample_gpu()};
  blank.has_agent = true;
  blank.agent.wish = Wish::kFinish;  // the example's is the default
  const nlohmann::json said = to_json(state), unsaid = to_json(blank);

  for (std::string path : FieldNames::of<NodeState>()) {
    std::ranges::replace(path, '.', '/');
    for (const std::string list : {"gpus/", "agent/paused_by/", "agent/paused_gpus/"}) {
      if (path.starts_with(list)) path.insert(list.size(), "0/");
    }
    const nlohmann::json::json_pointer place("/" + path);
    QVERIFY2(said.contains(place) && !said[place].is_null(), path.c_str());
    QVERIFY2(!unsaid.contains(place) || unsaid[place] != said[place], path.c_str());
  }
}

void ControlEventTest::every_event_survives_the_round_trip() {
  for (const ControlEvent& event : event_samples()) {
    const auto read = decode_line(line_of(event));

    QVERIFY2(read.ok(), read.ok() ? "" : read.error().message.c_str());
    QCOMPARE(read->index(), event.index());
    QCOMPARE(QString::fromStdString(line_of(*read)), QString::fromStdString(line_of(event)));
  }
}

// Frozen: fields may be added within a version, none is changed or taken away.
void ControlEventTest::every_event_is_encoded_as_the_golden_recording_says() {
  const std::vector<std::string> lines = lines_of(golden("control-v1.jsonl"));
  const std::vector<ControlEvent> samples = event_samples();

  for (std::size_t i = 0; i < std::max(lines.size(), samples.size()); ++i) {
    QCOMPARE(QString::fromStdString(i < samples.size() ? line_of(samples[i]) : ""),
             QString::fromStdString(i < lines.size() ? lines[i] : ""));
  }
}

void ControlEventTest::the_golden_recording_is_read() {
  std::set<std::size_t> seen;
  for (const std::string& line : lines_of(golden("control-v1.jsonl"))) {
    const auto event = decode_line(line);
    QVERIFY2(event.ok(), line.c_str());
    seen.insert(event->index());
  }

  QCOMPARE(seen.size(), std::variant_size_v<ControlEvent>);
}

void ControlEventTest::what_a_newer_program_says_is_passed_on() {
  const nlohmann::json data = {{"mood", "good"}, {"list", {1, 2}}};

  const auto event = decode_event("island.sings", data);

  QVERIFY(event.ok() && std::holds_alternative<event::Unknown>(*event));
  QCOMPARE(std::string(name_of(*event)), std::string("island.sings"));
  QCOMPARE(data_of(*event).dump(), data.dump());
  QCOMPARE(parse_word<IslandPhase>("dancing"), IslandPhase::kUnknown);
}

void ControlEventTest::what_is_left_out_is_as_it_was() {
  const auto phase =
      decode_line(R"({"event":"sync.phase","data":{"round":7,"attempt":1,"phase":"wait","seconds":1.5,"bytes":0}})");
  const auto peer = decode_line(R"({"event":"peer.up","data":{"island":"isl-1"}})");

  QVERIFY(phase.ok() && peer.ok());
  QCOMPARE(std::get<event::SyncPhase>(*phase).fragment, FragmentId{});
  QCOMPARE(std::get<event::PeerUp>(*peer).name, std::string());
}

void ControlEventTest::nonsense_is_refused_with_its_field_data() {
  QTest::addColumn<QString>("line");
  QTest::addColumn<QString>("field");
  const auto row = [](const char* line, const char* field) { QTest::newRow(line) << line << field; };
  row(R"({"event":"step","data":{}})", "'state'");
  row(R"({"event":"step","data":7})", "object");
  row(R"({"event":"hub.link","data":{"up":"yes"}})", "'up'");
  row(R"({"event":"sync.phase","data":{"phase":"begin","round":1,"ring":[{"name":1}]}})", "'ring[0].island'");
  row(R"({"event":"sync.phase","data":{"phase":"wait","round":-1,"attempt":1,"seconds":1,"bytes":1}})", "'round'");
  row(R"({"event":"sync.phase","data":{"phase":"wait","round":1,"attempt":1,"seconds":-1,"bytes":1}})", "'seconds'");
  row(R"({"event":"sync.phase","data":{"phase":"wait","round":1e300,"attempt":1,"seconds":1,"bytes":1}})", "'round'");
  row(R"({"event":"sync.phase","data":{"phase":7}})", "'round'");
  row(R"({"event":"gpu.sample","data":{"gpus":{"0":1}}})", "'gpus'");
  row(R"({"event":"gpu.sample","data":{"gpus":[7]}})", "'gpus[0]'");
  row(R"({"event":"peer.up","data":{}})", "'island'");
  row(R"({"event":"transfer","data":{"what":"state","status":"running","done_bytes":-1}})", "'done_bytes'");
  row(R"({"event":"check.result","data":{"done":false}})", "'done'");
  row(R"({"event":"check.result","data":{"row":{"id":"ram"}}})", "'verdict'");
}

void ControlEventTest::nonsense_is_refused_with_its_field() {
  QFETCH(const QString, line);
  QFETCH(const QString, field);

  const auto event = decode_line(line.toStdString());

  QVERIFY(!event.ok());
  QVERIFY2(QString::fromStdString(event.error().message).contains(field), event.error().message.c_str());
}

void ControlEventTest::every_word_is_read_as_it_is_written() {
  const auto check = []<class Word>(Word) {
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < WordTable<Word>::kWords.size(); ++i) {
      const auto word = static_cast<Word>(i);
      if (parse_word<Word>(word_of(word)) != word) return false;
      seen.insert(word_of(word));
    }
    return seen.size() == WordTable<Word>::kWords.size();
  };
  QVERIFY(check(IslandPhase{}));
  QVERIFY(check(Wish{}));
  QVERIFY(check(ExitCause{}));
  QVERIFY(check(JoinStage{}));
  QVERIFY(check(StageStatus{}));
  QVERIFY(check(Download{}));
  QVERIFY(check(DownloadStatus{}));
  QVERIFY(check(SyncPart{}));
  QVERIFY(check(GpuAlertKind{}));
}

// Its steps have the trainer's part alone, and nobody says that a round is done.
void ControlEventTest::a_recording_of_before_is_read_as_one_of_now() {
  EventReader reader;
  std::vector<HeardEvent> heard;
  double time = 1000;
  for (const std::string& line : lines_of(golden("before-round-done.jsonl"))) {
    const nlohmann::json json = nlohmann::json::parse(line);
    if (json["event"] == "state.get") {
      const auto state = node_state_from_json(json["data"]);
      QVERIFY2(state.ok(), state.ok() ? "" : state.error().message.c_str());
      reader.learn(*state);
      continue;
    }
    const auto read = reader.read(json["event"].get<std::string>(), json["data"], time++);
    QVERIFY2(read.ok(), read.ok() ? "" : read.error().message.c_str());
    heard.insert(heard.end(), read->begin(), read->end());
  }

  std::string names;
  for (const HeardEvent& event : heard) names += std::string(name_of(event.what)) + " ";
  QCOMPARE(names, std::string("round.begin step sync.phase sync.phase sync.phase round.done sync.done "));
  const auto& step = std::get<event::Step>(heard[1].what);
  QVERIFY(step.state.has_agent);
  QCOMPARE(step.state.agent.version, std::string("0.1.0"));
  QCOMPARE(*step.state.disk_free_bytes, 812e9);
  QCOMPARE(step.state.island.state, IslandPhase::kFinishing);  // as its agent follows
  QVERIFY(!step.state.island.flops_per_second && !step.state.island.step_seconds);
  const auto& round = std::get<event::RoundDone>(heard[5].what);
  QCOMPARE(round.round, 42u);
  QVERIFY(round.accepted);
  QCOMPARE(*round.tokens, 4000u);
  QCOMPARE(*round.bytes_sent, 80u);
  QCOMPARE(*round.inner_seconds, 250.0);
  QCOMPARE(*round.sync_seconds, 38.0);
  QCOMPARE(*round.loss_nats, 2.5);
  QCOMPARE(round.islands, 7u);
}

void ControlEventTest::a_round_that_is_told_is_not_made_up() {
  EventReader reader;
  const auto read = [&](const ControlEvent& event) {
    return reader.read(name_of(event), data_of(event), 1000)->size();
  };
  NodeState state = test::sample_state();
  state.island.outer_step = 43;

  QCOMPARE(read(event::RoundDone{.round = 42}), 1u);
  QCOMPARE(read(event::SyncDone{state}), 1u);

  QCOMPARE(read(event::SyncDone{state}), 2u);  // of a trainer that does not tell it
}

void ControlEventTest::of_events_that_were_missed_nothing_is_made_up() {
  EventReader reader;
  NodeState state = test::sample_state();
  reader.learn(state);
  (void)reader.read("round.begin", data_of(event::RoundBegin{state}), 1000);

  reader.forget();
  state.has_agent = false;
  state.island.outer_step = state.island.round + 1;
  const auto read = reader.read("sync.done", data_of(event::SyncDone{state}), 1001);

  QCOMPARE(read->size(), 2u);
  QVERIFY(!std::get<event::RoundDone>(read->front().what).tokens);
  QVERIFY(!state_in(read->back().what)->has_agent);
}

void ControlEventTest::the_document_names_the_fields_of_every_event() {
  std::map<std::string, std::set<std::string>> archived;
  collect_fields(archived);
  const auto document = documented();
  const std::set<std::string> state = FieldNames::of<NodeState>(), words = all_words();

  for (const auto& [name, names] : archived) {
    QVERIFY2(document.contains(name), name.c_str());
    std::set<std::string> own;
    for (const std::string& field : names) {
      if (!state.contains(field) || !names.contains("inner_step")) own.insert(field.substr(field.rfind('.') + 1));
    }
    if (name == "sync.phase") own.insert({"round", "phase"});
    const std::set<std::string>& said = document.at(name);
    QCOMPARE(QString::fromStdString(name + ": " + without(own, said)), QString::fromStdString(name + ": "));
    std::set<std::string> known = own;
    known.insert(words.begin(), words.end());
    known.insert({"state.get", "gpus"});
    for (const auto& [other, of_other] : archived) known.insert(other);
    QCOMPARE(QString::fromStdString(name + ": " + without(said, known)), QString::fromStdString(name + ": "));
  }
}

void ControlEventTest::the_schema_names_the_fields_of_the_state() {
  std::ifstream file(std::string(ATOLL_SCHEMA_DIR) + "/status.json");
  const nlohmann::json schema = nlohmann::json::parse(file);
  const std::set<std::string> archived = FieldNames::of<NodeState>(), named = schema_names(schema);

  QCOMPARE(QString::fromStdString(without(archived, named)), QString());
  QCOMPARE(QString::fromStdString(without(named, archived)), QString());
  std::set<std::string> phases;
  collect_words<IslandPhase>(phases);
  std::set<std::string> enumerated;
  for (const nlohmann::json& word : schema["properties"]["state"]["enum"]) enumerated.insert(word.get<std::string>());
  QCOMPARE(QString::fromStdString(listed(enumerated)), QString::fromStdString(listed(phases)));
}

QTEST_APPLESS_MAIN(ControlEventTest)
#include "control_event_test.moc"
