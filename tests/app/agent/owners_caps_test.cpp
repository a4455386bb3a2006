// What an island may send and receive at each hour, and how it hears of another word of its owner's. Clocks are made
// up, but for the agent of the last tests, which tells a trainer that the test serves.
#include "app/agent/owners_caps.h"

#include <QtTest>
#include <thread>

#include "app/agent/settings_watch.h"
#include "app/agent/time_zone_watch.h"
#include "app/config/config.h"
#include "net/base/mutex.h"
#include "net/control/methods.h"
#include "tests/app/agent/agent_fixture.h"

using namespace std::chrono_literals;

namespace atl {
namespace {

constexpr double kMegabit = 1e6 / 8;

// Seconds since 1970 of that time in this process's time zone.
std::time_t local(int year, int month, int day, int hour, int minute, int second = 0) {
  std::tm parts{};
  parts.tm_year = year - 1900;
  parts.tm_mon = month - 1;
  parts.tm_mday = day;
  parts.tm_hour = hour;
  parts.tm_min = minute;
  parts.tm_sec = second;
  parts.tm_isdst = -1;
  return std::mktime(&parts);
}

// A zone so many hours ahead of UTC all year (RFC 8536, version 1).
void write_zone(const QString& name, const char* abbreviation, int hours) {
  QByteArray text("TZif");
  const auto number = [&](quint32 value) {
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift);
  };
  text += QByteArray(16, '\0');
  for (const quint32 count : {0u, 0u, 0u, 0u, 1u, 4u}) number(count);  // one type, four letters
  number(static_cast<quint32>(hours * 3600));
  text += QByteArray(2, '\0') + QByteArray(abbreviation) + '\0';
  QFile file(name);
  QVERIFY(file.open(QIODevice::WriteOnly) && file.write(text) == text.size());
}

CapRules rules_of(const char* upload_by_hours) {
  return {{100 * kMegabit, parse_cap_hours(upload_by_hours).value()}, {}};
}

// Writes down what it is told with each word of its agent.
class TrainerThatIsTold final : public ControlService {
 public:
  Result<nlohmann::json> call(std::string_view name, const nlohmann::json& params) override {
    if (name == method::AgentAlive::kName) {
      const auto alive = decode_message<method::AgentAlive>(params);
      MutexLock lock(mutex_);
      if (alive.ok()) caps_ = alive->caps;
    }
    IslandState state;
    state.state = IslandPhase::kTraining;
    state.inner_step = ++steps_;
    return state.to_json();
  }
  std::optional<TransferCaps> caps() const {
    MutexLock lock(mutex_);
    return caps_;
  }

 private:
  mutable Mutex mutex_;
  std::optional<TransferCaps> caps_ ATOLL_GUARDED_BY(mutex_);
  std::atomic<std::uint32_t> steps_{0};
};

}  // namespace

class OwnersCapsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() {
    qputenv("TZ", "Europe/Berlin");
    ::tzset();
  }

  void a_zone_that_changed_is_followed_data() {
    QTest::addColumn<QByteArray>("variable");  // %1: the zone's file
    QTest::newRow("a path") << QByteArray("%1");
    QTest::newRow("with a colon") << QByteArray(":%1");
    QTest::newRow("a name") << QByteArray("zone");
  }

  // Its file is another one, and TZ says the same: as when somebody sets /etc/localtime.
  void a_zone_that_changed_is_followed() {
    QFETCH(QByteArray, variable);
    QTemporaryDir directory;
    const QString file = directory.filePath("zone");
    write_zone(file, "FIV", 5);
    qputenv("TZDIR", directory.path().toUtf8());
    qputenv("TZ", variable.replace("%1", file.toUtf8()));
    const std::time_t noon_utc = 12 * 3600;
    const OwnersCaps caps(rules_of("17:00-18:00 20 Mbit/s"));
    TimeZoneWatch watch;
    const Clock::time_point start = Clock::now();
    watch.turn(start);
    QCOMPARE(caps.at(noon_utc).upload, std::optional(20 * kMegabit));

    write_zone(file + ".new", "NIN", 9);
    QVERIFY(QFile::remove(file) && QFile::rename(file + ".new", file));
    watch.turn(start + SettingsWatch::kLookEvery);

    QCOMPARE(caps.at(noon_utc).upload, std::optional(100 * kMegabit));
    QCOMPARE(caps.at(noon_utc - 4 * 3600).upload, std::optional(20 * kMegabit));
    qunsetenv("TZDIR");
  }

  void a_limit_begins_and_ends_with_its_hours() {
    const OwnersCaps caps(rules_of("22:00-06:00 20 Mbit/s"));

    QCOMPARE(caps.at(local(2026, 5, 10, 21, 59, 59)).upload, std::optional(100 * kMegabit));
    QCOMPARE(caps.at(local(2026, 5, 10, 22, 0)).upload, std::optional(20 * kMegabit));
    QCOMPARE(caps.at(local(2026, 5, 11, 0, 0)).upload, std::optional(20 * kMegabit));
    QCOMPARE(caps.at(local(2026, 5, 11, 5, 59, 59)).upload, std::optional(20 * kMegabit));
    QCOMPARE(caps.at(local(2026, 5, 11, 6, 0)).upload, std::optional(100 * kMegabit));
    QVERIFY(!caps.at(local(2026, 5, 10, 22, 0)).download);
  }

  void it_is_said_until_when_over_midnight_too() {
    const OwnersCaps caps(rules_of("22:00-06:00 20 Mbit/s"));

    QCOMPARE(caps.upload_view(local(2026, 5, 10, 21, 30, 12)).until,
             std::optional<std::int64_t>(local(2026, 5, 10, 22, 0)));
    QCOMPARE(caps.upload_view(local(2026, 5, 31, 23, 0)).until, std::optional<std::int64_t>(local(2026, 6, 1, 6, 0)));
    QCOMPARE(caps.download_view(local(2026, 5, 10, 21, 30)), TransferCapView());
  }

  // In the night to 29 March 2026 an hour is left out, in that to 25 October one comes twice.
  void a_night_of_another_length_ends_at_its_hour() {
    const OwnersCaps caps(rules_of("22:00-06:00 20 Mbit/s"));
    const std::time_t spring = local(2026, 3, 28, 23, 0), autumn = local(2026, 10, 24, 23, 0);

    QCOMPARE(*caps.upload_view(spring).until - spring, std::int64_t{6 * 3600});
    QCOMPARE(*caps.upload_view(autumn).until - autumn, std::int64_t{8 * 3600});
  }

  void files_are_other_ones_once_and_not_looked_at_all_the_time() {
    QTemporaryDir home;
    const std::filesystem::path file = home.filePath("settings.json").toStdString();
    SettingsWatch watch({file});
    auto now = Clock::now();
    for (int i = 0; i < 10; ++i) QVERIFY(!watch.changed(now += 2s));

    std::ofstream(file) << "{}";
    QVERIFY(!watch.changed(now));  // not yet looked at
    QVERIFY(watch.changed(now += 2s));
    for (int i = 0; i < 10; ++i) QVERIFY(!watch.changed(now += 2s));

    std::filesystem::remove(file);
    watch.look_now();
    QVERIFY(watch.changed(now));
  }

  void what_cannot_be_read_changes_nothing_and_is_told() {
    OwnersCaps caps(rules_of(""));

    caps.set(Error{ErrorCode::kInvalidArgument, "line 3 is no rate"});
    QCOMPARE(caps.at(local(2026, 5, 10, 12, 0)).upload, std::optional(100 * kMegabit));
    QVERIFY(caps.trouble().find("line 3 is no rate") != std::string::npos);

    caps.set(CapRules{});
    QVERIFY(!caps.at(local(2026, 5, 10, 12, 0)).upload);
    QVERIFY(caps.trouble().empty());
  }

  // ---- an agent, a trainer's process and its socket

  void a_trainer_that_runs_is_told_what_is_set_while_it_runs() {
    AgentFixture f;
    TrainerThatIsTold trainer;
    const auto server = ControlServer::start(f.home().island.control_socket(), "atoll-trainer", trainer);
    QVERIFY(server.ok() && f.start().ok());
    QTRY_VERIFY_WITH_TIMEOUT(trainer.caps() == TransferCaps(), 60'000);
    QTRY_VERIFY_WITH_TIMEOUT(f.trainer() != 0, 60'000);
    const pid_t before = f.trainer();

    QVERIFY(f.call("config.set", {{"key", "limits.upload"}, {"value", "20 Mbit/s"}}).ok());
    QVERIFY(f.call("config.set", {{"key", "limits.download_by_hours"}, {"value", "00:00-24:00 30 Mbit/s"}}).ok());

    const TransferCaps wanted{20 * kMegabit, 30 * kMegabit};
    QTRY_VERIFY_WITH_TIMEOUT(trainer.caps() == wanted, 60'000);
    QCOMPARE(f.trainer(), before);
    const nlohmann::json agent = f.state()["agent"];
    QCOMPARE(agent["upload_cap"]["bytes_per_second"].get<double>(), 20 * kMegabit);
    QVERIFY(agent["upload_cap"]["until_unix_seconds"].is_null());
    QCOMPARE(agent["download_cap"]["bytes_per_second"].get<double>(), 30 * kMegabit);

    QVERIFY(f.call("config.set", {{"key", "limits.upload"}, {"value", nullptr}}).ok());
    QTRY_VERIFY_WITH_TIMEOUT(trainer.caps() && !trainer.caps()->upload, 60'000);
  }

  void a_file_that_is_written_by_hand_is_followed_and_its_mistakes_are_told() {
    AgentFixture f;
    TrainerThatIsTold trainer;
    const auto server = ControlServer::start(f.home().island.control_socket(), "atoll-trainer", trainer);
    QVERIFY(server.ok() && f.start().ok());
    QTRY_VERIFY_WITH_TIMEOUT(trainer.caps() == TransferCaps(), 60'000);
    const auto warning = [&] { return QString::fromStdString(f.state()["agent"]["warning"].get<std::string>()); };

    std::ofstream(f.home().config_file) << "[limits]\nupload = '20 Mbit/s'\n[schedule]\nhours = 'at night'\n";
    QTRY_VERIFY_WITH_TIMEOUT(warning().contains("settings stay as they were"), 60'000);
    QVERIFY(trainer.caps() == TransferCaps());

    std::ofstream(f.home().config_file) << "[limits]\nupload = '20 Mbit/s'\n";
    QTRY_VERIFY_WITH_TIMEOUT(trainer.caps() == (TransferCaps{20 * kMegabit, {}}), 60'000);
    QTRY_VERIFY_WITH_TIMEOUT(warning().isEmpty(), 60'000);
  }

  void a_trainer_is_started_with_the_limits_of_the_hour() {
    AgentFixture f(true,
                   "echo \"$ATOLL_UPLOAD_BYTES_PER_SECOND $ATOLL_DOWNLOAD_BYTES_PER_SECOND\" > \"$(dirname $0)/told\"\n"
                   "exec sleep 600");
    QVERIFY(write_setting(f.home().settings_file(), "limits.upload", "20 Mbit/s").ok());
    QVERIFY(write_setting(f.home().settings_file(), "limits.upload_by_hours", "00:00-24:00 40 Mbit/s").ok());
    QVERIFY(f.start().ok());

    const auto told = [&] {
      const auto text = read_file(f.path("told"));
      return text.ok() ? *text : std::string();
    };
    QTRY_COMPARE_WITH_TIMEOUT(told(), std::string("5000000 \n"), 60'000);
  }
};

}  // namespace atl

QTEST_GUILESS_MAIN(atl::OwnersCapsTest)
#include "owners_caps_test.moc"
