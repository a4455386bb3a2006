#include "tests/net/mesh/simulated_mesh.h"

#include <algorithm>

#include "net/base/sha256.h"

namespace atl {

std::string fake_sha256(const std::string& of) { return sha256_hex(as_bytes(of)); }

SimulatedMesh::SimulatedMesh(RunConfig run) : run_(std::move(run)) {
  state_hashes_[0] = fake_sha256("initial");
  restart_hub();
}

SimulatedMesh::Island& SimulatedMesh::island(int number) {
  Island& island = islands_[number];
  island.id = IslandId{"isl-" + std::to_string(number)};
  return island;
}

SimulatedMesh::Island* SimulatedMesh::find(const IslandId& id) {
  for (auto& [number, island] : islands_) {
    if (island.id == id) return &island;
  }
  return nullptr;
}

void SimulatedMesh::violate(std::string what) {
  if (violation_.empty()) violation_ = std::move(what);
}

// ---- what happens to islands and hub

void SimulatedMesh::start(int number) {
  Island& fresh = island(number);
  if (fresh.linked) cut(number);
  const IslandId id = fresh.id;
  fresh = Island{};
  fresh.id = id;
  fresh.running = true;
  link(number);
}

void SimulatedMesh::link(int number) {
  Island& island = this->island(number);
  island.linked = true;
  island.inbox.clear();
  IslandConnected event;
  event.entry = RosterEntry{island.id, island.id.value,
                            Address{"10.0.0.1", island.port > 0 ? island.port : static_cast<std::uint16_t>(number)},
                            fake_sha256(island.id.value)};
  event.hello.outer_step = island.outer_step;
  event.hello.state_hash = island.state_hash;
  carry_out(hub_->next(event, now_));
}

void SimulatedMesh::cut(int number) {
  Island& island = this->island(number);
  island.linked = false;
  island.inbox.clear();
  island.outbox.clear();
  carry_out(hub_->next(IslandDisconnected{island.id}, now_));
}

void SimulatedMesh::kill(int number) {
  Island& island = this->island(number);
  const IslandId id = island.id;
  if (island.linked) cut(number);
  island = Island{};
  island.id = id;
}

void SimulatedMesh::restart_hub() {
  disk_.open_leases.clear();
  disk_.returned_leases.clear();
  disk_.lease_cursor = 0;
  for (const auto& [first, row] : lease_rows_) {
    const auto& [round, lease] = row;
    disk_.lease_cursor = std::max(disk_.lease_cursor, first + lease.range.sequences);
    if (used_up_.contains(first)) continue;
    if (round == disk_.committed.value) {
      disk_.open_leases.push_back(lease);
    } else {
      disk_.returned_leases.push_back(lease.range);
    }
  }
  for (auto& [number, island] : islands_) {
    island.linked = false;
    island.inbox.clear();
    island.outbox.clear();
  }
  hub_.emplace(run_, disk_, [](const HubCommit& commit) { return fake_sha256(commit_record(commit)); });
}

void SimulatedMesh::say(int number, IslandMessage message) {
  carry_out(hub_->next(IslandSaid{island(number).id, std::move(message)}, now_));
}

void SimulatedMesh::pass(Clock::duration time) {
  now_ += time;
  for (auto& [number, island] : islands_) {
    if (island.linked) carry_out(hub_->next(IslandSaid{island.id, IslandHeartbeat{}}, now_));
  }
  carry_out(hub_->next(Tick{}, now_));
}

// ---- the hub's actions, and what must hold

void SimulatedMesh::carry_out(const RoundCoordinator::Actions& actions) {
  bool just_committed = false;
  for (const CoordinatorAction& action : actions) {
    if (const auto* send = std::get_if<SendTo>(&action)) {
      Island* island = find(send->island);
      if (const auto* commit = std::get_if<HubCommit>(&send->message)) {
        check_commit_was_persisted(*commit);
        const bool holds = island != nullptr && island->average && island->average->second == commit->digest;
        if (just_committed && !holds) violate("a member is told to commit what it does not hold");
      }
      if (std::holds_alternative<HubProbe>(send->message) && hub_->phase() == RoundCoordinator::Phase::kSyncing) {
        violate("a link is probed while the ring needs it");
      }
      if (island != nullptr && island->linked) island->inbox.push_back(send->message);
    } else if (const auto* close = std::get_if<CloseConnection>(&action)) {
      if (Island* island = find(close->island)) {
        for (const HubMessage& message : island->inbox) {
          if (const auto* goodbye = std::get_if<HubGoodbye>(&message)) island->goodbye = *goodbye;
        }
        island->linked = false;
      }
    } else if (const auto* dial = std::get_if<DialIsland>(&action)) {
      dials_.push_back(*dial);
    } else if (const auto* leases = std::get_if<PersistLeases>(&action)) {
      for (const IslandLease& lease : leases->leases) {
        if (used_up_.contains(lease.range.first)) violate("a used up lease is given out again");
        lease_rows_[lease.range.first] = {leases->round.value, lease};
      }
    } else if (const auto* attempt = std::get_if<PersistAttempt>(&action)) {
      disk_.last_attempt = attempt->attempt;
    } else if (const auto* hash = std::get_if<PersistStateHash>(&action)) {
      if (hash->outer_step == disk_.committed) disk_.agreed_hash = hash->state_hash;
    } else if (const auto* publish = std::get_if<Publish>(&action)) {
      news_.push_back(publish->news);
    } else {
      note_commit(std::get<PersistCommit>(action));
      just_committed = true;
    }
  }
}

void SimulatedMesh::note_commit(const PersistCommit& persist) {
  const HubCommit& commit = persist.commit;
  if (commit.round != disk_.committed) violate("round " + std::to_string(commit.round.value) + " is committed twice");
  for (const LeaseRange& lease : persist.leases) {
    if (!used_up_.insert(lease.first).second) violate("a lease is committed twice");
    committed_leases_.push_back(lease);
  }
  disk_.committed = OuterStep{commit.round.value + 1};
  disk_.last_commit = commit;
  disk_.last_attempt = Attempt{0};
  disk_.agreed_hash.reset();
  state_hashes_[disk_.committed.value] = fake_sha256(state_hashes_[commit.round.value] + commit.digest);
  commits_.push_back(commit);
}

void SimulatedMesh::check_commit_was_persisted(const HubCommit& commit) {
  if (!disk_.last_commit || disk_.last_commit->round != commit.round || disk_.last_commit->digest != commit.digest) {
    violate("a commit is told before it is on the disk");
  }
}

// ---- islands

bool SimulatedMesh::act(Island& island) {
  if (!island.running) return false;
  if (!island.outbox.empty() && island.linked) {
    const IslandMessage message = island.outbox.front();
    island.outbox.pop_front();
    carry_out(hub_->next(IslandSaid{island.id, message}, now_));
    return true;
  }
  if (!island.inbox.empty()) {
    const HubMessage message = island.inbox.front();
    island.inbox.pop_front();
    island.received.push_back(message);
    take(island, message);
    return true;
  }
  return trains_by_itself && work(island);
}

void SimulatedMesh::adopt(Island& island, OuterStep step, std::string hash) {
  island.outer_step = step;
  island.state_hash = std::move(hash);
  island.round.reset();
  island.average.reset();
  island.recover.reset();
  island.outbox.push_back(IslandRecovered{step, island.state_hash});
}

void SimulatedMesh::take(Island& island, const HubMessage& message) {
  if (std::holds_alternative<HubInitialise>(message)) {
    adopt(island, OuterStep{0}, state_hashes_[0]);
  } else if (const auto* recover = std::get_if<HubRecover>(&message)) {
    island.round.reset();
    island.attempt.reset();
    island.recover = *recover;
  } else if (const auto* begin = std::get_if<HubRoundBegin>(&message)) {
    if (island.outer_step != begin->round) violate(island.id.value + " is to train a state that it does not hold");
    const bool same = island.round && island.round->round == begin->round &&
                      island.round->inner_steps == begin->inner_steps &&
                      island.round->lease_first_sequence == begin->lease_first_sequence;
    island.round = *begin;
    if (!same) island.inner_done = false;
    if (same && island.inner_done) island.inner_done = false;  // says ready again
    if (!same) island.average.reset();
  } else if (const auto* attempt = std::get_if<HubAttempt>(&message)) {
    if (island.round && island.round->round == attempt->round) begin_attempt(island, *attempt);
  } else if (const auto* abort = std::get_if<HubAbort>(&message)) {
    answer_abort(island, *abort);
  } else if (const auto* commit = std::get_if<HubCommit>(&message)) {
    if (island.outer_step == OuterStep{commit->round.value + 1}) {
      island.outbox.push_back(IslandApplied{*island.outer_step, island.state_hash});
    } else if (!island.average || island.average->second != commit->digest) {
      island.outbox.push_back(IslandAttemptFailed{commit->round, commit->attempt, std::nullopt, "does not hold it"});
    } else {
      island.outer_step = OuterStep{commit->round.value + 1};
      island.state_hash = fake_sha256(island.state_hash + commit->digest);
      island.round.reset();
      island.attempt.reset();
      island.average.reset();
      island.outbox.push_back(IslandApplied{*island.outer_step, island.state_hash});
    }
  } else if (const auto* goodbye = std::get_if<HubGoodbye>(&message)) {
    island.goodbye = *goodbye;
  }
}

// Buckets that the hub keeps must be there; the others are averaged anew.
void SimulatedMesh::begin_attempt(Island& island, const HubAttempt& attempt) {
  const bool is_next = island.buckets_of.value + 1 == attempt.attempt.value;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    const bool stays = !attempt.final_buckets.empty() && attempt.final_buckets[i];
    if (stays && (!is_next || island.buckets[i].empty()))
      violate(island.id.value + " is to keep what it does not hold");
    if (!stays) island.buckets[i].clear();
  }
  island.buckets_of = attempt.attempt;
  island.attempt = attempt;
  island.average.reset();
}

