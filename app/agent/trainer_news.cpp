#include "app/agent/trainer_news.h"

#include <optional>

#include "app/agent/agent_board.h"
#include "app/agent/agent_history.h"
#include "app/agent/contribution_book.h"
#include "net/base/unix_time.h"

namespace atl {

void TrainerNews::listen(std::filesystem::path socket) {
  link_.emplace(std::move(socket),
                TrainerLink::Callbacks{.answered = [this](const IslandState& state) { hear_state(state); },
                                       .event = [this](HeardEvent event) { hear_event(std::move(event)); }},
                caps_);
}

void TrainerNews::set_caps(const TransferCaps& caps) {
  caps_ = caps;
  if (link_) link_->set_caps(caps);
}

void TrainerNews::expect_another() {
  is_new_ = true;
  taken_over_ = false;
}

void TrainerNews::hear_state(const IslandState& state) {
  contributions_.take(state);
  board_.set_trainer_state(state);
  const ControlEvent told = event::StateChanged{board_.with_agent(state)};
  if (is_new_.exchange(false)) history_.push({.what = told, .time = unix_time_now()});
  hearers_.answered({state.state == IslandPhase::kTraining, progress_of(state), state.accepted_round.has_value()});
  // That it is there it says only when asked; from then on its events tell, which a state may run ahead of.
  // In its own words: what the agent says over them may be of a moment before it had told anybody that it joined.
  if (joining_ && state.state == IslandPhase::kJoining) hearers_.said(event::StateChanged{{.island = state}});
}

void TrainerNews::hear_event(HeardEvent event) {
  // What a trainer that was taken over did under another agent is history, and may be written there already.
  event.kept = event.kept && taken_over_;
  if (event.kept) return history_.push(std::move(event));
  const std::optional<ControlEvent> own_words = joining_ ? std::optional(event.what) : std::nullopt;
  if (NodeState* state = state_in(event.what)) {
    contributions_.take(state->island);
    // Who hears of a step and asks for the state then finds it there.
    board_.set_trainer_state(state->island);
    *state = board_.with_agent(state->island);
  }
  hearers_.publish(event.what);
  if (hearers_.on_event) hearers_.on_event(event.what);
  if (own_words) hearers_.said(*own_words);
  history_.push(std::move(event));
}

}  // namespace atl
