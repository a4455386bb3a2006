// Starts and ends processes without waiting for them. GUI thread.
#pragma once

#include <functional>
#include <memory>

#include <QProcess>

namespace atl {

// SIGINT now, SIGTERM after a while, then SIGKILL; the object goes when the process has. Never blocks. The process is
// killed at once where the program itself ends meanwhile.
void let_end(std::unique_ptr<QProcess> process);

// atoll of this machine: $ATOLL_PROGRAM, else beside this program, else by its name from the PATH.
QString atoll_program();

// atoll_program() with these arguments, which outlives this program. Nobody waits until it runs, which on a busy
// machine takes its time. False: there is no such program.
bool leave_atoll_running(const QStringList& arguments);
// The same; what it prints goes to `log`. `started` hears its id, or 0 when it could not be run: once, on this thread,
// never from within this call, and only while `context` (not null) is there. The program runs either way.
void leave_atoll_running(const QStringList& arguments, const QString& log, QObject* context,
                         std::function<void(qint64 pid)> started);

// Before `start`: the child is in a session of its own. No terminal that this program was started from is asked for a
// password, and none of its Ctrl-C gets there.
void detach_from_terminal(QProcess& process);

}  // namespace atl
