// atoll join: enrol with an invite, or come back to the run joined before. The agent that runs trains then; when none
// does, this process is the agent until it ends.
#include <fmt/format.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "app/agent/agent_config.h"
#include "app/agent/join_run.h"
#include "app/cli/agent_client.h"
#include "app/cli/command.h"
#include "app/cli/console_input.h"
#include "app/cli/foreground_agent.h"
#include "app/cli/gpu_choice.h"
#include "app/cli/join_preflight.h"
#include "app/cli/join_progress.h"
#include "app/cli/service/service_command.h"
#include "app/cli/validators.h"
#include "app/config/gpu_list.h"
#include "net/base/file.h"
#include "net/base/log.h"
#include "net/base/printable.h"
#include "net/control/events.h"
#include "net/control/home.h"
#include "net/control/methods.h"
#include "net/wire/invite.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kJoinTime{120};    // an enrolment has 30 s, a node check some
constexpr std::chrono::seconds kServiceTime{30};  // until a service that was installed answers
constexpr std::chrono::milliseconds kLook{250};

struct Join {
  std::string invite, invite_file;
  bool invite_stdin = false;
  bool yes = false, wait = false;
  std::string home, name, listen, advertise, gpus, service;
  std::string device, precision;
  std::optional<int> local_ranks, threads, micro_batch;
};

std::chrono::sys_seconds now() {
  return std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
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

// The invite's text, or nothing when none was given: the run joined before.
Result<std::string> read_invite(const Join& command, CommandContext& context) {
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
  return text;
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
             printable(invite.run_name), to_string(invite.hub.front()))
      << std::flush;
  ATOLL_ASSIGN_OR_RETURN(const bool yes, said_yes(context.interrupt));
  if (yes) return ok_status();
  return Error{ErrorCode::kAborted, "not joined, as you said"};
}

JoinRequest request_of(const Join& command, std::optional<Invite> invite) {
  return {.invite = std::move(invite),
          .name = command.name,
          .listen = command.listen,
          .advertise = command.advertise,
          .local_ranks = command.local_ranks,
          .threads = command.threads,
          .gpus = command.gpus,
          .device = command.device,
          .precision = command.precision,
          .micro_batch = command.micro_batch};
}

method::Join params_of(const Join& command, const std::string& invite) {
  const auto number = [](const std::optional<int>& value) {
    return value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
  };
  return {.invite = invite,
          .name = command.name,
          .listen = command.listen,
          .advertise = command.advertise,
          .gpus = command.gpus,
          .device = command.device,
          .precision = command.precision,
          .local_ranks = number(command.local_ranks),
          .threads = number(command.threads),
          .micro_batch = number(command.micro_batch)};
}

// ---- through the agent that runs

// Until the agent says what came of it, after the event `last`: what earlier joins came to is kept, too.
Status await_join(ControlClient& agent, std::uint64_t last, JoinProgress& progress, CommandContext& context) {
  const Deadline deadline = Deadline::after(kJoinTime);
  while (!context.interrupt.raised()) {
    const auto event = agent.next_event(Deadline::after(kLook).but_not_after(deadline));
    if (!event.ok() && event.error().code != ErrorCode::kTimeout) return event.error();
    if (!event.ok() && deadline.expired())
      return Error{ErrorCode::kTimeout, "the agent does not say that it has joined"};
    if (!event.ok() || event->value("seq", std::uint64_t{0}) <= last) continue;
    const auto told = read_event(*event);
    if (!told) continue;
    if (std::holds_alternative<event::JoinProgress>(*told)) {
      progress.take(*told);
      progress.show();
    }
    const auto* done = std::get_if<event::JoinDone>(&*told);
    if (done == nullptr) continue;
    if (!done->ok) {
      return Error{parse_error_code(done->code).value_or(ErrorCode::kInternal),
                   done->message.empty() ? "the agent could not join, and does not say why" : done->message};
    }
    context.console.out << (done->text.empty() ? "joined" : done->text) << std::endl;
    return ok_status();
  }
  return Error{ErrorCode::kAborted, "interrupted; the agent goes on with it: atoll status"};
}

