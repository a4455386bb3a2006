#include "app/cli/island/finish_wait.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "app/agent/contribution_book.h"
#include "app/agent/trainer_exit.h"
#include "app/agent/wish.h"
#include "app/cli/agent_client.h"
#include "net/control/events.h"

namespace atl {
namespace {

using Outcome = Result<std::optional<ContributionView>>;

constexpr std::chrono::milliseconds kAgentLook{250};

// Nothing while it is under way.
std::optional<Outcome> outcome_of(const NodeState& state, double asked_at) {
  if (state.agent.wish == Wish::kRun) {
    return Outcome(Error{ErrorCode::kAborted, "somebody resumed the training meanwhile"});
  }
  if (state.agent.trainer_pid != 0 || state.agent.wish != Wish::kStop) return std::nullopt;
  const auto& exit = state.agent.last_exit;
  const bool is_done =
      !exit || exit->time < asked_at || exit->cause == ExitCause::kFinished || exit->cause == ExitCause::kRunFinished;
  if (is_done) return Outcome(state.agent.contributed);
  const ErrorCode code =
      is_success(exit->cause) ? ErrorCode::kAborted : error_code_of({.cause = exit->cause, .text = exit->text});
  return Outcome(Error{code, "the round was not completed here: " + exit->text});
}

// Of an agent that is gone. It settles the wish when the trainer has ended, and only then.
Outcome outcome_on_record(const AgentHome& home) {
  const auto wish = load_wish(home.wish_file());
  const auto trainer = ControlClient::connect(home.island.control_socket(), answer_deadline());
  const bool trainer_is_gone = !trainer.ok() && trainer.error().code == ErrorCode::kNotRunning;
  if (!wish.ok() || wish->wish != Wish::kStop || !trainer_is_gone) {
    return Error{
        ErrorCode::kTrainerFailed,
        "the agent ended before it had written down that the round is completed; 'atoll logs' has its last words"};
  }
  const auto join = load_join_file(home.island.join_file());
  if (!join.ok()) return std::optional<ContributionView>();
  return std::optional(ContributionBook(home.contributions()).of(join->run_id));
}

}  // namespace

Outcome await_finish(ControlClient& agent, const AgentHome& home, double asked_at, const AbortSignal& interrupt,
                     const std::function<void(const std::string& trouble)>& on_trouble) {
  std::string trouble;
  ATOLL_RETURN_IF_ERROR(ask_agent(agent, "events.subscribe", nlohmann::json::object()));
  while (!interrupt.raised()) {
    const auto state = ask_node_state(agent);
    if (!state.ok()) return outcome_on_record(home);
    if (auto outcome = outcome_of(*state, asked_at)) return *std::move(outcome);
    const std::string& now = state->island.error;
    if (now != std::exchange(trouble, now) && !now.empty()) on_trouble(now);
    // An agent that ends with its trainer says so by an event alone: then it cannot be asked any more.
    const Deadline next_look = Deadline::after(kAgentLook);
    while (!next_look.expired()) {
      const auto event = agent.next_event(next_look);
      if (!event.ok()) break;
      const auto told = read_event(*event);
      const NodeState* said = told ? state_in(*told) : nullptr;
      if (said == nullptr || !said->has_agent || said->agent.wish != Wish::kStop) continue;
      if (auto outcome = outcome_of(*said, asked_at)) return *std::move(outcome);
    }
  }
  return Error{ErrorCode::kAborted, "not waited for; the agent finishes the round all the same"};
}

}  // namespace atl
