#include "net/wire/mesh.h"

#include <QtTest>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "net/base/printable.h"
#include "tests/net/wire/sample_run.h"

namespace atl {
namespace {

const std::string kHash(64, 'a');

std::vector<AttemptMember> sample_members() {
  return {{IslandId{"isl-1"}, Address{"10.0.0.1", 47000}, 4096}, {IslandId{"isl-2"}, Address{"::1", 47001}, 0}};
}

SignedEpoch sample_epoch() { return {1'700'000'000'000, "c2ln", "-----BEGIN CERTIFICATE-----\n"}; }

HubCommit sample_commit() {
  HubCommit commit{OuterStep{3}, Attempt{2}, kHash, 0.7, 0.9, sample_members(), "c2ln"};
  commit.epoch = 1'700'000'000'000;
  commit.holders = {IslandId{"isl-1"}};
  commit.lease_cursor = 1ull << 40;
  return commit;
}

// One that has been a member for a while, and keeps what it knows.
IslandHello sample_return() {
  IslandHello hello{kMeshVersion, "atoll 0.1.0", "Reef", 47000, "", OuterStep{4}, kHash};
  hello.durable = {{OuterStep{3}, kHash}, {OuterStep{4}, kHash}};
  hello.last_commit =
      std::make_shared<const SignedCommit>(SignedCommit{sample_commit(), "-----BEGIN CERTIFICATE-----\n"});
  hello.epoch = sample_epoch();
  return hello;
}

IslandHello sample_uploader() {
  IslandHello hello{kMeshVersion, "atoll 0.1.0", "Reef", 47000, "", std::nullopt, ""};
  hello.can_upload = true;
  hello.credited = true;
  hello.work = HeldWork{OuterStep{3}, 1ull << 40, 160};
  return hello;
}

IslandHello sample_of_who_dials_ahead() {
  IslandHello hello{kMeshVersion, "atoll 0.1.0", "Reef", 47000, "", std::nullopt, ""};
  hello.dials_ahead = true;
  return hello;
}

IslandAttemptFailed sample_refusal() {
  IslandAttemptFailed refusal{OuterStep{2}, Attempt{1}, std::nullopt, "too large"};
  refusal.too_large = true;
  return refusal;
}

HubAttempt sample_limited_attempt() {
  HubAttempt attempt{OuterStep{3}, Attempt{2}, sample_members()};
  attempt.norm_limit = 12.5;
  return attempt;
}

HubAttempt sample_direct_attempt() {
  HubAttempt attempt{OuterStep{3}, Attempt{2}, sample_members()};
  attempt.schedule = Schedule::kDirect;
  return attempt;
}

std::vector<bool> sample_buckets() { return {true, false, false, false, false, false, false, true, true, false}; }

std::vector<IslandMessage> island_samples() {
  return {IslandHello{kMeshVersion, "atoll 0.1.0", "Reef", 47000, "reef.example.org", OuterStep{3}, kHash},
          IslandHello{kMeshVersion, "atoll 0.1.0", "", 47000, "", std::nullopt, ""},
          IslandHeartbeat{OuterStep{2}, "training", 7, 2.5, 18000.25, 1u << 20, 12345, 1.5, 0.25},
          IslandReady{OuterStep{2}, 40960, 0.125, 3.5},
          IslandHave{OuterStep{2}, Attempt{1}, kHash, 0.5},
          IslandAttemptFailed{OuterStep{2}, Attempt{1}, IslandId{"isl-2"}, "connection reset"},
          IslandAttemptFailed{OuterStep{2}, Attempt{1}, std::nullopt, "aborted"},
          IslandApplied{OuterStep{3}, kHash},
          IslandRecovered{OuterStep{3}, kHash},
          IslandValidation{OuterStep{3}, 1.625},
          IslandLeaving{"signal 15"},
          IslandLinkReport{{{IslandId{"isl-2"}, true, 62.5e6, 0.08, false}, {IslandId{"isl-3"}, false, 1e6, 0, true}}},
          IslandAttemptFailed{OuterStep{2}, Attempt{1}, std::nullopt, "aborted", sample_buckets()},
          IslandAttemptFailed{OuterStep{2}, Attempt{1}, IslandId{"isl-2"}, "timeout", {}, true},
          IslandAttemptFailed{OuterStep{2}, Attempt{1}, IslandId{"isl-2"}, "no data", {}, false, 1ull << 40},
          IslandLeaving{"paused by its owner", true},
          IslandHello{kMeshVersion, "atoll 0.1.0", "Reef", 47000, "", std::nullopt, "", std::nullopt, "Oslo"},
          sample_return(),
          sample_refusal(),
          IslandChunks{OuterStep{2}, Attempt{1}, {kHash, kHash}},
          IslandDurable{{{OuterStep{3}, kHash}}},
          IslandUploaded{OuterStep{3}, kHash, "the bucket is full"},
          IslandLeaseReturned{OuterStep{3}, 1ull << 40, "the mirror is away", FragmentId{1}},
          sample_uploader(),
          IslandReady{OuterStep{3}, 40960, 0.125, 3.5, FragmentId{1}, 12345},
          IslandHeartbeat{OuterStep{2}, "training", 7, 2.5, 18000.25, 1u << 20, 12345, 1.5, 0.25, 16u << 20},
          IslandEvaluation{OuterStep{3}, 1, {0.25, 0.5, 0.375}},
          IslandLinkReport{{{IslandId{"isl-2"}, true, 62.5e6, 0.08, true, 0.0125}}},
          sample_of_who_dials_ahead(),
          IslandHave{OuterStep{2}, Attempt{1}, kHash, 0.5, {}, "AACAPw", "AAAAPw"}};
}

std::vector<HubMessage> hub_samples() {
  return {
      HubWelcome{kMeshVersion, sample_run(), OuterStep{3}, sample_epoch()},
      HubRoster{{RosterEntry{IslandId{"isl-1"}, "Reef", Address{"10.0.0.1", 47000}, kHash}}},
      HubRecover{OuterStep{3}, kHash, {IslandId{"isl-1"}, IslandId{"isl-2"}}},
      HubInitialise{},
      HubRoundBegin{OuterStep{3}, 20, 1ull << 40, 160, true},
      HubRoundBegin{OuterStep{3}, 20, 1ull << 40, 160, true, {}, DecidedDecay{3, 200, 3.25e-5, DecayShape::kCosine}},
      HubRoundBegin{
          OuterStep{3}, 20, 1ull << 40, 160, false, {}, {}, {{1ull << 40, {250'000'000, 750'000'000}}}, 1ull << 41},
      HubAttempt{OuterStep{3}, Attempt{2}, sample_members()},
      HubAbort{OuterStep{3}, Attempt{1}, "isl-3 was lost"},
      sample_commit(),
      HubGoodbye{ErrorCode::kVersionUnsupported, "update atoll", false},
      HubAttempt{OuterStep{3}, Attempt{2}, {{IslandId{"isl-1"}, Address{"10.0.0.1", 47000}, 4096, true}}},
      HubProbe{IslandId{"isl-2"}, 8u << 20},
      HubAttempt{OuterStep{3}, Attempt{2}, sample_members(), sample_buckets(), WireFormat::kInt4E3m0},
      HubRoster{{RosterEntry{IslandId{"isl-1"}, "Reef", Address{"10.0.0.1", 47000}, kHash, "atoll 0.1.0", "Oslo"}}},
      HubRoster{{}, {IslandId{"isl-2"}, IslandId{"isl-3"}}},
      HubAttempt{OuterStep{3}, Attempt{2}, sample_members(), {}, WireFormat::kInt8Block, {62.5e6, 0}},
      sample_limited_attempt(),
      HubShowChunks{OuterStep{3}, Attempt{2}},
      HubNotice{"the run stands still"},
      HubSafe{OuterStep{7}},
      HubUpload{OuterStep{7}, kHash},
      HubAbort{OuterStep{3}, Attempt{1}, "isl-3 was lost", FragmentId{1}},
      HubRoundBegin{OuterStep{3}, 20, 1ull << 40, 160, false, {}, {}, {}, {}, true},
      sample_direct_attempt(),
      HubNeighbours{sample_members(), Schedule::kRing, 1u << 20},
      HubNeighbours{sample_members(), Schedule::kDirect, 0}};
}

// The golden file: one message a line, island's first. Frozen: a change of it is another version of the protocol.
std::vector<std::string> golden_lines() {
  std::ifstream file(std::string(ATOLL_TEST_DATA_DIR) + "/mesh/mesh-v7.jsonl");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

}  // namespace

class MeshTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_message_is_encoded_as_the_golden_file_says();
  void every_message_survives_a_round_trip();
  void garbage_is_refused_and_never_believed_data();
  void garbage_is_refused_and_never_believed();
  void random_changes_of_good_messages_never_crash_the_decoder();
  void a_commit_record_says_who_contributed_how_much_and_nothing_of_where();
  void a_long_reason_is_cut_between_characters();
  void a_host_that_is_no_host_is_refused_in_a_hello_data();
  void a_host_that_is_no_host_is_refused_in_a_hello();
  void names_of_a_hello_come_as_they_can_be_shown();
  void a_name_that_is_too_long_is_refused_in_a_hello();
  void a_roster_shows_nothing_that_moves_a_cursor();
  void an_unknown_type_is_told_in_characters_that_can_be_shown();
  void the_rows_of_a_check_travel_with_the_hello();
  void an_attempt_by_a_schedule_that_is_not_known_is_refused();
  void rates_of_edges_that_cannot_be_are_refused_data();
  void rates_of_edges_that_cannot_be_are_refused();
};

void MeshTest::every_message_is_encoded_as_the_golden_file_says() {
  std::vector<std::string> lines;
  for (const IslandMessage& message : island_samples()) lines.push_back(encode(message));
  for (const HubMessage& message : hub_samples()) lines.push_back(encode(message));

  const std::vector<std::string> golden = golden_lines();

  for (std::size_t i = 0; i < std::max(golden.size(), lines.size()); ++i) {
    QCOMPARE(QString::fromStdString(i < lines.size() ? lines[i] : ""),
             QString::fromStdString(i < golden.size() ? golden[i] : ""));
  }
}

void MeshTest::every_message_survives_a_round_trip() {
  for (const IslandMessage& message : island_samples()) {
    const auto decoded = decode_island_message(encode(message));
    QVERIFY2(decoded.ok(), decoded.ok() ? "" : decoded.error().message.c_str());
    QCOMPARE(decoded->index(), message.index());
    QCOMPARE(encode(*decoded), encode(message));
  }
  for (const HubMessage& message : hub_samples()) {
    const auto decoded = decode_hub_message(encode(message));
    QVERIFY2(decoded.ok(), decoded.ok() ? "" : decoded.error().message.c_str());
    QCOMPARE(decoded->index(), message.index());
    QCOMPARE(encode(*decoded), encode(message));
  }
}

void MeshTest::garbage_is_refused_and_never_believed_data() {
  QTest::addColumn<QString>("text");
  QTest::addColumn<QString>("says");
  QTest::newRow("nothing") << ""
                           << "no JSON";
  QTest::newRow("half an object") << R"({"type":"ready")"
                                  << "no JSON";
  QTest::newRow("a list") << "[]"
                          << "no JSON object";
  QTest::newRow("no type") << "{}"
                           << "'type' is missing";
  QTest::newRow("an unknown type") << R"({"type":"dance"})"
                                   << "unknown type 'dance'";
  QTest::newRow("a missing field") << R"({"type":"recovered","outer_step":1})"
                                   << "'state_hash' is missing";
  QTest::newRow("a negative number") << R"({"type":"ready","round":-1})"
                                     << "'round' is no whole number";
  QTest::newRow("a number too large") << R"({"type":"ready","round":4294967296})"
                                      << "'round' is no whole number";
  QTest::newRow("a fraction") << R"({"type":"ready","round":1.5})"
                              << "'round' is no whole number";
  QTest::newRow("text for a number") << R"({"type":"ready","round":"1"})"
                                     << "'round' is no whole number";
  QTest::newRow("a short hash") << R"({"type":"applied","outer_step":1,"state_hash":"ab"})"
                                << "no SHA-256";
  QTest::newRow("a long reason") << QString(R"({"type":"leaving","reason":"%1"})").arg(QString(513, 'x'))
                                 << "text of at most 512";
  QTest::newRow("deep nesting") << QString(100000, '[') << "nested deeper";
  QTest::newRow("too large") << QString(static_cast<int>(kMaxMeshMessageBytes) + 1, ' ') << "bytes are more than";
  QString links;
  for (int i = 0; i < 65; ++i) {
    links += QString(i > 0 ? "," : "") +
             R"({"peer":"isl-1","outgoing":true,"bytes_per_second":1,"rtt_seconds":1,"at_least":false})";
  }
  QTest::newRow("too many links") << R"({"type":"link_report","links":[)" + links + "]}"
                                  << "more than 64";
  const auto failed_with = [](const char* buckets) {
    return QString(R"({"type":"attempt_failed","round":1,"fragment":0,"attempt":1,"reason":"","whole_buckets":%1})")
        .arg(buckets);
  };
  QTest::newRow("buckets as a list") << failed_with("[true]") << "no JSON object";
  QTest::newRow("fewer bits than buckets") << failed_with(R"({"count":9,"bits":"AQ"})") << "no set of 1 to 65536";
  QTest::newRow("more bits than buckets") << failed_with(R"({"count":3,"bits":"CA"})") << "more flags than it says";
  QTest::newRow("no buckets at all") << failed_with(R"({"count":0,"bits":""})") << "no set of 1 to 65536";
  QTest::newRow("more buckets than there can be")
      << failed_with(R"({"count":4000000000,"bits":"AQ"})") << "no set of 1 to 65536";
  QTest::newRow("more bits than a message may hold")
      << failed_with(qPrintable(R"({"count":80000,"bits":")" + QString(13336, 'A') + "\"}")) << "at most";
  QTest::newRow("a peer that is no id")
      << R"({"type":"attempt_failed","round":1,"fragment":0,"attempt":1,"peer":"../x","reason":""})"
      << "no island's id";
}

