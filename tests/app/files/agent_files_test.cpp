// Checkpoints, logs and the diagnostics bundle: what is shown of the files that an agent keeps.
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/agent/files/checkpoint_list.h"
#include "app/agent/files/diag_bundle.h"
#include "app/agent/files/log_page.h"
#include "app/agent/files/log_reader.h"
#include "app/agent/files/redaction.h"
#include "app/agent/files/rotating_log.h"
#include "net/base/bytes.h"
#include "net/base/encoding.h"
#include "net/base/file.h"
#include "net/collective/canonical_digest.h"
#include "net/disk/round_log.h"
#include "net/recovery/outer_state.h"

using namespace atl;

namespace {

class Home {
 public:
  Home() : agent(agent_home_in(path(""))) {
    std::filesystem::create_directories(agent.state);
    std::filesystem::create_directories(agent.island.checkpoint());
  }
  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(directory_.path().toStdString()) / name;
  }
  std::filesystem::path write_checkpoint(std::size_t count) const {
    const std::vector<float> parameters(count, 0.5f), momentum(count, -0.25f);
    ByteWriter header;
    header.put_bytes(as_bytes(std::string_view("ATLOUTER")));
    header.put(std::uint32_t{1});
    header.put(std::uint32_t{7});
    header.put(std::uint64_t{count});
    std::string content = to_string(header.take());
    content.append(reinterpret_cast<const char*>(parameters.data()), count * 4);
    content.append(reinterpret_cast<const char*>(momentum.data()), count * 4);
    content += to_hex(make_state_manifest(OuterStep{7}, parameters, momentum).tree_hash());
    auto file = agent.island.checkpoint() / "outer.state";
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }

 private:
  QTemporaryDir directory_;

 public:
  AgentHome agent;
};

std::vector<std::string> texts(const Result<std::vector<LogLine>>& lines) {
  if (!lines.ok()) qFatal("%s", lines.error().message.c_str());
  std::vector<std::string> list;
  for (const LogLine& line : *lines) list.push_back(line.source + " " + line.text);
  return list;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

class AgentFilesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_checkpoint_is_listed_and_verified();
  void logged_rounds_are_listed_and_verified();
  void what_a_trainer_removes_while_the_rest_is_verified_is_left_out();
  void a_damaged_checkpoint_is_told_data();
  void a_damaged_checkpoint_is_told();
  void logs_of_two_programs_are_one();
  void logs_are_followed_over_a_rotation();
  void a_page_holds_the_newest_lines_and_its_cursor_reads_on();
  void pages_follow_each_other_without_a_gap_over_rotations();
  void a_page_tells_level_and_text_apart_data();
  void a_page_tells_level_and_text_apart();
  void a_page_stays_within_its_bounds();
  void a_page_shows_nothing_that_turns_the_direction_of_writing();
  void a_cursor_that_is_none_is_refused_data();
  void a_cursor_that_is_none_is_refused();
  void a_log_stays_within_its_size();
  void secrets_are_redacted_data();
  void secrets_are_redacted();
  void what_is_no_secret_stays_data();
  void what_is_no_secret_stays();
  void the_bundle_holds_no_planted_secret();
  void the_bundle_is_a_tar_file();
};

void AgentFilesTest::a_checkpoint_is_listed_and_verified() {
  Home home;
  QVERIFY(list_checkpoints(home.agent.island)->empty());
  const auto file = home.write_checkpoint(1000);

  const auto list = list_checkpoints(home.agent.island);
  const auto verified = verify_checkpoint(file);

  QCOMPARE(list->size(), 1u);
  QCOMPARE(list->front().outer_step, 7u);
  QCOMPARE(list->front().parameters, 1000u);
  QVERIFY(!list->front().whole);
  QCOMPARE(*verified->whole, true);
}

