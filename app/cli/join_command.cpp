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
#include "app/cli/foreground_agent.h"
#include "app/cli/gpu_choice.h"
#include "app/cli/join_consent.h"
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

constexpr std::chrono::seconds kJoinTime{240};    // a trainer that ends has 120 s, an enrolment 30, a node check some
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
    ATOLL_ASSIGN_OR_RETURN(text, read_pasted_invite(context.console, context.interrupt));
    if (is_blank(text)) return Error{ErrorCode::kInviteMalformed, "there is no invite on standard input"};
  }
  return text;
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

method::Join params_of(const Join& command, const std::string& invite, bool leave) {
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
          .micro_batch = number(command.micro_batch),
          .leave = leave};
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

// Who comes back has consented before.
Status ask_of_new_run(const std::optional<Invite>& invite, const AgentHome& home, JoinConsent& consent) {
  const auto before = load_membership(home.island);
  const bool comes_back = !invite || (before.ok() && before->run_id == invite->run_id);
  return comes_back ? ok_status() : consent.ask(*invite);
}

Status join_through(ControlClient& agent, const Join& command, const std::string& text,
                    const std::optional<Invite>& invite, const AgentHome& home, JoinConsent& consent,
                    CommandContext& context) {
  ATOLL_RETURN_IF_ERROR(ask_of_new_run(invite, home, consent));
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json events, ask_agent(agent, "events.subscribe", nlohmann::json::object()));
  ATOLL_RETURN_IF_ERROR(
      ask_agent(agent, method::Join::kName, encode_message(params_of(command, text, command.yes || consent.leaves()))));
  JoinProgress progress(context.console);
  ATOLL_RETURN_IF_ERROR(await_join(agent, events.value("last", std::uint64_t{0}), progress, context));
  if (command.wait) return await_first_step(agent, progress, context);
  context.console.out << "this machine's agent trains from now on; see atoll status, and end it with atoll finish"
                      << std::endl;
  return ok_status();
}

// ---- in the foreground

void say_what_is_forgotten(const AgentHome& home, const JoinOutcome& joined, CommandContext& context) {
  if (!forget_what_failed(home.island, joined)) return;
  context.console.out << "how it was to compute is not kept, as nothing came of it: 'atoll join' alone is as before"
                      << std::endl;
}

// The node is checked before the invite is used, and again for what its run asks.
Result<JoinOutcome> join_here(const Join& command, std::optional<Invite> invite, const AgentHome& home,
                              JoinConsent& consent, JoinPreflight& check, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const Config config, Config::load(config_sources(home)));
  JoinRequest request = request_of(command, std::move(invite));
  apply_config(config, request);
  if (other_run(home.island, request.invite)) ATOLL_RETURN_IF_ERROR(consent.ask(*request.invite));
  request.leave_other = consent.leaves();
  const auto agreed = [&](const Invite& asked) -> Status {
    ATOLL_RETURN_IF_ERROR(consent.ask(asked));
    return check.run(request);
  };
  ATOLL_ASSIGN_OR_RETURN(JoinOutcome joined, join_run(request, home.island, &context.interrupt, agreed));
  context.console.out << printable_lines(joined.text) << std::endl;
  const Status fit = check.run(request);
  if (fit.ok()) return joined;
  say_what_is_forgotten(home, joined, context);
  return fit.error();
}

// What a network did is no fault of what was said.
Status train_here(const AgentHome& home, const JoinOutcome& joined, const std::string& come_back,
                  CommandContext& context) {
  log_without_waiting(context.console.loss_listener());
  const ForegroundEnd end = train_in_foreground(home, {.come_back = come_back}, context);
  const bool failed = !end.status.ok() && end.status.error().code == ErrorCode::kTrainerFailed;
  if (failed && !end.has_trained) say_what_is_forgotten(home, joined, context);
  return end.status;
}

// The agent of the service that is installed and started for it.
Result<std::unique_ptr<ControlClient>> start_service(const Join& command, CommandContext& context) {
  const bool system = command.service == "system";
  ATOLL_RETURN_IF_ERROR(
      install_service_for(system ? ServiceScope::kSystem : ServiceScope::kUser, command.home, command.yes, context));
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
  JoinConsent consent(home, command.yes, context);
  auto agent = connect_agent(command.home);
  const bool none_runs = !agent.ok() && agent.error().code == ErrorCode::kNotRunning;
  if (none_runs && !command.service.empty()) {
    ATOLL_RETURN_IF_ERROR(ask_of_new_run(invite, home, consent));
    agent = start_service(command, context);
  }
  if (agent.ok()) return join_through(**agent, command, text, invite, home, consent, context);
  if (agent.error().code != ErrorCode::kNotRunning) return agent.error();
  if (command.wait || !command.service.empty()) {
    return Error{ErrorCode::kNotRunning,
                 "no agent is running, and one is needed that trains on afterwards; start it with 'atoll agent' or "
                 "'atoll service install', and see 'atoll service status'"};
  }
  JoinPreflight check(home, consent.asks(), context);
  const Result<JoinOutcome> joined = join_here(command, std::move(invite), home, consent, check, context);
  const std::string come_back = command.home.empty() ? "atoll join" : "atoll join --home " + command.home;
  if (joined.ok()) return train_here(home, *joined, come_back, context);
  if (!check.failed()) return joined.error();
  context.finish(joined.error());
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
      "First it asks the hub of the invite which run that is, and shows what it costs this machine and what leaves it. "
      "At\n"
      "a terminal it asks; a script says --yes, or has no terminal.\n\n"
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
  sub->add_flag("--yes", command->yes, "Agree without being asked, also to leave the run that was joined before");
  sub->add_option("--service", command->service,
                  "Install the agent as a service that starts with the machine, and join")
      ->check(CLI::IsMember({"user", "system"}));
  sub->add_flag("--wait", command->wait, "With an agent running: return after the first inner step");
  sub->callback([command, &context] { context.finish(run(*command, context)); });
}

}  // namespace atl