// Shows each stage on the way, until the first inner step.
Status await_first_step(ControlClient& agent, JoinProgress& progress, CommandContext& context) {
  while (!context.interrupt.raised()) {
    ATOLL_ASSIGN_OR_RETURN(NodeState node, ask_node_state(agent));
    const IslandState state = node.island;
    progress.take(event::StateChanged{std::move(node)});  // what it waits for
    // Without a process these are the last words of the trainer before.
    if (state.pid > 0 && state.tokens > 0) return ok_status();
    if (state.state == IslandPhase::kError) return Error{ErrorCode::kTrainerFailed, state.error};
    const Deadline next_look = Deadline::after(kLook);
    while (!next_look.expired() && !context.interrupt.raised()) {
      const auto event = agent.next_event(next_look);
      if (!event.ok() && event.error().code != ErrorCode::kTimeout) return event.error();
      const auto told = event.ok() ? read_event(*event) : std::nullopt;
      if (told && std::holds_alternative<event::JoinProgress>(*told)) progress.take(*told);
    }
    progress.show();
  }
  return Error{ErrorCode::kAborted, "interrupted; the agent goes on: atoll status"};
}

Status join_through(ControlClient& agent, const Join& command, const std::string& text,
                    const std::optional<Invite>& invite, CommandContext& context) {
  if (invite) ATOLL_RETURN_IF_ERROR(ask_consent(command, *invite, context));
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json events, ask_agent(agent, "events.subscribe", nlohmann::json::object()));
  ATOLL_RETURN_IF_ERROR(ask_agent(agent, method::Join::kName, encode_message(params_of(command, text))));
  JoinProgress progress(context.console);
  ATOLL_RETURN_IF_ERROR(await_join(agent, events.value("last", std::uint64_t{0}), progress, context));
  if (command.wait) return await_first_step(agent, progress, context);
  context.console.out << "this machine's agent trains from now on; see atoll status, and end it with atoll finish"
                      << std::endl;
  return ok_status();
}

// ---- in the foreground

// The node is checked before the invite is used, and again for what its run asks.
Status join_here(const Join& command, std::optional<Invite> invite, const AgentHome& home, JoinPreflight& check,
                 CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const Config config, Config::load(config_sources(home)));
  JoinRequest request = request_of(command, std::move(invite));
  apply_config(config, request);
  const auto consent = [&](const Invite& asked) -> Status {
    ATOLL_RETURN_IF_ERROR(ask_consent(command, asked, context));
    return check.run(device_of(request));
  };
  ATOLL_ASSIGN_OR_RETURN(const JoinOutcome joined, join_run(request, home.island, &context.interrupt, consent));
  context.console.out << printable_lines(joined.text) << std::endl;
  return check.run(device_of(request));
}

// The agent of the service that is installed and started for it.
Result<std::unique_ptr<ControlClient>> start_service(const Join& command, CommandContext& context) {
  const bool system = command.service == "system";
  ATOLL_RETURN_IF_ERROR(install_service_for(system ? ServiceScope::kSystem : ServiceScope::kUser, command.home,
                                            command.yes || command.invite_stdin, context));
  const Deadline deadline = Deadline::after(kServiceTime);
  for (;;) {
    auto agent = system ? ControlClient::connect(system_agent_home().socket, deadline) : connect_agent(command.home);
    if (agent.ok() || agent.error().code != ErrorCode::kNotRunning || deadline.expired()) return agent;
    pollfd wake{context.interrupt.fd(), POLLIN, 0};
    if (::poll(&wake, 1, static_cast<int>(kLook.count())) > 0) return Error{ErrorCode::kAborted, "interrupted"};
  }
}