void AgentFilesTest::logged_rounds_are_listed_and_verified() {
  Home home;
  const auto& island = home.agent.island;
  QVERIFY(list_logged_rounds(island).empty());
  for (const std::uint32_t number : {7u, 8u}) {
    const Bytes canonical(1000, static_cast<std::byte>(number));
    LoggedRound round{.record = {}, .from = std::string(64, 'a'), .made = std::string(64, 'b')};
    round.record.commit.round = OuterStep{number};
    round.record.commit.digest = to_hex(canonical_digest(canonical));
    round.record.hub_certificate = "PEM";
    QVERIFY(RoundLog(island.checkpoint()).keep(round, {}, WireFormat::kInt8Block, canonical).ok());
  }

  const auto list = list_logged_rounds(island);

  QCOMPARE(list.size(), 2u);
  QCOMPARE(list[0].round, 8u);
  QCOMPARE(list[1].round, 7u);
  QCOMPARE(list[0].bytes, 1000u);
  QCOMPARE(list[0].state_hash, std::string(64, 'b'));
  QVERIFY(!list[0].whole);
  QCOMPARE(*verify_logged_round(list[0])->whole, true);
  std::fstream(list[0].path, std::ios::in | std::ios::out | std::ios::binary).seekp(500).put('\x77');
  QCOMPARE(*verify_logged_round(list[0])->whole, false);
  QCOMPARE(*verify_logged_round(list[1])->whole, true);
}

void AgentFilesTest::what_a_trainer_removes_while_the_rest_is_verified_is_left_out() {
  Home home;
  home.write_checkpoint(1000);
  auto states = *list_checkpoints(home.agent.island);
  states.push_back(states.front());
  states.back().path += ".gone";
  std::vector<LoggedRoundFacts> rounds(1);
  rounds.front().path = home.agent.island.checkpoint() / "rounds" / "round.3.average";

  QVERIFY(verify_all(states, rounds).ok());

  QCOMPARE(states.size(), 1u);
  QCOMPARE(*states.front().whole, true);
  QVERIFY(rounds.empty());
}

void AgentFilesTest::a_damaged_checkpoint_is_told_data() {
  QTest::addColumn<int>("offset");
  QTest::addColumn<int>("size");
  QTest::newRow("a value") << 4000 << -1;
  QTest::newRow("the magic") << 0 << -1;
  QTest::newRow("the count") << 20 << -1;
  QTest::newRow("the hash") << 8030 << -1;
  QTest::newRow("cut") << -1 << 5000;
  QTest::newRow("empty") << -1 << 1;
}

void AgentFilesTest::a_damaged_checkpoint_is_told() {
  QFETCH(const int, offset);
  QFETCH(const int, size);
  Home home;
  const auto file = home.write_checkpoint(1000);
  if (offset >= 0) std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(offset).put('\x77');
  if (size >= 0) std::filesystem::resize_file(file, static_cast<std::uintmax_t>(size));

  const auto verified = verify_checkpoint(file);

  QVERIFY2(verified.ok(), verified.ok() ? "" : verified.error().message.c_str());
  QCOMPARE(*verified->whole, false);
}

void AgentFilesTest::logs_of_two_programs_are_one() {
  Home home;
  std::ofstream(home.agent.agent_log()) << "2026-11-21T10:00:00.100 info a1\n2026-11-21T10:00:02.000 info a2\n";
  std::ofstream(home.agent.trainer_log()) << "2026-11-21T10:00:01.000 info t1\nterminate called\n"
                                          << "2026-11-21T10:00:03.000 info t2\n";
  LogReader reader({{"agent", home.agent.agent_log()}, {"trainer", home.agent.trainer_log()}});
  LogReader later({{"agent", home.agent.agent_log()}, {"trainer", home.agent.trainer_log()}});

  QCOMPARE(texts(reader.read("")),
           (std::vector<std::string>{"agent 2026-11-21T10:00:00.100 info a1", "trainer 2026-11-21T10:00:01.000 info t1",
                                     "trainer terminate called", "agent 2026-11-21T10:00:02.000 info a2",
                                     "trainer 2026-11-21T10:00:03.000 info t2"}));
  QCOMPARE(later.read("2026-11-21T10:00:02")->size(), 2u);
  QVERIFY(reader.read("")->empty());
}

