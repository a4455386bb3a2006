// RoundCoordinator: who comes and goes, and what islands say.
#include <fmt/format.h>

#include "net/mesh/round_coordinator.h"

namespace atl {
namespace {

// What an island says of a round names the round's fragment, too.
template <class Message>
std::optional<Error> disagreement(const RunConfig& run, const Message& message) {
  if constexpr (requires { message.round, message.fragment; }) {
    const FragmentId fragment = run.fragment_of(message.round);
    if (message.fragment != fragment) {
      return Error{ErrorCode::kProtocol, fmt::format("it speaks of fragment {} of round {}, which is of fragment {}",
                                                     message.fragment.value, message.round.value, fragment.value)};
    }
  }
  return std::nullopt;
}

}  // namespace

// ---- coming

void RoundCoordinator::on(const IslandConnected& event) {
  const IslandId& id = event.entry.id;
  disconnect(id);  // a new connection replaces the old one
  if (const Status enter = members_.may_enter(event); !enter.ok()) {
    turn_.send(id, HubGoodbye{enter.error().code, enter.error().message, false});
    turn_.act(CloseConnection{id});
    return;
  }
  if (event.proven_epoch > state_.epoch()) {
    turn_.act(StepDown{event.proven_epoch});
    return;
  }
  if (event.proven_commit) fast_forward(event);
  turn_.send(id, HubWelcome{kMeshVersion, turn_.run(), state_.committed(), {}});
  if (finished_) {
    const OuterStep held = event.hello.outer_step.value_or(state_.committed());
    const auto missed = state_.commits_since(held, id);
    if (missed.size() <= turn_.run().fragments) {  // no more are taken in at once, and it is not led on
      for (const HubCommit& commit : missed) turn_.send(id, commit);
    }
    return say_goodbye(id);
  }
  const auto [island, is_new, moved] = members_.enter(event);
  trust_.agreement().drop(id);  // what it held before may be gone
  // The others hear of it at once or within a second: one that comes and goes all the time is not to keep them busy.
  members_.note_change();
  members_.send_roster_unless_due(id);
  if (is_new || moved || !links_.dialable(id)) links_.dial(island);
  if (is_new) turn_.publish(IslandJoined{id, event.entry.display_name});
  recovery_.place_returning(island, event.hello);
}

void RoundCoordinator::on(const IslandDialled& event) {
  if (const MeshIsland* island = members_.find(event.island)) links_.dialled(*island, event);
}

// ---- going

void RoundCoordinator::on(const IslandDisconnected& event) { disconnect(event.island); }

// It may come back within dead_after and keep its place; an open attempt does not wait for it.
void RoundCoordinator::disconnect(const IslandId& id) {
  MeshIsland* island = members_.find(id);
  if (island == nullptr || !island->connected) return;
  members_.leave(*island);
  for_each_round([&](OpenRound& round) { round.disconnected(id); });
}

// It keeps its place and its lease, and the round goes on as if it had none: what it did is averaged if it is back and
// ready in time, and leased again if not.
void RoundCoordinator::pause(const IslandId& id) {
  disconnect(id);
  MeshIsland* island = members_.find(id);
  if (island == nullptr) return;
  island->paused = true;
  for_each_round([&](OpenRound& round) { round.parts().stop_waiting(id); });
  if (!trust_.agreement().reported(id)) trust_.agreement().drop(id);  // nobody waits for its report
  act_on_validation(id, trust_.validation().drop(id));
  turn_.publish(IslandPaused{id, island->entry.display_name});
  members_.note_change();
}

void RoundCoordinator::remove(const IslandId& id, bool left, const std::string& reason) {
  disconnect(id);
  const MeshIsland* island = members_.find(id);
  if (island == nullptr) return;
  for_each_round([&](OpenRound& round) { round.forget(id); });
  act_on_validation(id, trust_.validation().drop(id));
  HashAgreement& agreement = trust_.agreement();
  const bool was_source = agreement.agreed() && agreement.reported(id) == agreement.agreed();
  agreement.drop(id);
  links_.forget(id);
  turn_.publish(IslandGone{id, island->entry.display_name, left, reason});
  members_.erase(id);
  for_each_round([](OpenRound& round) {  // others may agree without it
    if (round.blame().is_nobody_left_to_suspect()) round.blame().search_anew();
  });
  if (was_source) recovery_.find_other_sources();
}

// What it said of the outer state is void, too: its operator's word decides what the islands' own could not. Whoever is
// here is told, also of one that is away: it may still have connections to them.
void RoundCoordinator::on(const IslandRemoved& event) {
  const bool was_here = members_.contains(event.island);
  if (was_here) remove(event.island, true, event.reason);
  members_.send_roster();
  trust_.agreement().unseat(event.island);
  state_.forget_holder(event.island);
  forget_expected(event.island);
  links_.forget_removed(event.island);
  trust_.forget_work(event.island);
  if (was_here) turn_.act(CloseConnection{event.island});
}

void RoundCoordinator::bury_the_silent() {
  const std::vector<IslandId> silent = members_.silent(), lost = members_.lost();
  for (const IslandId& id : silent) {
    turn_.act(CloseConnection{id});
    remove(id, false, fmt::format("no heartbeat for {} s", Seconds(turn_.run().dead_after).count()));
  }
  for (const IslandId& id : lost) remove(id, false, "its connection broke and it did not come back");
  if (!state_.still_waits()) forget_expected();
}

// Of an attempt that failed: the others do not wait for what a member that seems dead might say of it. Not removed: if
// it lives it dials again at once, and keeps its place.
void RoundCoordinator::part_from_the_missed() {
  std::vector<IslandId> missed;
  for (const auto& [number, round] : rounds_) {
    for (const IslandId& id : round->missed()) missed.push_back(id);
  }
  for (const IslandId& id : missed) {
    if (!members_.is_here(id)) continue;
    turn_.act(CloseConnection{id});
    disconnect(id);
  }
}

// ---- what islands say

void RoundCoordinator::on(const IslandSaid& event) {
  MeshIsland* island = members_.find(event.island);
  if (island == nullptr || !island->connected || finished_) return;
  island->last_heard = turn_.now();
  const auto wrong = std::visit([&](const auto& message) { return disagreement(turn_.run(), message); }, event.message);
  if (wrong) return send_away(event.island, wrong->code, wrong->message);
  std::visit([&](const auto& message) { said(*island, message); }, event.message);
}

void RoundCoordinator::said(MeshIsland& island, const IslandHeartbeat& message) { island.heartbeat = message; }

void RoundCoordinator::said(MeshIsland& island, const IslandReady& message) {
  const IslandId& id = island.id();
  if (last_validator_ == id && message.round == state_.committed()) return finish();  // has no validation split
  OpenRound* round = find_round(message.round);
  if (round == nullptr) return;
  const RoundPart& part = round->parts().of(id);
  if (part.role == RoundPart::Role::kTrainer && part.begun.validate) {
    act_on_validation(id, trust_.validation().drop(id));  // it would have told by now
  }
  round->said(island, message);
}

void RoundCoordinator::said(MeshIsland& island, const IslandHave& message) {
  if (OpenRound* round = find_round(message.round)) round->said(island, message);
}

void RoundCoordinator::said(MeshIsland& island, const IslandAttemptFailed& message) {
  // It does not hold what was committed.
  const bool is_led = island.catches_up && state_.remembers(message.round, message.attempt);
  if (is_led || state_.is_commit_of_late(message.round, message.attempt)) return start_recovering(island.id());
  if (OpenRound* round = find_round(message.round)) round->said(island, message);
}

void RoundCoordinator::said(MeshIsland& island, const IslandChunks& message) {
  if (OpenRound* round = find_round(message.round)) round->said(island, message);
}

void RoundCoordinator::said(MeshIsland& island, const IslandLeaseReturned& message) {
  OpenRound* round = find_round(message.round);
  if (round == nullptr) return;
  const RoundPart& part = round->parts().of(island.id());
  if (part.role == RoundPart::Role::kTrainer && part.begun.validate) {
    act_on_validation(island.id(), trust_.validation().drop(island.id()));  // it would have told by now
  }
  round->said(island, message);
}

void RoundCoordinator::said(MeshIsland& island, const IslandValidation& message) {
  if (!is_loss(message.loss_nats)) return;
  act_on_validation(island.id(), trust_.validation().report(island.id(), message.outer_step, message.loss_nats));
}

void RoundCoordinator::said(MeshIsland& island, const IslandDurable& message) { island.durable = message.states; }

void RoundCoordinator::said(MeshIsland& island, const IslandLinkReport& message) {
  links_.report(island.id(), message, members_);
}

void RoundCoordinator::said(MeshIsland& island, const IslandLeaving& message) {
  // The island may be gone behind this: NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
  const IslandId id = island.id();
  message.keeps_place ? pause(id) : remove(id, true, message.reason);
  turn_.act(CloseConnection{id});
}

}  // namespace atl