void MeshTest::garbage_is_refused_and_never_believed() {
  QFETCH(QString, text);
  QFETCH(QString, says);

  const auto decoded = decode_island_message(text.toStdString());

  QVERIFY(!decoded.ok());
  QVERIFY2(QString::fromStdString(decoded.error().message).contains(says), decoded.error().message.c_str());
}

void MeshTest::random_changes_of_good_messages_never_crash_the_decoder() {
  std::mt19937 random(7);
  std::vector<std::string> texts;
  for (const IslandMessage& message : island_samples()) texts.push_back(encode(message));
  for (const HubMessage& message : hub_samples()) texts.push_back(encode(message));

  int refused = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text = texts[random() % texts.size()];
    for (unsigned changes = 1 + random() % 4; changes > 0; --changes) {
      text[random() % text.size()] = static_cast<char>(random() % 256);
    }
    if (random() % 4 == 0) text.resize(random() % text.size());
    refused += decode_island_message(text).ok() ? 0 : 1;
    refused += decode_hub_message(text).ok() ? 0 : 1;
  }

  QVERIFY(refused > 4000);  // each text is of one direction at most
}

void MeshTest::a_commit_record_says_who_contributed_how_much_and_nothing_of_where() {
  HubCommit commit = sample_commit();
  commit.signature = "ignored";

  QCOMPARE(
      QString::fromStdString(commit_record(commit)),
      QString(R"({"attempt":2,"digest":"%1","epoch":1700000000000,"holders":["isl-1"],"lease_cursor":1099511627776,)"
              R"("members":[{"id":"isl-1","tokens":4096},{"id":"isl-2","tokens":0}],)"
              R"("outer_learning_rate":0.7,"outer_momentum":0.9,"round":3})")
          .arg(QString(64, 'a')));
  commit.fragment = FragmentId{1};
  QVERIFY(QString::fromStdString(commit_record(commit)).contains("\"fragment\":1"));
}

