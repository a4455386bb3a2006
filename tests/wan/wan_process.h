// A program inside one host of the emulation, spoken to in lines over its stdin and stdout. It dies with the thread
// that started it, however that ends, and is killed and reaped by the destructor. One thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "net/base/deadline.h"
#include "net/base/result.h"
#include "net/base/unique_fd.h"
#include "tests/wan/host_network.h"

namespace atl::wan {

class WanProcess {
 public:
  // arguments[0]: the program, looked up in PATH. stderr is ours.
  static Result<WanProcess> start(const HostNetwork& host, const std::vector<std::string>& arguments);
  WanProcess(WanProcess&& other) noexcept;
  WanProcess& operator=(WanProcess&&) = delete;
  ~WanProcess();

  pid_t pid() const { return pid_; }
  Status write_line(const std::string& line);
  // Without its end. kPeerLost when the program has closed its output.
  Result<std::string> read_line(Deadline deadline);
  void send_signal(int signal);
  // The exit status, 128 + signal when one ended it.
  Result<int> wait(Deadline deadline);

 private:
  WanProcess(pid_t pid, UniqueFd input, UniqueFd output)
      : pid_(pid), input_(std::move(input)), output_(std::move(output)) {}

  pid_t pid_ = -1;
  int exit_ = -1;
  UniqueFd input_;
  UniqueFd output_;
  std::string buffered_;
};

}  // namespace atl::wan
