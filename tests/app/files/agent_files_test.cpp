// Checkpoints, logs and the diagnostics bundle: what is shown of the files that an agent keeps.
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/agent/files/checkpoint_list.h"
#include "app/agent/files/diag_bundle.h"
#include "app/agent/files/log_reader.h"
#include "app/agent/files/redaction.h"
#include "app/agent/files/rotating_log.h"
#include "net/base/bytes.h"
#include "net/base/file.h"
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
    const auto file = agent.island.checkpoint() / "outer.state";
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
  void a_damaged_checkpoint_is_told_data();
  void a_damaged_checkpoint_is_told();
  void logs_of_two_programs_are_one();
  void logs_are_followed_over_a_rotation();
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
