#include "net/control/untold_rounds.h"

#include <algorithm>
#include <cmath>

namespace atl {

std::optional<event::RoundDone> UntoldRounds::take(const ControlEvent& event) {
  if (const auto* begin = std::get_if<event::RoundBegin>(&event)) {
    const IslandState& state = begin->state.island;
    beginning_ = {state.round, state.pid, state.tokens, state.bytes_sent, state.inner_seconds};
  } else if (std::holds_alternative<event::RoundDone>(event)) {
    told_ = true;
  } else if (const auto* done = std::get_if<event::SyncDone>(&event)) {
    if (std::exchange(told_, false) || done->state.island.outer_step == 0) return std::nullopt;
    return end(done->state.island);
  }
  return std::nullopt;
}

// The state is already that after the round's outer step.
event::RoundDone UntoldRounds::end(const IslandState& state) const {
  event::RoundDone done{.round = state.outer_step - 1, .islands = state.islands_live};
  done.accepted = state.accepted_round == done.round;
  if (std::isfinite(state.loss_nats) && state.loss_nats > 0) done.loss_nats = state.loss_nats;
  done.sync_seconds = state.last_sync_seconds;
  done.state_hash = state.state_hash;
  const bool whole = beginning_ && beginning_->round == done.round && beginning_->trainer == state.pid;
  if (whole && state.tokens >= beginning_->tokens && state.bytes_sent >= beginning_->bytes_sent) {
    done.tokens = state.tokens - beginning_->tokens;
    done.bytes_sent = state.bytes_sent - beginning_->bytes_sent;
    done.inner_seconds = std::max(0.0, state.inner_seconds - beginning_->inner_seconds);
  }
  return done;
}

}  // namespace atl