void AgentFilesTest::logs_are_followed_over_a_rotation() {
  Home home;
  auto log = RotatingLog::open(home.agent.agent_log(), 200);
  QVERIFY(log->write("2026-11-21T10:00:00 one\n").ok());
  LogReader reader({{"agent", home.agent.agent_log()}});
  QCOMPARE(reader.read("")->size(), 1u);

  QVERIFY(log->write("2026-11-21T10:00:01 two, and the beginning").ok());
  QVERIFY(reader.read("")->empty());  // no line yet
  QVERIFY(log->write(" of three\n").ok());
  QVERIFY(log->write("2026-11-21T10:00:02 " + std::string(80, 'x') + "\n").ok());  // into a new file

  const auto lines = texts(reader.read(""));
  QCOMPARE(lines.size(), 2u);
  QCOMPARE(lines[0], std::string("agent 2026-11-21T10:00:01 two, and the beginning of three"));
}

std::string log_line(int second, const std::string& text) {
  return "2026-11-21T21:36:" + std::string(second < 10 ? "0" : "") + std::to_string(second) + ".125 info " + text +
         "\n";
}

std::vector<LogReader::Source> log_sources(const Home& home) {
  return {{"agent", home.path("agent.log")}, {"trainer", home.path("trainer.log")}};
}

std::string texts(const LogPage& page) {
  std::string all;
  for (const LogPage::Line& line : page.lines) all += line.source.substr(0, 1) + ":" + line.text + " ";
  return all;
}

void AgentFilesTest::a_page_holds_the_newest_lines_and_its_cursor_reads_on() {
  const Home home;
  std::ofstream agent(home.path("agent.log")), trainer(home.path("trainer.log"));
  agent << log_line(1, "one") << log_line(4, "four") << std::flush;
  trainer << log_line(2, "two") << log_line(3, "three") << "no time\n"
          << "half a li" << std::flush;

  const auto newest = read_log_page(log_sources(home), {.limit = 3});
  trainer << "ne\n" << log_line(6, "six") << std::flush;
  agent << log_line(5, "five") << std::flush;
  const auto next = read_log_page(log_sources(home), {.cursor = newest->cursor});
  const auto nothing = read_log_page(log_sources(home), {.cursor = next->cursor});

  QVERIFY(newest.ok() && next.ok() && nothing.ok());
  QCOMPARE(texts(*newest), std::string("t:three t:no time a:four "));
  QCOMPARE(newest->lines[1].time, std::string("2026-11-21T21:36:03.125"));
  QCOMPARE(texts(*next), std::string("t:half a line a:five t:six "));
  QCOMPARE(next->lines[0].time, std::string("2026-11-21T21:36:03.125"));
  QVERIFY(nothing->lines.empty() && !nothing->more);
}

void AgentFilesTest::pages_follow_each_other_without_a_gap_over_rotations() {
  const Home home;
  auto log = RotatingLog::open(home.path("trainer.log"), 4000);
  QVERIFY(log.ok());
  QVERIFY(log->write(log_line(0, "first")).ok());
  auto page = read_log_page(log_sources(home), {});
  int written = 0, read = 0;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 7; ++i) QVERIFY(log->write(log_line(1, std::to_string(written++))).ok());
    do {
      page = read_log_page(log_sources(home), {.cursor = page->cursor, .limit = 5});
      QVERIFY2(page.ok(), page.ok() ? "" : page.error().message.c_str());
      for (const LogPage::Line& line : page->lines) QCOMPARE(line.text, std::to_string(read++));
    } while (page->more);
  }

  QCOMPARE(read, written);
  QVERIFY(std::filesystem::exists(home.path("trainer.log.1")));
}

