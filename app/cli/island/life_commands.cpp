// atoll pause, resume, finish, stop, leave: tell the agent what its owner wants.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "app/cli/agent_client.h"
#include "app/cli/contribution_text.h"
#include "app/cli/island/finish_wait.h"
#include "app/cli/island/island_commands.h"
#include "app/cli/text.h"
#include "app/cli/validators.h"
#include "app/config/quantity.h"
#include "net/base/deadline.h"
#include "net/base/new_file.h"
#include "net/base/round_words.h"
#include "net/base/unix_time.h"
#include "net/control/methods.h"

namespace atl {
namespace {

constexpr const char* kLeft =
    "this island leaves the run; what it contributed so far stays. 'atoll join' comes back; no other invite is needed, "
    "unless the hub has removed it";

struct LifeRequest {
  std::string home;
  std::string pause_for;
  std::optional<unsigned> gpu = {};  // pause, resume: this one alone
  bool wait = false;                 // finish
  bool now = false;                  // stop
  bool force = false;                // leave
  bool json = false;
};

// The agent's answer, printed as JSON if that was asked for.
template <class Taken = method::WishTaken, class Method>
Result<Taken> tell(ControlClient& agent, const LifeRequest& command, const Method& method, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json answer, ask_agent(agent, Method::kName, encode_message(method)));
  ATOLL_ASSIGN_OR_RETURN(Taken taken, decode_message<Taken>(answer));
  if (command.json) context.console.out << answer.dump() << std::endl;
  if (!command.json && !taken.warning.empty()) {
    context.console.err << "atoll: " << printable(taken.warning) << std::endl;
  }
  return taken;
}

// What is lost if the pause outlives the round.
std::string stake_text(const std::optional<method::Stake>& stake) {
  if (!stake) return "nothing is lost by it";
  const auto left = stake->round_ends_in_seconds;
  const std::string about = left ? "about " + format_duration(*left) : "this round";
  return fmt::format("resumed within the round ({}) nothing is lost; later its {} steps in round {} are lost", about,
                     stake->inner_steps, round_number(stake->round));
}

// An agent of before knows no such method: nothing is paused then, not all.
template <class Method>
Status tell_of_gpu(const LifeRequest& command, const Method& method, const std::string& what, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto agent, connect_agent(command.home));
  ATOLL_ASSIGN_OR_RETURN(const auto taken, tell<method::GpusTaken>(*agent, command, method, context));
  if (command.json) return ok_status();
  context.console.out << fmt::format(
                             "GPU {} {}: the island trains on {}; a trainer that runs is started anew and goes on "
                             "with its work\n",
                             *command.gpu, what, printable(taken.gpus))
                      << std::flush;
  return ok_status();
}

Status pause(const LifeRequest& command, CommandContext& context) {
  method::Pause params;
  if (!command.pause_for.empty()) {
    params.for_seconds = Seconds(duration_of(command.pause_for)).count();
  }
  if (command.gpu) {
    const std::string when = params.for_seconds ? "for " + format_duration(*params.for_seconds)
                                                : fmt::format("until 'atoll resume --gpu {}'", *command.gpu);
    return tell_of_gpu(command, method::GpuPause{*command.gpu, params.for_seconds}, "is paused " + when, context);
  }
  ATOLL_ASSIGN_OR_RETURN(const auto agent, connect_agent(command.home));
  ATOLL_ASSIGN_OR_RETURN(const method::WishTaken taken, tell(*agent, command, params, context));
  if (command.json) return ok_status();
  const auto until = taken.paused_until_unix_seconds;
  const std::string when = until ? fmt::format("until {:%F %T}", fmt::localtime(static_cast<std::time_t>(*until)))
                                 : "until 'atoll resume', also after a restart of the machine";
  context.console.out << fmt::format(
                             "paused after the current step, if one is under way, {}: processors and GPUs are free "
                             "then; {}\n",
                             when, stake_text(taken.at_stake))
                      << std::flush;
  return ok_status();
}

Status resume(const LifeRequest& command, CommandContext& context) {
  if (command.gpu) return tell_of_gpu(command, method::GpuResume{*command.gpu}, "is used again", context);
  ATOLL_ASSIGN_OR_RETURN(const auto agent, connect_agent(command.home));
  ATOLL_RETURN_IF_ERROR(tell(*agent, command, method::Resume{}, context));
  if (!command.json) context.console.out << "training goes on" << std::endl;
  return ok_status();
}

