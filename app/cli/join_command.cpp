// atoll join: enrol with an invite, or come back to the run joined before; then train in the foreground.
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstring>

#include "app/cli/child_process.h"
#include "app/cli/command.h"
#include "app/cli/console_input.h"
#include "app/cli/join_check.h"
#include "app/cli/join_progress.h"
#include "app/cli/text.h"
#include "app/cli/validators.h"
#include "net/base/file.h"
#include "net/control/home.h"
#include "net/enrol/client.h"
#include "net/wire/invite.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kEnrolTime{30};
// A trainer that was asked to end finishes what it is writing.
constexpr std::chrono::seconds kTrainerEndTime{20};
constexpr std::chrono::milliseconds kLook{250};  // at the trainer, for a finished round

struct Join {
  std::string invite, invite_file;
  bool invite_stdin = false;
  bool yes = false;
  std::string home, name, listen, advertise;
  int local_ranks = 0, threads = 0;
};

std::chrono::sys_seconds now() {
  return std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
}

std::string host_name() {
  char name[65] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "island";
}

// From a pipe all that comes. At a terminal until the invite is whole (mail programs wrap it over lines), or until an
// empty line.
Result<std::string> read_pasted_invite(CommandContext& context) {
  const bool terminal = input_is_terminal();
  if (terminal) context.console.err << "Paste the invite, then Enter:" << std::endl;
  std::string text;
  while (text.size() <= kMaxInviteText) {
    ATOLL_ASSIGN_OR_RETURN(const std::string more, read_input(context.interrupt));
    if (more.empty()) break;
    text += more;
    if (!terminal) continue;
    const auto invite = decode_invite(text, now());
    if (invite.ok() || invite.error().code != ErrorCode::kInviteMalformed || more == "\n") break;
  }
  return text;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

// The invite, or nothing when none was given: the run joined before.
Result<std::optional<Invite>> read_invite(const Join& command, CommandContext& context) {
  std::string text = command.invite;
  if (!command.invite_file.empty()) {
    ATOLL_ASSIGN_OR_RETURN(text, read_file(command.invite_file, kMaxInviteText));
    if (is_blank(text)) {
      return Error{ErrorCode::kInviteMalformed,
                   fmt::format("{} is empty; write the invite into it", command.invite_file)};
    }
  } else if (command.invite_stdin) {
    ATOLL_ASSIGN_OR_RETURN(text, read_pasted_invite(context));
    if (is_blank(text)) return Error{ErrorCode::kInviteMalformed, "there is no invite on standard input"};
  }
  if (text.empty()) return std::optional<Invite>();
  ATOLL_ASSIGN_OR_RETURN(Invite invite, decode_invite(text, now()));
  return std::optional<Invite>(std::move(invite));
}

bool may_ask(const Join& command, const CommandContext& context) {
  return !command.yes && !command.invite_stdin && input_is_terminal() && context.console.out_is_terminal;
}

// Joining is consent: a person at a terminal is asked, a script says --yes or has no terminal to be asked on.
Status ask_consent(const Join& command, const Invite& invite, CommandContext& context) {
  if (!may_ask(command, context)) return ok_status();
  context.console.out
      << fmt::format(
             "Join run {} at {}?\n"
             "This machine will compute for it until you stop it. It sends what its copy of the model learned\n"
             "to the run's other islands, and lets them connect to it; nothing else leaves the machine.\n"
             "Join? [y/N] ",
             invite.run_name, to_string(invite.hub.front()))
      << std::flush;
  ATOLL_ASSIGN_OR_RETURN(const std::string answer, read_input(context.interrupt));
  if (answer == "y\n" || answer == "Y\n" || answer == "yes\n") return ok_status();
  return Error{ErrorCode::kAborted, "not joined, as you said"};
}

// Before it is written down for good: another program may listen there.
Status check_free(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (failure != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("cannot listen on {}: {}", to_string(address), ::gai_strerror(failure))};
  }
  const UniqueFd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int reuse = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
  const bool bound = ::bind(socket.get(), found->ai_addr, found->ai_addrlen) == 0;
  const int reason = errno;
  ::freeaddrinfo(found);
  if (bound) return ok_status();
  return Error{ErrorCode::kPermissionDenied,
               fmt::format("cannot listen on {}: {}; choose another with --listen HOST:PORT (port 0: any free one)",
                           to_string(address), std::strerror(reason))};
}

