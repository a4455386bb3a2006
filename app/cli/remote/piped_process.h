// A child process with pipes at its standard input and output, for lines of the control protocol. Found on PATH like
// any command. Killed with its owner. One thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/base/child_process.h"
#include "net/base/deadline.h"
#include "net/base/result.h"
#include "net/base/unique_fd.h"

namespace atl {

struct PipedOptions {
  std::string program;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;  // instead of our values, or beside them
  bool own_errors = false;                         // a pipe for standard error as well; else ours
  bool own_group = false;                          // Ctrl-C in our terminal does not reach it
};

class PipedProcess {
 public:
  static Result<PipedProcess> spawn(const PipedOptions& options);
  PipedProcess(PipedProcess&&) = default;
  PipedProcess& operator=(PipedProcess&&) = delete;

  UniqueFd input;   // its standard input; close to end it
  UniqueFd output;  // its standard output
  UniqueFd errors;  // with own_errors

  std::optional<int> wait(Deadline deadline);  // the exit status, 128 + signal; empty at the deadline
  void send_signal(int signal) { child_.send_signal(signal); }

 private:
  explicit PipedProcess(ChildProcess child) : child_(std::move(child)) {}
  ChildProcess child_;  // last: killed before its pipes close
};

}  // namespace atl