Status finish(const LifeRequest& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const AgentHome home, home_of_agent(command.home));
  ATOLL_ASSIGN_OR_RETURN(const auto agent, connect_agent(command.home));
  const double asked_at = unix_time_now();
  ATOLL_RETURN_IF_ERROR(tell(*agent, command, method::Finish{}, context));
  if (!command.json) {
    context.console.out
        << "a round that is under way is completed with the others, then this island stops; until then 'atoll resume' "
           "takes that back, afterwards 'atoll join' comes back to the run"
        << std::endl;
  }
  if (!command.wait) return ok_status();
  ATOLL_ASSIGN_OR_RETURN(const auto given,
                         await_finish(*agent, home, asked_at, context.interrupt, [&](const std::string& trouble) {
                           context.console.err << "atoll: " << printable(trouble) << std::endl;
                         }));
  if (command.json) return ok_status();
  context.console.out << "finished" << std::endl;
  if (given) {
    context.console.out << fmt::format("contributed to this run: {}\nto all runs: {}\n", contribution_text(given->run),
                                       contribution_text(given->life))
                        << std::flush;
  }
  return ok_status();
}

Status stop(const LifeRequest& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto agent, connect_agent(command.home));
  ATOLL_RETURN_IF_ERROR(tell(*agent, command, method::Stop{command.now}, context));
  if (!command.json) {
    context.console.out << "stopped, also after a restart of the machine, until 'atoll resume' or 'atoll join'"
                        << std::endl;
  }
  return ok_status();
}

// Without an agent: the membership is set aside here, and a trainer that somebody started by hand is ended.
Status leave_alone(const LifeRequest& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const AgentHome home, home_of_agent(command.home));
  ATOLL_RETURN_IF_ERROR(load_join_file(home.island.join_file()));
  const auto trainer = ControlClient::connect(home.island.control_socket(), answer_deadline());
  if (!trainer.ok() && trainer.error().code != ErrorCode::kNotRunning && !command.force) {
    return trainer.error().with_context("the trainer does not answer; 'atoll leave --force' leaves all the same");
  }
  if (trainer.ok()) {
    ATOLL_RETURN_IF_ERROR((*trainer)->call(method::Leave::kName, nlohmann::json::object(), answer_deadline()));
  }
  ATOLL_RETURN_IF_ERROR(rename_and_flush(home.island.join_file(), home.island.left_file()));
  if (command.json) {
    context.console.out << encode_message(method::WishTaken{.wish = Wish::kStop, .kept = true}).dump() << std::endl;
    return ok_status();
  }
  context.console.out << kLeft << std::endl;
  return ok_status();
}

Status leave(const LifeRequest& command, CommandContext& context) {
  const auto agent = connect_agent(command.home);
  if (!agent.ok() && agent.error().code == ErrorCode::kNotRunning) {
    return leave_alone(command, context);
  }
  if (!agent.ok()) return agent.error();
  ATOLL_RETURN_IF_ERROR(tell(**agent, command, method::Leave{command.force}, context));
  if (!command.json) {
    context.console.out << kLeft << std::endl;
  }
  return ok_status();
}

using LifeFunction = Status (*)(const LifeRequest&, CommandContext&);

CLI::App* add(CLI::App& app, CommandContext& context, const char* name, const char* description,
              const std::shared_ptr<LifeRequest>& command, LifeFunction function) {
  CLI::App* sub = app.add_subcommand(name, description);
  sub->add_option("--home", command->home, "Island's home (default: this user's island)")->type_name("DIR");
  sub->add_flag("--json", command->json, "Print JSON");
  sub->callback([command, function, &context] { context.finish(function(*command, context)); });
  return sub;
}

}  // namespace

void add_life_commands(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<LifeRequest>();
  CLI::App* sub = add(app, context, "pause", "Free processors and GPUs, and go on later", command, pause);
  sub->footer("Examples:\n  atoll pause --for 2h\n  atoll pause && atoll resume\n  atoll pause --gpu 1 --for 3h");
  sub->add_option("--gpu", command->gpu, "Only this one, as nvidia-smi counts: training goes on on the others")
      ->type_name("N");
  sub->add_option("--for", command->pause_for, "Go on by itself after 30m, 2h, 1d, ...")
      ->type_name("DURATION")
      ->check(is_duration());

  command = std::make_shared<LifeRequest>();
  sub = add(app, context, "resume", "Train again after pause, finish, stop or an error", command, resume);
  sub->footer("Examples:\n  atoll resume\n  atoll resume --gpu 1");
  sub->add_option("--gpu", command->gpu, "Train again on this one, which was paused alone")->type_name("N");

  command = std::make_shared<LifeRequest>();
  sub = add(app, context, "finish", "Complete this round with its all-reduce, then stop", command, finish);
  sub->footer("Example:\n  atoll finish --wait && sudo poweroff");
  sub->add_flag("--wait", command->wait, "Return when it is done");

  command = std::make_shared<LifeRequest>();
  sub = add(app, context, "stop", "End the training, until it is resumed", command, stop);
  sub->footer("Example:\n  atoll stop");
  sub->add_flag("--now", command->now, "Kill the trainer instead of letting it say goodbye");

  command = std::make_shared<LifeRequest>();
  sub = add(app, context, "leave", "Leave the run; 'atoll join' comes back to it", command, leave);
  sub->footer("Example:\n  atoll leave");
  sub->add_flag("--force", command->force, "Also when the trainer does not answer");
}

}  // namespace atl
