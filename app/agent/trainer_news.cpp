#include "app/agent/trainer_news.h"

#include <algorithm>
#include <iterator>

#include "app/agent/agent_board.h"
#include "app/agent/agent_history.h"
#include "net/base/unix_time.h"

namespace atl {
namespace {

// Events of a trainer whose data is its state (docs/control.md).
constexpr std::string_view kTellTheState[] = {"state.changed", "round.begin",      "step",
                                              "sync.done",     "checkpoint.saved", "error"};

}  // namespace

void TrainerNews::listen(std::filesystem::path socket) {
  link_.emplace(
      std::move(socket),
      TrainerLink::Callbacks{.answered = [this](const nlohmann::json& state) { hear_state(state); },
                             .event = [this](const nlohmann::json& event, bool kept) { hear_event(event, kept); }});
}

void TrainerNews::expect_another() {
  is_new_ = true;
  taken_over_ = false;
}

void TrainerNews::hear_state(const nlohmann::json& state) {
  if (!state.is_object()) return;
  board_.set_trainer_state(state);
  if (is_new_.exchange(false)) {
    history_.push({{"event", "state.changed"}, {"time", unix_time_now()}, {"data", state}});
  }
  const std::string word = state.value("state", "");
  hearers_.answered(
      {word == "training", progress_of(state), state.value("accepted_round", nlohmann::json()).is_number()});
  // That it is there it says only when asked; from then on its events tell, which a state may run ahead of.
  if (joining_ && word == "joining") hearers_.said({"state.changed", state});
}

void TrainerNews::hear_event(const nlohmann::json& event, bool kept) {
  if (!event.contains("event") || !event["event"].is_string() || !event.contains("data") || !event["data"].is_object())
    return;
  // What a trainer that was taken over did under another agent is history, and may be written there already.
  if (kept && taken_over_) {
    nlohmann::json told_before = event;
    told_before["kept"] = true;
    return history_.push(told_before);
  }
  const std::string name = event["event"].get<std::string>();
  // Who hears of a step and asks for the state then finds it there.
  if (std::ranges::find(kTellTheState, name) != std::end(kTellTheState)) board_.set_trainer_state(event["data"]);
  hearers_.publish(name, event["data"]);
  history_.push(event);
  if (hearers_.on_event) hearers_.on_event(event);
  if (joining_) hearers_.said({name, event["data"]});
}

}  // namespace atl