// What the flags change in what was joined before.
Status apply_flags(const Join& command, JoinFile& join) {
  if (!command.name.empty()) join.display_name = command.name;
  if (!command.listen.empty()) {
    ATOLL_ASSIGN_OR_RETURN(join.bind, parse_address(command.listen));
    ATOLL_RETURN_IF_ERROR(check_free(join.bind));
  }
  if (!command.advertise.empty()) join.advertised_host = command.advertise;
  if (command.local_ranks > 0) join.local_ranks = command.local_ranks;
  if (command.threads > 0) join.threads = command.threads;
  if (join.display_name.size() <= 64) return ok_status();
  return Error{ErrorCode::kInvalidArgument, "--name is longer than 64 bytes"};
}

Result<JoinFile> enrol_with(const Join& command, const Invite& invite, const IslandHome& home, JoinCheck& check,
                            CommandContext& context) {
  JoinFile join;
  join.run_id = invite.run_id;
  join.run_name = invite.run_name;
  join.display_name = host_name();
  ATOLL_RETURN_IF_ERROR(apply_flags(command, join));
  ATOLL_RETURN_IF_ERROR(ask_consent(command, invite, context));
  ATOLL_RETURN_IF_ERROR(check.run());
  // The disk first: a use of the invite is not to be lost because a directory cannot be made.
  ATOLL_RETURN_IF_ERROR(make_directories(home.directory, FileMode::kPrivate));
  ATOLL_ASSIGN_OR_RETURN(Enrolment enrolment,
                         enrol(invite, join.display_name, Deadline::after(kEnrolTime), &context.interrupt));
  join.hub_addresses = enrolment.hub;
  ATOLL_RETURN_IF_ERROR(save_identity(home.identity(), enrolment.identity));
  ATOLL_RETURN_IF_ERROR(save_join_file(home.join_file(), join));
  context.console.out << fmt::format("joined run {} as {} ({})", join.run_name, join.display_name,
                                     enrolment.identity.name.value)
                      << std::endl;
  return join;
}

Result<JoinFile> join_or_resume(const Join& command, const IslandHome& home, JoinCheck& check,
                                CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const std::optional<Invite> invite, read_invite(command, context));
  auto before = load_join_file(home.join_file());
  if (!before.ok() && before.error().code != ErrorCode::kNotJoined) return before.error();
  if (!before.ok() && !invite) {
    return Error{ErrorCode::kNotJoined,
                 fmt::format("{} has joined no run; get an invite from the run's operator (who runs 'atoll "
                             "hub invite') and give it with --invite-stdin or --invite-file",
                             home.directory.string())};
  }
  if (!before.ok()) return enrol_with(command, *invite, home, check, context);
  if (invite && invite->run_id != before->run_id) {
    return Error{
        ErrorCode::kInviteOtherRun,
        fmt::format("{} belongs to run {} already, the invite is for run {}; join that one from another directory with "
                    "--home DIR",
                    home.directory.string(), before->run_name, invite->run_name)};
  }
  ATOLL_RETURN_IF_ERROR(load_identity(home.identity()));
  ATOLL_RETURN_IF_ERROR(apply_flags(command, *before));
  ATOLL_RETURN_IF_ERROR(save_join_file(home.join_file(), *before));
  context.console.out << fmt::format("back to run {} as {}{}", before->run_name, before->display_name,
                                     invite ? " (joined before; the invite was not used)" : "")
                      << std::endl;
  return before;
}

// The trainer's exit codes are ours, but what is its fault alone.
ErrorCode cause_of(int trainer_exit) {
  switch (trainer_exit) {
    case kExitDenied: return ErrorCode::kPermissionDenied;
    case kExitPinMismatch: return ErrorCode::kPinMismatch;
    case kExitHubUnreachable: return ErrorCode::kUnreachable;
    case kExitVersion: return ErrorCode::kVersionUnsupported;
    case kExitTimeout: return ErrorCode::kTimeout;
    default: return ErrorCode::kTrainerFailed;
  }
}

// What the trainer has written so far; false at the end of the pipe.
bool drain(int pipe, JoinProgress& progress) {
  char buffer[4096];
  for (;;) {
    const ssize_t count = ::read(pipe, buffer, sizeof buffer);
    if (count <= 0) return count < 0 && (errno == EAGAIN || errno == EINTR);
    progress.take_output({buffer, static_cast<std::size_t>(count)});
  }
}