// The first `count` buckets: each a function of the members that averaged it.
void SimulatedMesh::average_buckets(Island& island, std::size_t count) {
  std::string of = "round " + std::to_string(island.attempt->round.value);
  for (const AttemptMember& member : island.attempt->order) of += member.id.value + std::to_string(member.tokens);
  for (std::size_t i = 0; i < count; ++i) {
    if (island.buckets[i].empty()) island.buckets[i] = of + " bucket " + std::to_string(i);
  }
}

void SimulatedMesh::answer_abort(Island& island, const HubAbort& abort) {
  if (!island.round || island.round->round != abort.round) return;
  const bool averages = island.attempt && island.attempt->attempt <= abort.attempt;
  const bool holds = island.average && island.average->first <= abort.attempt;
  if (!averages && !holds) return;
  island.attempt.reset();
  island.average.reset();
  IslandAttemptFailed answer{abort.round, island.buckets_of, std::nullopt, abort.reason};
  for (const std::string& bucket : island.buckets) answer.whole_buckets.push_back(!bucket.empty());
  island.outbox.push_back(std::move(answer));
}

bool SimulatedMesh::work(Island& island) {
  if (island.recover) {
    // Succeeds when one of the sources is there and still holds that state.
    const auto serves = [&](const IslandId& id) {
      const Island* source = find(id);
      return source != nullptr && source->running && source->outer_step == island.recover->outer_step &&
             source->state_hash == island.recover->state_hash;
    };
    if (std::ranges::none_of(island.recover->sources, serves)) return false;
    adopt(island, island.recover->outer_step, std::string(island.recover->state_hash));
    return true;
  }
  if (island.round && !island.inner_done) {
    island.inner_done = true;
    const std::uint64_t tokens =
        std::uint64_t{island.round->inner_steps} * run_.sequences_per_step * run_.sequence_length;
    island.outbox.push_back(IslandReady{island.round->round, tokens, 0.5, 2.0});
    return true;
  }
  if (island.attempt && island.round && island.inner_done) {
    for (const AttemptMember& member : island.attempt->order) {
      const Island* other = find(member.id);
      if (other != nullptr && other->running) continue;
      // Hangs until the hub aborts, some with more and some with fewer buckets.
      average_buckets(island, std::hash<std::string>{}(island.id.value + member.id.value) % kBuckets);
      return false;
    }
    average_buckets(island, kBuckets);
    std::string of;
    for (const std::string& bucket : island.buckets) of += bucket;
    if (wrong_digest.contains(island.id)) of += wrong_digest[island.id];
    island.average = {island.attempt->attempt, fake_sha256(of)};
    island.outbox.push_back(IslandHave{island.attempt->round, island.attempt->attempt, island.average->second, 0.1});
    island.attempt.reset();
    return true;
  }
  return false;
}

void SimulatedMesh::settle() {
  for (int i = 0; i < 10'000; ++i) {
    bool acted = false;
    for (auto& [number, island] : islands_) acted = act(island) || acted;
    if (!acted) return;
  }
}

void SimulatedMesh::settle_once() {
  for (auto& [number, island] : islands_) act(island);
}

void SimulatedMesh::settle_randomly(std::mt19937& random, int steps) {
  if (islands_.empty()) return;
  for (int i = 0; i < steps; ++i) {
    auto chosen = std::next(islands_.begin(), static_cast<int>(random() % islands_.size()));
    act(chosen->second);
  }
}

}  // namespace atl
