// README's commands and nothing else, each where a person would type it: a hub and three islands, every one in a
// network namespace of its own, each with its own home directory; from `atoll join` to training.
#include <QTemporaryDir>
#include <QtTest>
#include <csignal>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "tests/process/run_parts.h"
#include "tests/wan/wan_box.h"

namespace atl::wan {
namespace {

constexpr int kIslands = 3;
constexpr std::chrono::seconds kBound{300};  // for anything; a hang, not a slow machine
constexpr std::chrono::milliseconds kLook{50};

}  // namespace

class JoinTest : public QObject {
  Q_OBJECT

  QTemporaryDir directory_;
  std::unique_ptr<WanBox> box_;

  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(directory_.path().toStdString()) / name;
  }
  std::filesystem::path home_of(int host) const { return path("host" + std::to_string(host)); }
  // As the user of that machine: a home directory of its own, all output to a log.
  WanProcess start(int host, const std::string& command, const std::string& log) const {
    const std::string home = home_of(host);
    std::filesystem::create_directories(home);
    const std::string script = "cd '" + home + "' && export HOME='" + home +
                               "' PATH='" ATOLL_BIN_DIR
                               "':$PATH && unset XDG_DATA_HOME XDG_RUNTIME_DIR XDG_STATE_HOME "
                               "XDG_CONFIG_HOME ATOLL_HOME ATOLL_HUB_HOME && exec " +
                               command + (log.empty() ? " 2>&1" : " >'" + (home + "/" + log) + "' 2>&1");
    return test::require(box_->run_in(host, {"sh", "-c", script}));
  }
  // All that it prints.
  std::string run(int host, const std::string& command) const {
    WanProcess process = start(host, command, "");
    std::string output;
    const Deadline deadline = Deadline::after(kBound);
    for (auto line = process.read_line(deadline); line.ok(); line = process.read_line(deadline)) output += *line + "\n";
    const int status = test::require(process.wait(deadline));
    if (status != 0) qFatal("%s: exit status %d: %s", command.c_str(), status, output.c_str());
    return output;
  }
  nlohmann::json status_of(int host) const {
    WanProcess process = start(host, "atoll status --json", "");
    std::string output;
    const Deadline deadline = Deadline::after(kBound);
    for (auto line = process.read_line(deadline); line.ok(); line = process.read_line(deadline)) output += *line;
    const bool answered = test::require(process.wait(deadline)) == 0;
    return answered ? nlohmann::json::parse(output, nullptr, false) : nlohmann::json();
  }

 private Q_SLOTS:
  void initTestCase() {
    if (const auto reason = WanBox::unavailable()) QSKIP(reason->c_str());
    box_ = test::require(WanBox::create(
        {.hosts = kIslands + 1, .path = {.bits_per_second = 200e6, .delay = std::chrono::milliseconds(10)}}));
  }

  void three_islands_that_join_with_one_invite_train_together();
};

void JoinTest::three_islands_that_join_with_one_invite_train_together() {
  test::make_dataset(path("corpus.txt"), path("unused"));
  run(0, "atoll data prepare '" + path("corpus.txt").string() + "' --output data");
  run(0, "atoll hub init --data data --name first --islands 3");
  WanProcess hub =
      start(0, "atoll hub serve --listen 0.0.0.0:47000 --advertise " + box_->address(0) + ":47000", "hub.log");
  const auto serves = [&] {
    WanProcess status = start(0, "atoll hub status", "");
    return test::require(status.wait(Deadline::after(kBound))) == 0;
  };
  QTRY_VERIFY_WITH_TIMEOUT(serves(), 120'000);
  const std::string invite = nlohmann::json::parse(run(0, "atoll hub invite --uses 3 --json"))["invite"];

  std::vector<WanProcess> islands;
  std::vector<Clock::time_point> joined;
  for (int host = 1; host <= kIslands; ++host) {
    std::filesystem::create_directories(home_of(host));
    test::require(write_file_atomically(home_of(host) / "invite.txt", invite + "\n", FileMode::kPrivate));
    joined.push_back(Clock::now());
    islands.push_back(start(host, "atoll join --invite-file invite.txt --yes", "join.log"));
  }

  for (int host = 1; host <= kIslands; ++host) {
    const Deadline deadline = Deadline::after(kBound);
    nlohmann::json state;
    do {
      QVERIFY2(!deadline.expired(), qPrintable(QString::fromStdString("no inner step: " + state.dump())));
      QTest::qWait(static_cast<int>(kLook.count()));
      state = status_of(host);
      // A first step may be done before an island has heard of the last that came.
    } while (!state.is_object() || state.value("tokens", std::uint64_t{0}) == 0 ||
             state.value("islands_total", 0u) < unsigned{kIslands});
    qInfo("host %d: %.1f s from join to the first inner step", host,
          Seconds(Clock::now() - joined[static_cast<std::size_t>(host - 1)]).count());
    QCOMPARE(state.at("run_name").get<std::string>(), std::string("first"));
    QCOMPARE(state.at("islands_total").get<unsigned>(), unsigned{kIslands});
  }
  const auto commits = [&] { return nlohmann::json::parse(run(0, "atoll hub status --json")).value("outer_step", 0u); };
  QTRY_VERIFY_WITH_TIMEOUT(commits() >= 1, 300'000);

  for (WanProcess& island : islands) island.send_signal(SIGINT);
  for (WanProcess& island : islands) QCOMPARE(test::require(island.wait(Deadline::after(kBound))), 0);
}

}  // namespace atl::wan

QTEST_GUILESS_MAIN(atl::wan::JoinTest)
#include "join_test.moc"
