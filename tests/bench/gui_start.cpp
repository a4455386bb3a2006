// How long atoll-gui takes from its start to its first painted window: median of some starts, beside the limit of
// 500 ms; first without an agent, then with one that has joined nothing. Qt's own log tells when pixels are handed to
// the display. Wall time of a busy machine says little: the processor time until then is printed beside it.
//
//   xvfb-run -a gui_start [starts]
//   QT_QPA_PLATFORM=offscreen gui_start [starts]
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <QProcess>
#include <QTemporaryDir>

#include "net/base/deadline.h"

namespace {

using atl::Clock;
using atl::Seconds;

constexpr double kLimitMs = 500;
constexpr int kPatienceMs = 20'000;
constexpr const char* kPainted = "Flushing";

struct Start {
  double wall_ms = 0, cpu_ms = 0;
};

double cpu_ms_of(pid_t pid) {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return 1e3 * static_cast<double>(used.tv_sec) + 1e-6 * static_cast<double>(used.tv_nsec);
}

QProcessEnvironment environment_in(const QString& home) {
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  for (const char* name : {"HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"}) {
    environment.insert(name, home);
  }
  environment.insert("QT_LOGGING_RULES", "qt.widgets.painting=true");
  environment.insert("QT_FORCE_STDERR_LOGGING", "1");
  return environment;
}

std::optional<Start> start_once(const QStringList& arguments, const QString& home) {
  QProcess program;
  program.setProgram(ATOLL_BIN_DIR "/atoll-gui");
  program.setArguments(arguments);
  program.setProcessEnvironment(environment_in(home));
  program.setStandardOutputFile(QProcess::nullDevice());
  program.setReadChannel(QProcess::StandardError);
  const auto begin = Clock::now();
  program.start();
  QByteArray said;
  std::optional<Start> measured;
  while (!measured && program.waitForReadyRead(kPatienceMs)) {
    said += program.readAllStandardError();
    if (!said.contains(kPainted)) continue;
    measured = Start{.wall_ms = 1e3 * Seconds(Clock::now() - begin).count(),
                     .cpu_ms = cpu_ms_of(static_cast<pid_t>(program.processId()))};
  }
  if (!measured) fmt::print(stderr, "atoll-gui painted nothing: {}\n", said.toStdString());
  program.kill();
  program.waitForFinished();
  return measured;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

bool measure(const char* what, int starts, const QStringList& arguments, const QString& home) {
  std::vector<double> wall, cpu;
  for (int i = 0; i < starts; ++i) {
    const auto start = start_once(arguments, home);
    if (!start) return false;
    wall.push_back(start->wall_ms);
    cpu.push_back(start->cpu_ms);
  }
  const double middle = median(wall);
  fmt::print(
      "{:<14} median {:>6.0f} ms, best {:>6.0f}, worst {:>6.0f}; processor {:>6.0f} ms; {:.2f} of the limit of "
      "{:.0f} ms\n",
      what, middle, *std::ranges::min_element(wall), *std::ranges::max_element(wall), median(cpu), middle / kLimitMs,
      kLimitMs);
  return middle < kLimitMs;
}

}  // namespace

int main(int argc, char** argv) {
  const int starts = argc > 1 ? std::max(1, std::atoi(argv[1])) : 10;
  const QTemporaryDir home;
  const QString agent_home = home.filePath("agent");
  bool good = measure("without agent", starts, {"--home", agent_home}, home.path());

  QProcess agent;
  agent.setProcessEnvironment(environment_in(home.path()));
  agent.setStandardOutputFile(QProcess::nullDevice());
  agent.setStandardErrorFile(QProcess::nullDevice());
  agent.start(ATOLL_BIN_DIR "/atoll", {"agent", "--home", agent_home});
  const std::filesystem::path socket = (agent_home + "/agent.sock").toStdString();
  for (int i = 0; i < 1000 && !std::filesystem::exists(socket); ++i) ::usleep(10'000);
  good = measure("with an agent", starts, {"--home", agent_home}, home.path()) && good;
  agent.terminate();
  agent.waitForFinished();
  return good ? 0 : 1;
}