void AgentFilesTest::a_page_tells_level_and_text_apart_data() {
  QTest::addColumn<QString>("line");
  QTest::addColumn<QString>("level");
  QTest::addColumn<QString>("text");
  const QString time = "2026-11-21T21:36:32.125";
  QTest::newRow("a warning") << time + " warning it is hot"
                             << "warning"
                             << "it is hot";
  QTest::newRow("critical is an error") << time + " critical no"
                                        << "error"
                                        << "no";
  QTest::newRow("a word that only begins so") << time + " errors are many"
                                              << ""
                                              << "errors are many";
  QTest::newRow("no time, no level") << "error: out of memory"
                                     << ""
                                     << "error: out of memory";
  QTest::newRow("an escape sequence") << time + " info \x1b[31mred"
                                      << "info"
                                      << "?[31mred";
  QTest::newRow("a secret") << time + " info invite=atoll1.c2VjcmV0c2VjcmV0c2VjcmV0.00000000"
                            << "info"
                            << "";
}

void AgentFilesTest::a_page_tells_level_and_text_apart() {
  QFETCH(const QString, line);
  QFETCH(const QString, level);
  QFETCH(const QString, text);
  const Home home;
  std::ofstream(home.path("agent.log")) << line.toStdString() << "\n";

  const auto page = read_log_page(log_sources(home), {});

  QCOMPARE(page->lines.size(), std::size_t{1});
  QCOMPARE(page->lines[0].level, level.toStdString());
  if (!text.isEmpty()) QCOMPARE(page->lines[0].text, text.toStdString());
  QVERIFY(!contains(page->lines[0].text, "c2VjcmV0"));
}

void AgentFilesTest::a_page_shows_nothing_that_turns_the_direction_of_writing() {
  const Home home;
  std::ofstream(home.agent.agent_log()) << "2026-11-21T10:00:00.100 info name=\"a\u202Eb\u200B\xff\"\n";

  const auto page = read_log_page({{"agent", home.agent.agent_log()}}, {});

  QVERIFY(page.ok());
  QCOMPARE(page->lines.at(0).text, std::string("name=\"a?b??\""));
}

void AgentFilesTest::a_page_stays_within_its_bounds() {
  const Home home;
  {
    std::ofstream log(home.path("trainer.log"));
    std::string words;
    for (int i = 0; i < 200; ++i) words += "word ";
    for (int i = 0; i < 3000; ++i) log << log_line(1, words);
  }

  const auto page = read_log_page(log_sources(home), {.limit = 1'000'000});
  const auto first = read_log_page(log_sources(home), {.cursor = "0,0,;0,0,", .limit = 1'000'000});

  for (const auto* each : {&page, &first}) {
    QVERIFY((*each)->lines.size() > 100 && (*each)->lines.size() <= LogPage::kMaxLines);
    std::size_t bytes = 0;
    for (const LogPage::Line& line : (*each)->lines) bytes += line.text.size();
    QVERIFY(bytes <= LogPage::kMaxBytes);
  }
  QVERIFY(first->more);
}

void AgentFilesTest::a_cursor_that_is_none_is_refused_data() {
  QTest::addColumn<QString>("cursor");
  for (const char* cursor : {"x", "1,2,", "1,2,;3", "1,2,;3,4,;5,6,", "-1,2,;3,4,", "1,2,now;3,4,", ";"}) {
    QTest::newRow(cursor) << cursor;
  }
  QTest::newRow("long") << QString(1000, '1');
}

void AgentFilesTest::a_cursor_that_is_none_is_refused() {
  QFETCH(const QString, cursor);
  const Home home;

  const auto page = read_log_page(log_sources(home), {.cursor = cursor.toStdString()});

  QVERIFY(!page.ok());
  QCOMPARE(page.error().code, ErrorCode::kInvalidArgument);
}