void MeshTest::a_long_reason_is_cut_between_characters() {
  std::string reason;
  for (int i = 0; i < 300; ++i) reason += "\u00e9";

  const auto decoded = decode_island_message(encode(IslandMessage(IslandLeaving{reason + "x"})));

  QVERIFY(decoded.ok());
  QCOMPARE(std::get<IslandLeaving>(*decoded).reason.size(), std::size_t{512});
  const auto odd = decode_island_message(encode(IslandMessage(IslandLeaving{"x" + reason})));
  QVERIFY(odd.ok());
  QCOMPARE(std::get<IslandLeaving>(*odd).reason.size(), std::size_t{511});
}

void MeshTest::the_rows_of_a_check_travel_with_the_hello() {
  IslandHello hello;
  hello.checked = std::vector<CheckedRow>{{"ram", "pass"}, {"net.loss", "warn"}};

  const auto decoded = decode_island_message(encode(IslandMessage(hello)));

  QVERIFY(decoded.ok());
  const auto& rows = std::get<IslandHello>(*decoded).checked;
  QVERIFY(rows && rows->size() == 2);
  QCOMPARE((*rows)[1].row, std::string("net.loss"));
  QCOMPARE((*rows)[1].verdict, std::string("warn"));
  hello.checked = std::vector<CheckedRow>(kMaxCheckedRows + 1, {"ram", "pass"});
  QVERIFY(!decode_island_message(encode(IslandMessage(hello))).ok());
}

