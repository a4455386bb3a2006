#include "tests/process/program.h"

#include <sys/prctl.h>

#include <csignal>

namespace atl::test {
namespace {

constexpr int kLimitMilliseconds = 120'000;  // a hang, not a slow machine

}  // namespace

std::unique_ptr<QProcess> start_atoll(const std::vector<std::string>& arguments, const QProcessEnvironment& environment,
                                      const std::function<void()>& in_child) {
  auto process = std::make_unique<QProcess>();
  process->setProcessEnvironment(environment);
  process->setChildProcessModifier([in_child] {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // a test that aborts leaves nothing running
    if (in_child) in_child();
  });
  QStringList list;
  for (const std::string& argument : arguments) list << QString::fromStdString(argument);
  process->start(QString(ATOLL_BIN_DIR) + "/atoll", list);
  if (!process->waitForStarted()) qFatal("atoll did not start: %s", qPrintable(process->errorString()));
  return process;
}

ProgramOutcome outcome_of(QProcess& process) {
  process.closeWriteChannel();
  if (!process.waitForFinished(kLimitMilliseconds)) {
    process.kill();
    process.waitForFinished();
  }
  // Of a process that a signal ended, Qt's exit code is the signal.
  const bool by_signal = process.exitStatus() == QProcess::CrashExit;
  return {(by_signal ? 128 : 0) + process.exitCode(), process.readAllStandardOutput().toStdString(),
          process.readAllStandardError().toStdString()};
}

}  // namespace atl::test
