// Ends child processes without waiting for them. GUI thread.
#pragma once

#include <memory>

#include <QProcess>

namespace atl {

// SIGINT now, SIGTERM after a while, then SIGKILL; the object goes when the process has. Never blocks. The process is
// killed at once where the program itself ends meanwhile.
void let_end(std::unique_ptr<QProcess> process);

// atoll of this machine: $ATOLL_PROGRAM, else beside this program, else by its name from the PATH.
QString atoll_program();

// Before `start`: the child is in a session of its own. No terminal that this program was started from is asked for a
// password, and none of its Ctrl-C gets there.
void detach_from_terminal(QProcess& process);

}  // namespace atl
