#include "app/cli/remote/stdio_bridge.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>

#include "app/cli/remote/piped_process.h"
#include "net/base/encoding.h"
#include "net/base/file.h"
#include "net/control/control_server.h"
#include "net/control/json_rpc.h"
#include "net/control/unix_socket.h"

namespace atl {
namespace {

constexpr std::size_t kMaxArguments = 256, kMaxArgumentBytes = 64 * 1024;
constexpr std::chrono::seconds kConnectTime{5}, kCommandEndTime{10};

Result<std::vector<std::string>> read_arguments(const nlohmann::json& params) {
  const auto list = params.find("arguments");
  std::vector<std::string> arguments;
  std::size_t bytes = 0;
  const Error wrong{ErrorCode::kInvalidArgument, "command.run needs {\"arguments\": [TEXT, ...]}, of bounded size"};
  if (list == params.end() || !list->is_array() || list->empty() || list->size() > kMaxArguments) return wrong;
  for (const nlohmann::json& argument : *list) {
    if (!argument.is_string()) return wrong;
    arguments.push_back(argument.get<std::string>());
    bytes += arguments.back().size();
    if (arguments.back().find('\0') != std::string::npos || bytes > kMaxArgumentBytes) return wrong;
  }
  if (arguments[0] == "control" || arguments[0].starts_with("--host")) {
    return Error{ErrorCode::kInvalidArgument, "that command does not run by way of another machine"};
  }
  return arguments;
}

// How the person's terminal is, for a command that has none.
std::string terminal_of(const nlohmann::json& params) {
  const auto flag = [&](const char* key) { return params.value(key, nlohmann::json()) == true ? 1 : 0; };
  const nlohmann::json columns = params.value("columns", nlohmann::json());
  const int width = columns.is_number_unsigned() ? std::min<int>(columns.get<std::uint16_t>(), 1000) : 80;
  return fmt::format("{}:{}:{}:{}", flag("terminal"), std::max(width, 20), flag("color"), flag("unicode"));
}

class Bridge {
 public:
  Bridge(const StdioBridgeOptions& options, const AbortSignal& interrupt) : options_(options), interrupt_(interrupt) {}

  Status serve() {
    while (!closed_ && !interrupt_.raised()) {
      std::array<pollfd, 5> waits = {pollfd{options_.input, POLLIN, 0}, pollfd{interrupt_.fd(), POLLIN, 0},
                                     pollfd{agent_.get(), POLLIN, 0},
                                     pollfd{command_ ? command_->output.get() : -1, POLLIN, 0},
                                     pollfd{command_ ? command_->errors.get() : -1, POLLIN, 0}};
      ::poll(waits.data(), waits.size(), 1000);
      if (waits[0].revents != 0) read_requests();
      if (waits[2].revents != 0) read_agent();
      if (waits[3].revents != 0) read_command(command_->output, "out");
      if (command_ && waits[4].revents != 0) read_command(command_->errors, "err");
      look_at_command();
    }
    end_command();
    return lost_ ? Status(*lost_) : ok_status();
  }

