// atoll join: enrol with an invite, or come back to the run joined before; then train in the foreground.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <iostream>

#include "app/cli/child_process.h"
#include "app/cli/command.h"
#include "app/cli/text.h"
#include "net/base/file.h"
#include "net/control/home.h"
#include "net/enrol/client.h"
#include "net/wire/invite.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kEnrolTime{30};
// A trainer that was asked to end finishes what it is writing.
constexpr std::chrono::seconds kTrainerEndTime{20};

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

// The invite, or nothing when none was given: the run joined before.
Result<std::optional<Invite>> read_invite(const Join& command) {
  std::string text = command.invite;
  if (!command.invite_file.empty()) {
    ATOLL_ASSIGN_OR_RETURN(text, read_file(command.invite_file, kMaxInviteText));
  } else if (command.invite_stdin) {
    char buffer[kMaxInviteText];
    std::cin.read(buffer, sizeof buffer);
    text.assign(buffer, static_cast<std::size_t>(std::cin.gcount()));
  }
  if (text.empty()) return std::optional<Invite>();
  ATOLL_ASSIGN_OR_RETURN(Invite invite, decode_invite(text, now()));
  return std::optional<Invite>(std::move(invite));
}

// Joining is consent: a person at a terminal is asked, a script says --yes or has no terminal to be asked on.
Status ask_consent(const Join& command, const Invite& invite, CommandContext& context) {
  if (command.yes || command.invite_stdin || ::isatty(STDIN_FILENO) == 0 || !context.console.out_is_terminal)
    return ok_status();
  context.console.out
      << fmt::format(
             "Join run {} at {}?\n"
             "This machine will compute for it until you stop it. It sends what its copy of the model learned\n"
             "to the run's other islands, and lets them connect to it; nothing else leaves the machine.\n"
             "Join? [y/N] ",
             invite.run_name, to_string(invite.hub.front()))
      << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == "y" || answer == "Y" || answer == "yes") return ok_status();
  return Error{ErrorCode::kAborted, "not joined, as you said"};
}

// What the flags change in what was joined before.
Status apply_flags(const Join& command, JoinFile& join) {
  if (!command.name.empty()) join.display_name = command.name;
  if (!command.listen.empty()) {
    ATOLL_ASSIGN_OR_RETURN(join.bind, parse_address(command.listen));
  }
  if (!command.advertise.empty()) join.advertised_host = command.advertise;
  if (command.local_ranks > 0) join.local_ranks = command.local_ranks;
  if (command.threads > 0) join.threads = command.threads;
  if (join.display_name.size() <= 64) return ok_status();
  return Error{ErrorCode::kInvalidArgument, "--name is longer than 64 bytes"};
}

Result<JoinFile> enrol_with(const Join& command, const Invite& invite, const IslandHome& home,
                            CommandContext& context) {
  JoinFile join;
  join.run_id = invite.run_id;
  join.run_name = invite.run_name;
  join.display_name = host_name();
  ATOLL_RETURN_IF_ERROR(apply_flags(command, join));
  ATOLL_RETURN_IF_ERROR(ask_consent(command, invite, context));
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

Result<JoinFile> join_or_resume(const Join& command, const IslandHome& home, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const std::optional<Invite> invite, read_invite(command));
  auto before = load_join_file(home.join_file());
  if (!before.ok() && before.error().code != ErrorCode::kNotJoined) return before.error();
  if (!before.ok() && !invite) {
    return Error{ErrorCode::kNotJoined,
                 fmt::format("{} has joined no run; get an invite from the run's operator (who runs 'atoll "
                             "hub invite') and give it with --invite-stdin or --invite-file",
                             home.directory.string())};
  }
  if (!before.ok()) return enrol_with(command, *invite, home, context);
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

int exit_code_of_trainer(int code) {
  switch (code) {
    case kExitOk:
    case kExitDenied:
    case kExitPinMismatch:
    case kExitHubUnreachable:
    case kExitVersion:
    case kExitTimeout: return code;
    default: return kExitTrainerFailed;
  }
}

Status train(const IslandHome& home, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto trainer, locate_trainer());
  // SIGTERM: should we be killed, the trainer still says goodbye to the run.
  ATOLL_ASSIGN_OR_RETURN(ChildProcess child,
                         ChildProcess::spawn({.program = trainer,
                                              .arguments = {"run", "--home", home.directory.string()},
                                              .log = {},
                                              .death_signal = SIGTERM}));
  Result<int> code = Error{};
  do {
    code = child.wait(Deadline::after(std::chrono::hours(1)), &context.interrupt);
  } while (!code.ok() && code.error().code == ErrorCode::kTimeout);
  if (!code.ok()) {  // interrupted: the same for the trainer
    child.send_signal(SIGTERM);
    code = child.wait(Deadline::after(kTrainerEndTime));
    if (!code.ok()) child.terminate(Deadline::after(std::chrono::seconds(0)));
    if (!code.ok() || *code == 128 + SIGTERM) code = 0;
  }
  context.exit_code = exit_code_of_trainer(*code);
  if (context.exit_code != kExitTrainerFailed) return ok_status();
  return Error{ErrorCode::kTrainerFailed,
               fmt::format("the trainer ended with {}; its messages are above. 'atoll join' starts it again",
                           *code > 128 ? fmt::format("signal {}", *code - 128) : fmt::format("status {}", *code))};
}

Status run(const Join& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, island_home_or_default(command.home));
  const IslandHome home{directory};
  ATOLL_ASSIGN_OR_RETURN(const JoinFile join, join_or_resume(command, home, context));
  return train(home, context);
}

}  // namespace

void add_join_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Join>();
  CLI::App* sub = app.add_subcommand("join", "Join a run and train until Ctrl-C, or come back to it");
  sub->footer(
      "Examples:\n"
      "  atoll join --invite-stdin              paste the invite; it stays out of the process list\n"
      "  atoll join --invite-file invite.txt --name 'under the desk'\n"
      "  atoll join                             back to the run joined before");
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
      ->check(CLI::Range(1, 64));
  sub->add_option("--threads", command->threads, "Compute threads (default: all cores)")->check(CLI::Range(1, 1024));
  sub->add_flag("--yes", command->yes, "Do not ask");
  sub->callback([command, &context] { context.finish(run(*command, context)); });
}

}  // namespace atl
