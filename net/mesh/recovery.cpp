#include "net/mesh/recovery.h"

#include <algorithm>

namespace atl {
namespace {

constexpr int kWrongRecoveries = 3;  // in a row, then it is sent away

bool keeps(const MeshIsland& island, OuterStep step, const std::string& hash) {
  return std::ranges::find(island.durable, HeldState{step, hash}) != island.durable.end();
}

}  // namespace

void Recovery::place_returning(MeshIsland& island, const IslandHello& hello) {
  if (hello.outer_step == state_.committed()) return place_holder(island, hello.state_hash);
  const auto before = trust_.state_hash(hello.outer_step.value_or(state_.committed()));
  const bool is_the_runs = before.value_or(hello.state_hash) == hello.state_hash;
  const auto missed = state_.commits_since(hello.outer_step.value_or(state_.committed()), island.id());
  // Perhaps another process than the one that held the averages: it keeps its place until it says.
  if (!missed.empty() && is_the_runs) return lead(island, {*hello.outer_step, hello.state_hash}, missed);
  verdicts_.start_recovering(island.id());
  if (state_.committed().value == 0 && trust_.agreed()) return send_recover(island);
  if (!hello.outer_step && may_begin_at_beginning(island)) {
    island.catches_up = true;
    island.told_to_recover = state_.committed();
    turn_.send(island.id(), HubInitialise{});
  }
}

// Dead before its disk had a first whole state, it may have all averages since the beginning, which anybody can make.
// Where somebody who is here holds the committed state, or the store does, that is fetched.
bool Recovery::may_begin_at_beginning(const MeshIsland& island) const {
  const OuterStep committed = state_.committed();
  const auto holds_it = [&](const auto& entry) {
    const MeshIsland& other = entry.second;
    return other.connected && other.claimed && other.claimed->outer_step == committed;
  };
  const auto& agreed = trust_.agreed();
  const bool is_stored = agreed && safekeeping_.is_uploaded({committed, *agreed});
  return trust_.state_hash(OuterStep{0}) && !turn_.run().begins_at_hub() && !is_stored &&
         std::ranges::none_of(members_.islands(), holds_it) && !state_.commits_since(OuterStep{0}, island.id()).empty();
}

void Recovery::lead(MeshIsland& island, const HeldState& from, const std::vector<HubCommit>& missed) {
  island.standing = MeshIsland::Standing::kRecovering;
  island.catches_up = true;
  island.told_to_recover = state_.committed();
  island.recovered_hash.clear();
  island.claimed = from;
  trust_.agreement().expect(island.id());
  const std::size_t at_once = std::min<std::size_t>(missed.size(), turn_.run().fragments);
  for (std::size_t i = 0; i < at_once; ++i) turn_.send(island.id(), missed[i]);
}

void Recovery::place_holder(MeshIsland& island, const std::string& hash) {
  const auto& agreed = trust_.agreed();
  if (agreed && hash != *agreed) {
    verdicts_.start_recovering(island.id());
    return said(island, IslandRecovered{state_.committed(), hash});
  }
  trust_.agreement().report(island.id(), hash);
  if (agreed) {
    island.conduct.wrong_recoveries = 0;
    island.standing = MeshIsland::Standing::kTraining;
    island.recovered_hash.clear();
  } else if (island.standing == MeshIsland::Standing::kRecovering) {
    island.told_to_recover.reset();
    island.recovered_hash = hash;
  }
  if (island.standing == MeshIsland::Standing::kTraining) verdicts_.tell_parts(island.id());
}

void Recovery::said(MeshIsland& island, const IslandApplied& message) {
  const bool is_further = !island.claimed || island.claimed->outer_step < message.outer_step;
  island.claimed = HeldState{message.outer_step, message.state_hash};
  if (island.catches_up && is_further && message.outer_step < state_.committed()) {
    return lead_on(island, message.outer_step);
  }
  if (message.outer_step != state_.committed()) return;
  if (island.standing == MeshIsland::Standing::kRecovering) return place_holder(island, message.state_hash);
  trust_.agreement().report(island.id(), message.state_hash);
}

// An island takes in as many commits at once as it has lanes; each outer step makes room for one more.
void Recovery::lead_on(const MeshIsland& island, OuterStep held) {
  const auto missed = state_.commits_since(held, island.id());
  const std::size_t next = turn_.run().fragments - 1;
  if (next < missed.size()) turn_.send(island.id(), missed[next]);
}

void Recovery::said(MeshIsland& island, const IslandRecovered& message) {
  island.claimed = HeldState{message.outer_step, message.state_hash};
  const bool recovers = island.standing == MeshIsland::Standing::kRecovering;
  if (recovers && island.catches_up && message.outer_step == OuterStep{0} &&
      trust_.state_hash(OuterStep{0}) == message.state_hash) {
    return lead(island, {OuterStep{0}, message.state_hash}, state_.commits_since(OuterStep{0}, island.id()));
  }
  if (!recovers || message.outer_step != state_.committed()) return;
  island.recovered_hash = message.state_hash;
  // One that recovers may tell what nobody knows yet; it casts no doubt on what the others agreed on.
  if (trust_.agreed().value_or(message.state_hash) == message.state_hash) {
    trust_.agreement().report(island.id(), message.state_hash);
  }
}

void Recovery::begin(MeshIsland& island) {
  if (island.standing == MeshIsland::Standing::kTraining) island.recovers_since = turn_.now();
  island.standing = MeshIsland::Standing::kRecovering;
  island.catches_up = false;
  island.recovers_from_store = false;
  island.told_to_recover.reset();
  island.recovered_hash.clear();
  if (!island.left_behind_since) island.left_behind_since = turn_.now();
}

void Recovery::settle() {
  std::vector<IslandId> recovering;
  for (const auto& [id, island] : members_.islands()) {
    if (island.connected && island.standing == MeshIsland::Standing::kRecovering) recovering.push_back(id);
  }
  for (const IslandId& id : recovering) {
    if (MeshIsland* island = members_.find(id)) settle(*island);
  }
}

void Recovery::settle(MeshIsland& island) {
  const auto& agreed = trust_.agreed();
  if (!agreed) return;
  if (island.recovered_hash == *agreed) {
    island.standing = MeshIsland::Standing::kTraining;
    island.recovered_hash.clear();
    island.conduct.wrong_recoveries = 0;
    return verdicts_.tell_parts(island.id());
  }
  if (!island.recovered_hash.empty()) {
    island.recovered_hash.clear();
    island.told_to_recover.reset();
    if (++island.conduct.wrong_recoveries >= kWrongRecoveries) {
      const bool is_initial = state_.committed().value == 0;
      return verdicts_.send_away(
          island.id(), ErrorCode::kCorrupt,
          is_initial ? "its initial parameters are not those that the run begins with, three times in a row; it "
                       "must run the hub's version of atoll; if it does, check its memory"
                     : "it fetched the outer state three times and holds another hash each time; check its memory");
    }
  }
  // Who fetches it from the store, which others have to do as well, had better fetch it from those that came with it.
  const bool others_came = island.recovers_from_store && !others_with_state(island).empty();
  if (others_came || island.told_to_recover != state_.committed()) send_recover(island);
}

std::vector<IslandId> Recovery::others_with_state(const MeshIsland& island) const {
  std::vector<IslandId> others;
  for (const IslandId& holder : trust_.agreement().holders()) {
    if (members_.is_here(holder) && holder != island.id()) others.push_back(holder);
  }
  return others;
}

void Recovery::send_recover(MeshIsland& island) {
  island.catches_up = false;
  const OuterStep committed = state_.committed();
  const HashAgreement& agreement = trust_.agreement();
  const std::string& agreed = *agreement.agreed();
  std::vector<IslandId> sources = others_with_state(island);
  // Made, not fetched; what lies in a store, or at the hub, is fetched from each other as soon as somebody has it.
  const bool from_peers = !turn_.run().initial_state.empty() && !sources.empty();
  const bool at_hub = committed.value == 0 && turn_.run().begins_at_hub();
  if (committed.value == 0 && island.conduct.wrong_recoveries == 0 && !from_peers && !at_hub) {
    turn_.send(island.id(), HubInitialise{});
    island.told_to_recover = committed;
    return;
  }
  // Its own disk will do; or the only one left whose inner state went wrong still holds the outer state itself.
  const bool holds_it = agreement.reported(island.id()) == agreed;
  if ((sources.empty() && holds_it) || keeps(island, committed, agreed)) sources.push_back(island.id());
  // Else it waits until one that holds it comes back.
  island.recovers_from_store = sources.empty() && (at_hub || safekeeping_.is_uploaded({committed, agreed}));
  if (sources.empty() && !island.recovers_from_store) return;
  members_.send_roster_if_changed(island.id());
  turn_.send(island.id(), HubRecover{committed, agreed, std::move(sources)});
  island.told_to_recover = committed;
}

void Recovery::find_other_sources() {
  for (auto& [id, island] : members_.islands()) {
    const bool fetches = island.standing == MeshIsland::Standing::kRecovering && !island.catches_up;
    if (fetches) island.told_to_recover.reset();
  }
}

}  // namespace atl