void MeshTest::an_attempt_by_a_schedule_that_is_not_known_is_refused() {
  auto attempt = nlohmann::json::parse(encode(HubMessage(sample_direct_attempt())));
  QCOMPARE(std::get<HubAttempt>(*decode_hub_message(attempt.dump())).schedule, Schedule::kDirect);

  attempt["schedule"] = "tree\x1b";
  const auto unknown = decode_hub_message(attempt.dump());
  attempt["schedule"] = 1;
  const auto no_name = decode_hub_message(attempt.dump());

  QVERIFY(!unknown.ok() && !no_name.ok());
  QVERIFY2(unknown.error().message.find("schedule 'tree?' is not known here (ring, direct); update atoll") !=
               std::string::npos,
           unknown.error().message.c_str());
  attempt.erase("schedule");  // of an older hub
  QCOMPARE(std::get<HubAttempt>(*decode_hub_message(attempt.dump())).schedule, Schedule::kRing);
}

void MeshTest::rates_of_edges_that_cannot_be_are_refused_data() {
  QTest::addColumn<QString>("rates");
  QTest::addColumn<QString>("says");
  QTest::newRow("fewer than members") << "[1.0]"
                                      << "not as long as the order";
  QTest::newRow("negative") << "[-1,0]"
                            << "finite numbers of 0 or more";
  QTest::newRow("no number") << "[null,0]"
                             << "finite numbers of 0 or more";
  QTest::newRow("none") << "[]"
                        << "finite numbers of 0 or more";
  QTest::newRow("no list") << "7"
                           << "finite numbers of 0 or more";
}