 private:
  void send(std::string_view line) {
    while (!line.empty()) {
      const ssize_t count = ::write(options_.output, line.data(), line.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        if (errno != EPIPE) lost_ = errno_error("write to", "standard output");  // else the other side has gone
        closed_ = true;
        return;
      }
      line.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  void read_requests() {
    char buffer[16 * 1024];
    const ssize_t count = ::read(options_.input, buffer, sizeof buffer);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) {
      closed_ = true;
      return;
    }
    input_.append(buffer, static_cast<std::size_t>(count));
    for (std::size_t end; (end = input_.find('\n')) != std::string::npos; input_.erase(0, end + 1)) {
      answer(input_.substr(0, end));
    }
    if (input_.size() > kMaxControlLineBytes) {
      send(encode_response(nullptr, Error{ErrorCode::kProtocol, "a line that is too long"}));
      closed_ = true;
    }
  }

  void answer(const std::string& line) {
    const auto request = decode_request(line);
    if (!request.ok()) {
      send(encode_response(nullptr, request.error()));
      closed_ = true;
    } else if (request->method == "hello") {
      send(encode_response(request->id, nlohmann::json{{"version", kControlVersion}, {"program", "atoll control"}}));
    } else if (request->method == "command.run") {
      const Status started = start_command(*request);
      if (!started.ok()) send(encode_response(request->id, started.error()));
    } else if (request->method == "command.interrupt") {
      if (command_) command_->send_signal(SIGINT);
      send(encode_response(request->id, nlohmann::json::object()));
    } else {
      const Status passed = pass_on(line + "\n");
      if (!passed.ok()) send(encode_response(request->id, passed.error()));
    }
  }

  // ---- the command

  Status start_command(const RpcRequest& request) {
    if (command_) return Error{ErrorCode::kPermissionDenied, "a command is running already"};
    ATOLL_ASSIGN_OR_RETURN(auto arguments, read_arguments(request.params));
    const nlohmann::json text = request.params.value("input", nlohmann::json(""));
    if (!text.is_string()) return Error{ErrorCode::kInvalidArgument, "\"input\" must be a string"};
    ATOLL_ASSIGN_OR_RETURN(const Bytes input, base64url_decode(text.get<std::string>()));
    if (input.size() > kMaxArgumentBytes) return Error{ErrorCode::kInvalidArgument, "\"input\" is too long"};
    ATOLL_ASSIGN_OR_RETURN(PipedProcess process,
                           PipedProcess::spawn({.program = options_.program.string(),
                                                .arguments = std::move(arguments),
                                                .environment = {{"ATOLL_TERMINAL", terminal_of(request.params)}},
                                                .own_errors = true,
                                                .own_group = true}));
    // A pipe holds kMaxArgumentBytes.
    if (::write(process.input.get(), input.data(), input.size()) < 0) return errno_error("write to", options_.program);
    process.input.reset();
    command_ = std::make_unique<PipedProcess>(std::move(process));
    command_id_ = request.id;
    return ok_status();
  }

  void read_command(UniqueFd& pipe, const char* stream) {
    std::byte buffer[32 * 1024];
    const ssize_t count = ::read(pipe.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) return;
    if (count <= 0) {
      pipe.reset();
      return;
    }
    const std::string text = base64url_encode(ByteView(buffer, static_cast<std::size_t>(count)));
    send(encode_event({{"event", "command.output"}, {"data", {{"stream", stream}, {"bytes", text}}}}));
  }

  // What it has printed comes before its exit code.
  void look_at_command() {
    if (!command_ || command_->output || command_->errors) return;
    const auto code = command_->wait(Deadline::after(kCommandEndTime));
    if (!code) command_->send_signal(SIGKILL);  // it has closed its output and does not end
    send(encode_response(command_id_, nlohmann::json{{"exit_code", code.value_or(128 + SIGKILL)}}));
    command_.reset();
  }

  void end_command() {
    if (!command_) return;
    command_->send_signal(SIGINT);
    if (!command_->wait(Deadline::after(kCommandEndTime))) command_->send_signal(SIGTERM);
    (void)command_->wait(Deadline::after(kCommandEndTime));
    command_.reset();
  }

  // ---- the agent

  Status pass_on(std::string_view line) {
    if (!agent_) {
      auto agent = connect_unix(options_.agent_socket, Deadline::after(kConnectTime));
      if (!agent.ok() && agent.error().code == ErrorCode::kNotRunning) {
        return Error{ErrorCode::kNotRunning, "no agent is running on that machine; start one there with: atoll join"};
      }
      if (!agent.ok()) return agent.error();
      agent_ = std::move(*agent);
    }
    const Deadline deadline = Deadline::after(kConnectTime);
    while (!line.empty()) {
      const ssize_t count = ::send(agent_.get(), line.data(), line.size(), MSG_NOSIGNAL);
      if (count >= 0) {
        line.remove_prefix(static_cast<std::size_t>(count));
        continue;
      }
      pollfd writable{agent_.get(), POLLOUT, 0};
      const bool again = errno == EINTR || (errno == EAGAIN && !deadline.expired());
      if (!again) return Error{ErrorCode::kPeerLost, "the agent does not read"};
      ::poll(&writable, 1, deadline.poll_milliseconds());
    }
    return ok_status();
  }

  void read_agent() {
    char buffer[32 * 1024];
    const ssize_t count = ::recv(agent_.get(), buffer, sizeof buffer, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) {
      agent_.reset();  // the next call connects again
      agent_input_.clear();
      send(encode_event({{"event", "agent.gone"}, {"data", nlohmann::json::object()}}));
      return;
    }
    // Whole lines, so that they do not mix with ours.
    agent_input_.append(buffer, static_cast<std::size_t>(count));
    const auto end = agent_input_.rfind('\n');
    if (end == std::string::npos) {
      if (agent_input_.size() > 2 * kMaxControlLineBytes) agent_.reset();
      return;
    }
    send(std::string_view(agent_input_).substr(0, end + 1));
    agent_input_.erase(0, end + 1);
  }

  const StdioBridgeOptions& options_;
  const AbortSignal& interrupt_;
  std::string input_, agent_input_;
  UniqueFd agent_;
  std::unique_ptr<PipedProcess> command_;
  nlohmann::json command_id_;
  bool closed_ = false;
  std::optional<Error> lost_;
};

}  // namespace

Status serve_stdio(const StdioBridgeOptions& options, const AbortSignal& interrupt) {
  return Bridge(options, interrupt).serve();
}

}  // namespace atl
