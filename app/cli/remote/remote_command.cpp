#include "app/cli/remote/remote_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "app/cli/join_consent.h"
#include "app/cli/remote/piped_process.h"
#include "net/base/encoding.h"
#include "net/base/file.h"
#include "net/control/control_server.h"
#include "net/control/json_rpc.h"
#include "net/control/ssh_host.h"
#include "net/wire/invite.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kEndTime{10};  // what the other side has to end after Ctrl-C, before ssh is ended
constexpr int kSshFailed = 255, kNoSuchProgram = 127;

bool is_invite(const std::string& argument) {
  return argument.starts_with("atoll1.") || argument.starts_with("atoll:");
}

// An invite is a secret: by standard input, not in the other machine's list of processes. Files are of this machine.
Result<std::string> take_invite(std::vector<std::string>& arguments, Console& console, const AbortSignal& interrupt) {
  std::string input;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (is_invite(arguments[i])) {
      input = std::exchange(arguments[i], "--invite-stdin");
    } else if (arguments[i] == "--invite-file" && i + 1 < arguments.size()) {
      ATOLL_ASSIGN_OR_RETURN(input, read_file(arguments[i + 1], kMaxInviteText));
      arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      arguments[i] = "--invite-stdin";
    } else if (arguments[i] == "--invite-stdin") {
      ATOLL_ASSIGN_OR_RETURN(input, read_pasted_invite(console, interrupt));
    }
  }
  return input;
}

class RemoteRun {
 public:
  RemoteRun(PipedProcess ssh, Console& console, const AbortSignal& interrupt)
      : ssh_(std::move(ssh)), console_(console), interrupt_(interrupt) {
    ::fcntl(ssh_.output.get(), F_SETFL, O_NONBLOCK);
  }

  Result<int> run(const std::vector<std::string>& arguments, const std::string& input) {
    const nlohmann::json params = {{"arguments", arguments},
                                   {"input", base64url_encode(as_bytes(std::string_view(input)))},
                                   {"terminal", console_.out_is_terminal},
                                   {"columns", console_.columns},
                                   {"color", console_.color},
                                   {"unicode", console_.unicode}};
    send(encode_request(1, "hello", nlohmann::json::object()));
    send(encode_request(2, "command.run", params));
    std::optional<Deadline> end_by;
    while (!exit_code_ && !error_) {
      if (interrupt_.raised() && !end_by) {
        end_by = Deadline::after(kEndTime);
        send(encode_request(3, "command.interrupt", nlohmann::json::object()));
      }
      if (end_by && end_by->expired()) return Error{ErrorCode::kAborted, interrupt_.reason()};
      if (!receive(end_by)) break;
    }
    if (error_) return *error_;
    if (exit_code_) return *exit_code_;
    return lost();
  }