void MeshTest::rates_of_edges_that_cannot_be_are_refused() {
  QFETCH(QString, rates);
  QFETCH(QString, says);
  const HubAttempt attempt{OuterStep{3}, Attempt{2}, sample_members(), {}, WireFormat::kInt8Block, {62.5e6, 0}};
  QString text = QString::fromStdString(encode(HubMessage(attempt)));
  QVERIFY(text.contains("[62500000.0,0.0]"));

  const auto decoded = decode_hub_message(text.replace("[62500000.0,0.0]", rates).toStdString());

  QVERIFY(!decoded.ok());
  QVERIFY2(QString::fromStdString(decoded.error().message).contains(says), decoded.error().message.c_str());
}

void MeshTest::a_host_that_is_no_host_is_refused_in_a_hello_data() {
  QTest::addColumn<QByteArray>("host");
  QTest::addColumn<bool>("good");
  QTest::newRow("none") << QByteArray() << true;
  QTest::newRow("name") << QByteArray("node-1.example.org") << true;
  QTest::newRow("IPv4") << QByteArray("203.0.113.7") << true;
  QTest::newRow("IPv6 with a zone") << QByteArray("fe80::1%eth0") << true;
  QTest::newRow("escape sequence") << QByteArray("203.0.113.7\x1b[2J") << false;
  QTest::newRow("two lines") << QByteArray("203.0.113.7\nhub event=run.finished") << false;
  QTest::newRow("right to left") << QByteArray("203.0.113.7\u202E") << false;
  QTest::newRow("a path") << QByteArray("203.0.113.7/x") << false;
  QTest::newRow("spaces") << QByteArray("my host") << false;
  QTest::newRow("too long") << QByteArray(254, 'a') << false;
}