// Shows what the trainer does until it ends, which it is asked to when `interrupt` is raised. Its exit status.
int follow(ChildProcess& child, UniqueFd pipe, JoinProgress& progress, CommandContext& context) {
  std::optional<Deadline> end_by;
  for (;;) {
    const auto code = child.poll();
    if (pipe && !drain(pipe.get(), progress)) pipe.reset();
    progress.look_at_rounds();
    if (code) return end_by && *code == 128 + SIGTERM ? 0 : *code;
    if (context.interrupt.raised() && !end_by) {
      context.console.out << "stopping ..." << std::endl;
      child.send_signal(SIGTERM);
      end_by = Deadline::after(kTrainerEndTime);
    }
    if (end_by && end_by->expired()) {
      child.terminate(Deadline::after(std::chrono::seconds(0)));
      return 0;
    }
    pollfd waits[] = {{pipe.get(), POLLIN, 0}, {end_by ? -1 : context.interrupt.fd(), POLLIN, 0}};
    ::poll(waits, 2, static_cast<int>(kLook.count()));
  }
}

Status train(const IslandHome& home, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto trainer, locate_trainer());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("make a pipe for", trainer);
  UniqueFd reading(ends[0]), writing(ends[1]);
  ::fcntl(reading.get(), F_SETFL, O_NONBLOCK);
  // SIGTERM: should we be killed, the trainer still says goodbye to the run.
  ATOLL_ASSIGN_OR_RETURN(ChildProcess child,
                         ChildProcess::spawn({.program = trainer,
                                              .arguments = {"run", "--home", home.directory.string()},
                                              .log = {},
                                              .output = writing.get(),
                                              .death_signal = SIGTERM}));
  writing.reset();
  JoinProgress progress(home, context.console);
  const int code = follow(child, std::move(reading), progress, context);
  if (code == kExitOk) return ok_status();
  if (!progress.trainer_error().empty()) return Error{cause_of(code), progress.trainer_error()};
  return Error{cause_of(code),
               fmt::format("the trainer ended with {} and did not say why; 'atoll join' starts it again",
                           code > 128 ? fmt::format("signal {}", code - 128) : fmt::format("status {}", code))};
}

Status run(const Join& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, island_home_or_default(command.home));
  const IslandHome home{directory};
  JoinCheck check(home, may_ask(command, context), context);
  const auto join = join_or_resume(command, home, check, context);
  const Status checked = join.ok() ? check.run() : Status(join.error());
  if (checked.ok()) return train(home, context);
  if (!check.failed()) return checked;
  context.finish(checked);
  context.exit_code = kExitCheckFailed;
  return ok_status();
}

}  // namespace

void add_join_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Join>();
  CLI::App* sub = app.add_subcommand("join", "Join a run and train until Ctrl-C, or come back to it");
  sub->footer(
      "Examples:\n"
      "  atoll join --invite-stdin              paste the invite; it stays out of the process list\n"
      "  atoll join --invite-file invite.txt --name 'under the desk'\n"
      "  atoll join                             back to the run joined before\n\n"
      "Prints a line a round. Ended by Ctrl-C, which tells the others, it is a success: 0.");
  auto* invite = sub->add_option("INVITE", command->invite, "Invite or link; --invite-stdin keeps it more private");
  auto* file = sub->add_option("--invite-file", command->invite_file, "File with the invite")
                   ->type_name("FILE")
                   ->excludes(invite);
  sub->add_flag("--invite-stdin", command->invite_stdin, "Read the invite from standard input")
      ->excludes(invite)
      ->excludes(file);
  sub->add_option("--home", command->home, "Directory of this membership (default: ~/.local/share/atoll)")
      ->type_name("DIR");
  sub->add_option("--name", command->name, "What others see (default: the host's name)");
  sub->add_option("--listen", command->listen,
                  "Address and port for the other islands (default: 0.0.0.0:0, any free port)");
  sub->add_option("--advertise", command->advertise,
                  "Host that the other islands dial, if not the one that the hub sees");
  sub->add_option("--local-ranks", command->local_ranks, "Shards of the model on this machine")
      ->check(whole_number(1, 64));
  sub->add_option("--threads", command->threads, "Compute threads (default: all cores)")->check(whole_number(1, 1024));
  sub->add_flag("--yes", command->yes, "Do not ask");
  sub->callback([command, &context] { context.finish(run(*command, context)); });
}

}  // namespace atl
