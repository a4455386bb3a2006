#include "tests/wan/wan_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>

#include "net/base/file.h"

namespace atl::wan {

Result<WanProcess> WanProcess::start(const HostNetwork& host, const std::vector<std::string>& arguments) {
  ATOLL_ASSIGN_OR_RETURN(Pipe input, make_pipe());
  ATOLL_ASSIGN_OR_RETURN(Pipe output, make_pipe());
  const InsideHost inside(host);
  ATOLL_ASSIGN_OR_RETURN(ChildProcess process,
                         ChildProcess::spawn({.program = arguments.front(),
                                              .arguments = {arguments.begin() + 1, arguments.end()},
                                              .input = input.reading.get(),
                                              .output = output.writing.get(),
                                              .group = ChildGroup::kOurs}));
  return WanProcess(std::move(process), std::move(input.writing), std::move(output.reading));
}

Status WanProcess::write_line(const std::string& line) {
  const std::string text = line + "\n";
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::write(input_.get(), text.data() + sent, text.size() - sent);
    if (count <= 0) return errno_error("write to", fmt::format("process {}", pid()));
    sent += static_cast<std::size_t>(count);
  }
  return ok_status();
}

Result<std::string> WanProcess::read_line(Deadline deadline) {
  for (;;) {
    if (const std::size_t end = buffered_.find('\n'); end != std::string::npos) {
      std::string line = buffered_.substr(0, end);
      buffered_.erase(0, end + 1);
      return line;
    }
    pollfd watched{output_.get(), POLLIN, 0};
    if (::poll(&watched, 1, deadline.poll_milliseconds()) == 0) {
      if (deadline.expired()) return Error{ErrorCode::kTimeout, fmt::format("process {} says nothing", pid())};
      continue;
    }
    std::array<char, 4096> text{};
    const ssize_t count = ::read(output_.get(), text.data(), text.size());
    if (count <= 0) return Error{ErrorCode::kPeerLost, fmt::format("process {} closed its output", pid())};
    buffered_.append(text.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace atl::wan