void MeshTest::a_host_that_is_no_host_is_refused_in_a_hello() {
  QFETCH(QByteArray, host);
  QFETCH(bool, good);
  auto hello = nlohmann::json::parse(encode(IslandMessage(IslandHello{})));
  hello["advertised_host"] = host.toStdString();

  const auto read = decode_island_message(hello.dump());

  QCOMPARE(read.ok(), good);
  if (good) return;
  QCOMPARE(read.error().code, ErrorCode::kProtocol);
  QVERIFY(read.error().message.find("advertised_host") != std::string::npos);
  QVERIFY(is_printable(read.error().message));
}

void MeshTest::names_of_a_hello_come_as_they_can_be_shown() {
  auto json = nlohmann::json::parse(encode(IslandMessage(IslandHello{})));
  for (const char* field : {"display_name", "software", "region"}) json[field] = "a\u202Eb\x1b[2J\nc";
  json["checked"] = nlohmann::json::array({{{"row", "gpu\x1b"}, {"verdict", "pass\u200B"}}});

  const auto read = decode_island_message(json.dump());

  QVERIFY2(read.ok(), read.ok() ? "" : read.error().message.c_str());
  const auto& hello = std::get<IslandHello>(*read);
  for (const std::string& text : {hello.display_name, hello.software, hello.region}) {
    QCOMPARE(text, std::string("a?b?[2J?c"));
  }
  QCOMPARE(hello.checked->front().row, std::string("gpu?"));
  QCOMPARE(hello.checked->front().verdict, std::string("pass?"));
}

void MeshTest::a_name_that_is_too_long_is_refused_in_a_hello() {
  auto hello = nlohmann::json::parse(encode(IslandMessage(IslandHello{})));
  hello["display_name"] = std::string(64, 'n');
  QVERIFY(decode_island_message(hello.dump()).ok());

  hello["display_name"] = std::string(512, 'n');

  QCOMPARE(decode_island_message(hello.dump()).error().code, ErrorCode::kProtocol);
}

void MeshTest::a_roster_shows_nothing_that_moves_a_cursor() {
  const RosterEntry entry{IslandId{"isl-1"}, "n", Address{"203.0.113.7", 1}, std::string(64, 'a'), "s", "r"};
  auto roster = nlohmann::json::parse(encode(HubMessage(HubRoster{{entry}, {}})));
  roster["islands"][0]["display_name"] = std::string(400, 'n') + "\u202E";
  roster["islands"][0]["region"] = "\x1b]0;owned\x07";

  const auto read = decode_hub_message(roster.dump());
  roster["islands"][0]["address"]["host"] = "203.0.113.7\n";
  const auto refused = decode_hub_message(roster.dump());

  QVERIFY2(read.ok(), read.ok() ? "" : read.error().message.c_str());
  QCOMPARE(std::get<HubRoster>(*read).islands[0].display_name, std::string(64, 'n'));
  QCOMPARE(std::get<HubRoster>(*read).islands[0].region, std::string("?]0;owned?"));
  QVERIFY(!refused.ok());
}

void MeshTest::an_unknown_type_is_told_in_characters_that_can_be_shown() {
  const auto read = decode_island_message(nlohmann::json{{"type", "\x1b[2J\u202E"}}.dump());

  QVERIFY(!read.ok());
  QVERIFY2(is_printable(read.error().message), read.error().message.c_str());
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::MeshTest)
#include "mesh_test.moc"
