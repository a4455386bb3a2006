// A program inside one host of the emulation, spoken to in lines over its stdin and stdout. It dies with the thread
// that started it, however that ends, and is killed and reaped by the destructor. One thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "net/base/child_process.h"
#include "net/base/deadline.h"
#include "net/base/result.h"
#include "net/base/unique_fd.h"
#include "tests/wan/host_network.h"

namespace atl::wan {

class WanProcess {
 public:
  // arguments[0]: the program, looked up in PATH. stderr is ours.
  static Result<WanProcess> start(const HostNetwork& host, const std::vector<std::string>& arguments);

  pid_t pid() const { return process_.pid(); }
  Status write_line(const std::string& line);
  // Without its end. kPeerLost when the program has closed its output.
  Result<std::string> read_line(Deadline deadline);
  void send_signal(int signal) { process_.send_signal(signal); }
  // The exit status, 128 + signal when one ended it.
  Result<int> wait(Deadline deadline) { return process_.wait(deadline); }

 private:
  WanProcess(ChildProcess process, UniqueFd input, UniqueFd output)
      : process_(std::move(process)), input_(std::move(input)), output_(std::move(output)) {}

  ChildProcess process_;
  UniqueFd input_;
  UniqueFd output_;
  std::string buffered_;
};

}  // namespace atl::wan
