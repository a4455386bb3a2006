// A child process with pipes at its standard input and output, for lines of the control protocol. Found on PATH like
// any command. Killed with its owner. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli/unique_child.h"
#include "net/base/deadline.h"
#include "net/base/result.h"
#include "net/base/unique_fd.h"

namespace atl {

struct PipedOptions {
  std::string program;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // added to ours, "NAME=value"
  bool own_errors = false;               // a pipe for standard error as well; else ours
  bool own_group = false;                // Ctrl-C in our terminal does not reach it
};

class PipedProcess {
 public:
  static Result<PipedProcess> spawn(const PipedOptions& options);
  PipedProcess(PipedProcess&&) = default;
  PipedProcess& operator=(PipedProcess&&) = delete;

  UniqueFd input;   // its standard input; close to end it
  UniqueFd output;  // its standard output
  UniqueFd errors;  // with own_errors

  std::optional<int> poll() { return child_.poll(); }  // the exit status, 128 + signal
  std::optional<int> wait(Deadline deadline);
  void send_signal(int signal) { child_.send_signal(signal); }

 private:
  explicit PipedProcess(pid_t pid) : child_(pid) {}
  UniqueChild child_;  // last: killed before its pipes close
};

}  // namespace atl
