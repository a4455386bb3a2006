#include "app/core/child_leash.h"

#include <signal.h>
#include <unistd.h>

#include <QCoreApplication>
#include <QFileInfo>
#include <QFutureWatcher>
#include <QPromise>
#include <QStandardPaths>
#include <QThreadPool>
#include <QTimer>
#include <chrono>

namespace atl {
namespace {

constexpr std::chrono::seconds kInterruptTime{10}, kTerminateTime{5};

// Waits until it runs. Its id; 0: it cannot be run.
qint64 start_detached(const QString& program, const QStringList& arguments, const QString& output) {
  QProcess process;
  process.setProgram(program);
  process.setArguments(arguments);
  process.setStandardInputFile(QProcess::nullDevice());
  process.setStandardOutputFile(output, QIODevice::Append);
  process.setStandardErrorFile(output, QIODevice::Append);
  qint64 pid = 0;
  return process.startDetached(&pid) ? pid : 0;
}

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
  QString chosen = qEnvironmentVariable("ATOLL_PROGRAM");
  if (!chosen.isEmpty()) return chosen;
  const QString beside = QCoreApplication::applicationDirPath() + "/atoll";
  return QFileInfo(beside).isExecutable() ? beside : QStringLiteral("atoll");
}

bool leave_atoll_running(const QStringList& arguments) {
  const QString program = atoll_program();
  if (QStandardPaths::findExecutable(program).isEmpty()) return false;
  // Should it fail for another reason: nobody answers, which is told.
  QThreadPool::globalInstance()->start([=] { (void)start_detached(program, arguments, QProcess::nullDevice()); });
  return true;
}

void leave_atoll_running(const QStringList& arguments, const QString& log, QObject* context,
                         std::function<void(qint64 pid)> started) {
  // A watcher hears of it on its own thread, and may go at any time: the pool's thread never touches `context`.
  using Watcher = QFutureWatcher<qint64>;
  auto* watcher = new Watcher(context);
  QObject::connect(watcher, &Watcher::finished, context, [watcher, started = std::move(started)] {
    watcher->deleteLater();
    started(watcher->result());
  });
  const auto promise = std::make_shared<QPromise<qint64>>();
  promise->start();
  watcher->setFuture(promise->future());
  QThreadPool::globalInstance()->start([promise, program = atoll_program(), arguments, log] {
    promise->addResult(start_detached(program, arguments, log));
    promise->finish();
  });
}

void detach_from_terminal(QProcess& process) {
  process.setChildProcessModifier([] { ::setsid(); });
}

}  // namespace atl
