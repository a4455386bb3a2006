// `atoll` of this build, run as a person runs it: a process of its own. One thread.
#pragma once

#include <QtCore/QProcess>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace atl::test {

struct ProgramOutcome {
  int exit_code = -1;  // 128 + signal when one ended it
  std::string out, err;
};

// `in_child` is called between fork and exec. Aborts the test program when it cannot be started.
std::unique_ptr<QProcess> start_atoll(const std::vector<std::string>& arguments, const QProcessEnvironment& environment,
                                      const std::function<void()>& in_child = {});
// Closes its standard input and waits for its end; one that hangs is killed.
ProgramOutcome outcome_of(QProcess& process);

}  // namespace atl::test