void AgentFilesTest::a_log_stays_within_its_size() {
  Home home;
  auto log = RotatingLog::open(home.agent.agent_log(), 10'000);
  for (int i = 0; i < 2000; ++i) QVERIFY(log->write("2026-11-21T10:00:00 line " + std::to_string(i) + "\n").ok());

  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(home.agent.state)) bytes += entry.file_size();
  QVERIFY2(bytes <= 10'000, std::to_string(bytes).c_str());
  LogReader reader({{"agent", home.agent.agent_log()}});
  const auto lines = texts(reader.read(""));
  QCOMPARE(lines.back(), std::string("agent 2026-11-21T10:00:00 line 1999"));
  QVERIFY(lines.size() > 100);
}

void AgentFilesTest::secrets_are_redacted_data() {
  QTest::addColumn<QString>("text");
  QTest::addColumn<QString>("secret");
  const QString invite = "atoll1.eyJodWIiOlsiMTI3LjAuMC4xOjQ3MDAwIl19.9c1f22ab";
  QTest::newRow("invite") << "joining with " + invite << invite;
  QTest::newRow("link") << "atoll:join?i=" + invite << invite;
  QTest::newRow("upper case") << "ATOLL1.SECRETPART"
                              << "SECRETPART";
  QTest::newRow("key") << "x\n-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2Vw\n-----END PRIVATE KEY-----\ny"
                       << "MC4CAQAwBQYDK2Vw";
  QTest::newRow("torn key") << "-----BEGIN EC PRIVATE KEY-----\nMC4CAQ"
                            << "MC4CAQ";
  QTest::newRow("json") << R"({"secret": "hunter2"})"
                        << "hunter2";
  QTest::newRow("assignment") << "HF_TOKEN=hf_abc password: pw1"
                              << "hf_abc";
  QTest::newRow("password") << "password: pw1"
                            << "pw1";
  const auto row = [](const char* name, const char* text, const char* secret) {
    QTest::newRow(name) << text << secret;
  };
  row("URL", "proxy https://me:hunter2@proxy.example.org:3128/x", "hunter2");
  row("URL whose password ends an authority", "https://me:hunter2/x?@proxy.example.org", "hunter2");
  row("URL of a token", "clone https://ghp_abc@git.example.org/a", "ghp_abc");
  row("URL of a database", "postgres://me:pw1@db/x", "pw1");
  row("bearer", "> Authorization: Bearer abc", "abc");
  row("basic", "curl -H 'authorization: basic dTpw' https://hub", "dTpw");
  row("bearer alone", "sent Bearer abc", "abc");
  row("bearer in a sentence", "with bearer a1b2c3", "a1b2c3");
  row("cookie", "Set-Cookie: id=abc; Path=/", "abc");
  row("web token", "got eyJhbGciOiJub25lIn0.e30.x", "e30.x");
  row("said", "the password is hunter2", "hunter2");
  row("said before", "Password was hunter2", "hunter2");
  row("spaces around", "token  =  hunter2", "hunter2");
  row("colon", "secret: hunter2", "hunter2");
  row("spaces within quotes", R"("secret" : "hunter2 and more", "x": 1)", "and more");
  row("JSON in a text", R"({\"token\":\"hunter2\"})", "hunter2");
  row("a comma in it", "password=hun,ter2", "ter2");
  row("passphrase of words", "passphrase: correct horse battery", "battery");
  row("no more than a space", "with passphrase deadBEEF12, then", "deadBEEF12");
  row("a quote in a password", "https://me:o'neil9@host/x", "neil9");
  row("bearer in quotes", "Authorization: Bearer \"abc123\"", "abc123");
  row("bearer after two spaces", "got Bearer  abc123 there", "abc123");
  row("is, and a colon", "password is: hunter2", "hunter2");
  row("set to", "the password was set to hunter2", "hunter2");
  row("is now", "password is now hunter2", "hunter2");
  row("a cookie with quotes", "Cookie: a=\"x y\"; sid=\"abc\"", "abc");
  row("longer name", "AWS_SECRET_ACCESS_KEY=abc", "abc");
  row("option", "ran tool --hub-token hunter2 --fast", "hunter2");
  row("bearer of a name", "token: Bearer hunter2", "hunter2");
  QTest::newRow("base64") << "got QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0 there"
                          << "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0";
}

void AgentFilesTest::secrets_are_redacted() {
  QFETCH(const QString, text);
  QFETCH(const QString, secret);

  const std::string kept = redacted(text.toStdString());

  QVERIFY2(!contains(kept, secret.toStdString()), kept.c_str());
  QVERIFY(contains(kept, "[redacted]"));
}

void AgentFilesTest::what_is_no_secret_stays_data() {
  QTest::addColumn<QString>("text");
  QTest::newRow("log line") << "2026-11-21T10:00:00.100 info round done round=42 seconds=3.5 tokens=100000";
  QTest::newRow("state hash") << "hash " + QString(64, 'a');
  QTest::newRow("path") << "/usr/lib/x86/some-directory/with-quite-a-long/name-in-it/file";
  QTest::newRow("tokens per second") << R"("tokens_per_second": 31.5, "tokens": 5)";
  QTest::newRow("said of secrets") << "the password is wrong; the token was not given, and no secret is missing";
  QTest::newRow("sentence") << "the bearer of news has no token and no cookie";
  QTest::newRow("quoted URL") << "see 'https://hub.example.org/x' and <https://a.example.org> or me@example.org";
  QTest::newRow("figures") << "token 100000 of 200000, secret no. 2 of round3";
  QTest::newRow("tokens") << "tokens=257 token_bytes=2 tokenizer: bytes token budget";
  QTest::newRow("URL") << "https://hub.example.org:47000/data/a@b?x=1#y http://[2001:db8::1]:80/ ssh://me@node";
  QTest::newRow("commit") << "commit " + QString(40, 'b') + " digest=" + QString(64, '0');
  QTest::newRow("island") << "isl-0123456789abcdef at 203.0.113.7:47000";
}

void AgentFilesTest::what_is_no_secret_stays() {
  QFETCH(const QString, text);
  QCOMPARE(redacted(text.toStdString()), text.toStdString());
}

void AgentFilesTest::the_bundle_holds_no_planted_secret() {
  Home home;
  const std::string secret = "planted0secret0planted0secret0AAAAbbbb";
  const std::string invite = "atoll1." + secret + ".00000000";
  std::filesystem::create_directories(home.agent.island.identity());
  std::ofstream(home.agent.island.identity() / "key.pem") << secret;
  std::ofstream(home.agent.agent_log()) << "2026-11-21T10:00:00 error could not join with " << invite << "\n";
  std::ofstream(home.agent.trainer_log()) << "2026-11-21T10:00:00 error token=" << secret << "\n";
  std::ofstream(home.agent.config_file) << "# my hub's password: " << secret << "\n";
  std::ofstream(home.agent.island.join_file()) << R"({"note": ")" << invite << R"("})";
  qputenv("ATOLL_TEST_TOKEN", QByteArray::fromStdString(secret));
  ConfigSources sources{home.agent.config_file, home.agent.settings_file()};

  const auto made = create_diagnostics(home.agent, sources, {{"error", "hub refused " + invite}},
                                       {{"file", home.path("diag.tar").string()}});

  QVERIFY2(made.ok(), made.ok() ? "" : made.error().message.c_str());
  const std::string bytes = *read_file(home.path("diag.tar"));
  QVERIFY(!contains(bytes, secret));
  QVERIFY(contains(bytes, "could not join with"));
  QVERIFY(made->at("entries").size() >= 8);
  QCOMPARE(create_diagnostics(home.agent, sources, nullptr, {{"file", home.path("diag.tar").string()}}).error().code,
           ErrorCode::kInvalidArgument);  // nothing is written over
}

void AgentFilesTest::the_bundle_is_a_tar_file() {
  Home home;
  QVERIFY(write_diagnostics(home.path("d.tar"), {{"a.txt", "alpha\n"}, {"b.txt", std::string(600, 'b')}}).ok());
  QProcess tar;
  tar.start("tar", {"-xOf", QString::fromStdString(home.path("d.tar").string()), "atoll-diag/a.txt"});

  QVERIFY(tar.waitForFinished(20'000));
  QCOMPARE(tar.exitCode(), 0);
  QCOMPARE(tar.readAllStandardOutput(), QByteArray("alpha\n"));
}

QTEST_GUILESS_MAIN(AgentFilesTest)
#include "agent_files_test.moc"