Status run(const Join& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const AgentHome home, find_agent_home(command.home));
  if (!command.gpus.empty()) ATOLL_RETURN_IF_ERROR(check_gpus_exist(command.gpus, context.interrupt));
  ATOLL_ASSIGN_OR_RETURN(const std::string text, read_invite(command, context));
  std::optional<Invite> invite;
  if (!text.empty()) {
    ATOLL_ASSIGN_OR_RETURN(invite, decode_invite(text, now()));
  }
  auto agent = connect_agent(command.home);
  const bool none_runs = !agent.ok() && agent.error().code == ErrorCode::kNotRunning;
  if (none_runs && !command.service.empty()) agent = start_service(command, context);
  if (agent.ok()) return join_through(**agent, command, text, invite, context);
  if (agent.error().code != ErrorCode::kNotRunning) return agent.error();
  if (command.wait || !command.service.empty()) {
    return Error{ErrorCode::kNotRunning,
                 "no agent is running, and one is needed that trains on afterwards; start it with 'atoll agent' or "
                 "'atoll service install', and see 'atoll service status'"};
  }
  JoinPreflight check(home, may_ask(command, context), context);
  Status joined = join_here(command, std::move(invite), home, check, context);
  const std::string come_back = command.home.empty() ? "atoll join" : "atoll join --home " + command.home;
  if (joined.ok()) {
    log_without_waiting(context.console.loss_listener());
    return train_in_foreground(home, {.come_back = come_back}, context);
  }
  if (!check.failed()) return joined;
  context.finish(joined);
  context.exit_code = kExitCheckFailed;
  return ok_status();
}

}  // namespace

void add_join_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Join>();
  CLI::App* sub = app.add_subcommand("join", "Join a run and train until Ctrl-C, or come back to it");
  sub->footer(
      "Examples:\n"
      "  atoll join --invite-stdin              paste the invite\n"
      "  atoll join --invite-file invite.txt --name 'under the desk'\n"
      "  atoll join                             back to the run joined before\n\n"
      "An invite is a secret. As an argument other users of this machine can read it for a moment, in the list of\n"
      "processes, until this command has overwritten it there, and the shell may keep it in its history: "
      "--invite-stdin\n"
      "and --invite-file keep it from both.\n\n"
      "When an agent runs on this machine ('atoll agent'), it does the training, and this command returns.\n"
      "Else it trains until Ctrl-C, a line a round. Ended so, which tells the others, it is a success: 0.");
  auto* invite = sub->add_option(
      "INVITE", command->invite,
      "Invite or link, seen by other users of this machine for a moment; --invite-stdin keeps it from them");
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
  sub->add_option("--local-ranks", command->local_ranks,
                  "Shards of the model on this machine; 0, the default: one a GPU, or one a core")
      ->check(whole_number(0, 64));
  sub->add_option("--threads", command->threads, "Compute threads (default: all cores)")->check(whole_number(1, 1024));
  sub->add_option("--micro-batch", command->micro_batch,
                  "Sequences that a shard computes at once; 0, the default: as many as the memory allows")
      ->check(whole_number(0, 1 << 20));
  sub->add_option(
         "--device", command->device,
         "What computes: auto (the default: GPUs where there are any on which the model fits, else the processor), "
         "processor or gpu")
      ->type_name("WORD")
      ->check(is_device());
  sub->add_option("--precision", command->precision,
                  "In which numbers the model is computed: auto (the default), fp32 or bf16")
      ->type_name("WORD")
      ->check(is_precision());
  sub->add_option("--gpus", command->gpus, "GPUs to train on: all (the default), none, or for instance 0-3,6")
      ->type_name("LIST")
      ->check([](const std::string& text) {
        const auto gpus = parse_gpu_list(text);
        return gpus.ok() ? std::string() : gpus.error().message;
      });
  sub->add_flag("--yes", command->yes, "Do not ask");
  sub->add_option("--service", command->service,
                  "Install the agent as a service that starts with the machine, and join")
      ->check(CLI::IsMember({"user", "system"}));
  sub->add_flag("--wait", command->wait, "With an agent running: return after the first inner step");
  sub->callback([command, &context] { context.finish(run(*command, context)); });
}

}  // namespace atl