 private:
  void send(std::string_view text) {
    // What does not arrive shows as an end of its output.
    while (!text.empty()) {
      const ssize_t count = ::write(ssh_.input.get(), text.data(), text.size());
      if (count <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  // False at the end of what the other side says.
  bool receive(const std::optional<Deadline>& end_by) {
    pollfd waits[] = {{ssh_.output.get(), POLLIN, 0}, {end_by ? -1 : interrupt_.fd(), POLLIN, 0}};
    if (::poll(waits, 2, end_by ? end_by->poll_milliseconds() : 1000) <= 0 || waits[0].revents == 0) return true;
    char buffer[32 * 1024];
    const ssize_t count = ::read(ssh_.output.get(), buffer, sizeof buffer);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    if (count == 0) return false;
    input_.append(buffer, static_cast<std::size_t>(count));
    for (std::size_t end; !error_ && (end = input_.find('\n')) != std::string::npos; input_.erase(0, end + 1)) {
      take(std::string_view(input_).substr(0, end));
    }
    if (input_.size() > kMaxControlLineBytes)
      error_ = Error{ErrorCode::kProtocol, "the other side sent a line that is too long"};
    return true;
  }

  void take(std::string_view line) {
    auto reply = decode_reply(line);
    if (!reply.ok()) {
      // A login script that prints is no part of the protocol; before the other side has said hello, it may.
      if (greeted_) error_ = reply.error().with_context("the other side");
      return;
    }
    if (const auto* event = std::get_if<RpcEvent>(&*reply)) {
      take_output(event->params);
      return;
    }
    const auto& response = std::get<RpcResponse>(*reply);
    if (!response.result.ok()) {
      if (response.id != 3) error_ = response.result.error();
      return;
    }
    if (response.id == 1) take_hello(*response.result);
    if (response.id == 2) exit_code_ = response.result->value("exit_code", static_cast<int>(kExitOther));
  }

  void take_hello(const nlohmann::json& hello) {
    greeted_ = true;
    if (hello.value("version", 0) == kControlVersion) return;
    error_ = Error{ErrorCode::kVersionUnsupported,
                   "the other machine's Atoll speaks another version of the control protocol; install the same there"};
  }

  void take_output(const nlohmann::json& event) {
    if (event.value("event", "") != "command.output" || !event.contains("data")) return;
    const auto bytes = base64url_decode(event["data"].value("bytes", ""));
    if (!bytes.ok()) return;
    (event["data"].value("stream", "") == "err" ? console_.err : console_.out) << to_string(*bytes) << std::flush;
  }

  Error lost() {
    ssh_.input.reset();
    const int status = ssh_.wait(Deadline::after(kEndTime)).value_or(kSshFailed);
    if (status == kNoSuchProgram) {
      return Error{ErrorCode::kNotFound, "there is no 'atoll' on the other machine's PATH; install it there"};
    }
    if (status == kSshFailed && !greeted_) {
      return Error{ErrorCode::kUnreachable,
                   "ssh could not reach the other machine (it says why above); try: ssh HOST true"};
    }
    return Error{ErrorCode::kPeerLost, "the connection to the other machine broke; what ran there was interrupted"};
  }

  PipedProcess ssh_;
  Console& console_;
  const AbortSignal& interrupt_;
  std::string input_;
  bool greeted_ = false;
  std::optional<int> exit_code_;
  std::optional<Error> error_;
};

Result<int> run_over_ssh(const std::string& host, std::vector<std::string>& arguments, Console& console,
                         const AbortSignal& interrupt) {
  ATOLL_ASSIGN_OR_RETURN(const SshHost parsed, parse_ssh_host(host));
  ATOLL_ASSIGN_OR_RETURN(const std::string input, take_invite(arguments, console, interrupt));
  ATOLL_ASSIGN_OR_RETURN(
      PipedProcess ssh, PipedProcess::spawn({.program = "ssh", .arguments = ssh_arguments(parsed), .environment = {}}));
  return RemoteRun(std::move(ssh), console, interrupt).run(arguments, input);
}

}  // namespace

std::optional<std::string> take_host(std::vector<std::string>& arguments) {
  if (arguments.empty() || !arguments[0].starts_with("--host")) return std::nullopt;
  std::string host;
  if (arguments[0].starts_with("--host=")) {
    host = arguments[0].substr(7);
  } else if (arguments[0] == "--host") {
    if (arguments.size() > 1) host = arguments[1];
    arguments.erase(arguments.begin(), arguments.begin() + (arguments.size() > 1 ? 1 : 0));
  } else {
    return std::nullopt;
  }
  arguments.erase(arguments.begin());
  return host;
}

int run_remotely(const std::string& host, std::vector<std::string> arguments, Console& console,
                 const AbortSignal& interrupt) {
  const auto code = run_over_ssh(host, arguments, console, interrupt);
  if (code.ok()) return *code;
  CommandContext context{console, interrupt};
  context.finish(code.error());
  return context.exit_code;
}

}  // namespace atl
