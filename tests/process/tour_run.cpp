#include "tests/process/tour_run.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <QtCore/QThread>
#include <csignal>
#include <fstream>

#include "net/enrol/client.h"
#include "net/hub/hub.h"
#include "tests/fakes/processes.h"
#include "tests/process/agent_service.h"
#include "tests/process/program.h"
#include "tests/process/run_parts.h"

namespace atl::test {
namespace {

std::chrono::sys_seconds now() {
  return std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
}

std::string name_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

pid_t process_of(const std::filesystem::path& home, const std::string& name) {
  for (const pid_t process : processes_of(home)) {
    if (name_of(process) == name) return process;
  }
  return 0;
}

constexpr std::uint16_t kClosedPort = 9;  // "discard", which nobody serves

}  // namespace

TourRun::TourRun() {
  // An agent that the app starts is nobody's child. In a session of its own: what ends this program leaves it be.
  reaper_.setChildProcessModifier([] { ::setsid(); });
  reaper_.start("/bin/sh", {"-c", "cat; pkill -KILL -f -- \"--home $0\"", QString::fromStdString(path("").string())});
  if (!reaper_.waitForStarted()) qFatal("no shell: %s", qPrintable(reaper_.errorString()));
  make_dataset(path("text.txt"), path("data"));
  make_hub("other hub");
  const RunConfig run = make_hub("hub");
  std::filesystem::create_directory(home());
  std::ofstream(agent_home_in(home()).config_file) << "[island]\nthreads = 1\n";  // not all cores: others test beside
  serve_hub();
  if (!wait_for([this] { return hub_->waitForReadyRead(50), hub_serves(); })) qFatal("the hub does not serve");
  start_islands(run);
}

TourRun::~TourRun() {
  if (agent_) agent_->kill(), agent_->waitForFinished();
  for (const auto& island : islands_) island->kill();
  for (const auto& island : islands_) island->waitForFinished();
  kill_hub();
  reaper_.closeWriteChannel();
  reaper_.waitForFinished();
}

RunConfig TourRun::make_hub(const char* name) const {
  RunConfig run = small_run(2);
  run.name = "test run";
  run.inner_steps = 24;  // long enough to be seen, short enough for three of them
  run.validate_every = 2;
  run.validation_sequences = 2;
  return require(
      hub_init({.directory = path(name), .data = {{path("data")}}, .run = std::move(run), .operator_name = "Ada"}));
}

// ---- processes

void TourRun::serve_hub() {
  hub_said_.clear();
  hub_ = start_atoll({"hub", "serve", "--home", path("hub").string(), "--listen", to_string(hub_address())},
                     QProcessEnvironment::systemEnvironment());
}

bool TourRun::hub_serves() {
  hub_said_ += hub_->readAllStandardOutput();
  const QByteArray words = "serves on port ";
  const auto found = hub_said_.indexOf(words);
  if (!hub_said_.contains("\nCtrl-C")) return false;
  hub_port_ = hub_said_.mid(found + words.size()).split(';').front().toUShort();
  return true;
}

void TourRun::kill_hub() {
  hub_->kill();
  hub_->waitForFinished();
}

void TourRun::start_agent() {
  agent_ = start_atoll({"agent", "--home", home().string()}, QProcessEnvironment::systemEnvironment());
}

pid_t TourRun::agent() const { return process_of(home(), "atoll"); }
pid_t TourRun::trainer() const { return process_of(home(), "atoll-trainer"); }

void TourRun::start_islands(const RunConfig& run) {
  for (const char* name : {"reef", "cay"}) {
    const Invite invite = require(decode_invite(good_invite(), now()));
    const IslandHome home = make_island_home({.directory = path("islands"),
                                              .dataset = path("data"),
                                              .invite = invite,
                                              .display_name = name,
                                              .bind = {"127.0.0.1", 0}},
                                             run);
    auto& island = islands_.emplace_back(std::make_unique<QProcess>());
    island->setProcessChannelMode(QProcess::MergedChannels);
    island->setStandardOutputFile(QString::fromStdString(home.trainer_log().string()));
    island->setChildProcessModifier([] { ::prctl(PR_SET_PDEATHSIG, SIGKILL); });
    island->start(QString(ATOLL_BIN_DIR) + "/atoll-trainer",
                  {"run", "--home", QString::fromStdString(home.directory.string())});
    if (!island->waitForStarted()) qFatal("atoll-trainer did not start: %s", qPrintable(island->errorString()));
  }
}

// ---- invites

std::string TourRun::invite(const std::filesystem::path& hub, const Address& address, std::uint32_t uses,
                            std::chrono::seconds valid_for) {
  return require(create_invite(hub, {.addresses = {address}, .uses = uses, .valid_for = valid_for})).text;
}

std::string TourRun::expired_invite() const {
  std::string text = invite(path("hub"), hub_address(), 1, std::chrono::seconds(1));
  while (decode_invite(text, now()).ok()) QThread::msleep(50);
  return text;
}

std::string TourRun::used_invite() const {
  std::string text = good_invite();
  (void)require(enrol(require(decode_invite(text, now())), "somebody", Deadline::after(std::chrono::seconds(60))));
  return text;
}

std::string TourRun::invite_with_another_pin() const {
  Invite invite = require(decode_invite(good_invite(), now()));
  invite.authority_pin = require(decode_invite(invite_of_another_run(), now())).authority_pin;
  return require(encode_invite(invite));
}

std::string TourRun::invite_to_a_hub_that_is_down() const {
  return invite(path("other hub"), {"127.0.0.1", kClosedPort});
}

}  // namespace atl::test
