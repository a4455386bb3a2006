#include "app/core/child_leash.h"

#include <signal.h>
#include <unistd.h>

#include <QCoreApplication>
#include <QFileInfo>
#include <QPointer>
#include <QStandardPaths>
#include <QThreadPool>
#include <QTimer>
#include <chrono>

namespace atl {
namespace {

constexpr std::chrono::seconds kInterruptTime{10}, kTerminateTime{5};

}  // namespace

void let_end(std::unique_ptr<QProcess> owned) {
  if (!owned) return;
  owned->disconnect();
  if (owned->state() == QProcess::NotRunning) return owned.release()->deleteLater();
  QProcess* process = owned.release();
  process->setParent(QCoreApplication::instance());  // ~QProcess kills
  process->closeWriteChannel();
  QObject::connect(process, &QProcess::finished, process, &QObject::deleteLater);
  QObject::connect(process, &QProcess::errorOccurred, process, [process](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) process->deleteLater();
  });
  if (process->processId() > 0) ::kill(static_cast<pid_t>(process->processId()), SIGINT);
  QTimer::singleShot(kInterruptTime, process, &QProcess::terminate);
  QTimer::singleShot(kInterruptTime + kTerminateTime, process, &QProcess::kill);
}

QString atoll_program() {
  const QString chosen = qEnvironmentVariable("ATOLL_PROGRAM");
  if (!chosen.isEmpty()) return chosen;
  const QString beside = QCoreApplication::applicationDirPath() + "/atoll";
  return QFileInfo(beside).isExecutable() ? beside : QStringLiteral("atoll");
}

bool start_atoll_detached(const QStringList& arguments, const QString& log, qint64* pid) {
  QProcess process;
  process.setProgram(atoll_program());
  process.setArguments(arguments);
  process.setStandardInputFile(QProcess::nullDevice());
  const QString output = log.isEmpty() ? QProcess::nullDevice() : log;
  process.setStandardOutputFile(output, QIODevice::Append);
  process.setStandardErrorFile(output, QIODevice::Append);
  return process.startDetached(pid);
}

bool leave_atoll_running(const QStringList& arguments) {
  if (QStandardPaths::findExecutable(atoll_program()).isEmpty()) return false;
  // Should it fail for another reason: nobody answers, which is told.
  QThreadPool::globalInstance()->start([arguments] { (void)start_atoll_detached(arguments); });
  return true;
}

void detach_from_terminal(QProcess& process) {
  process.setChildProcessModifier([] { ::setsid(); });
}

}  // namespace atl
