#include "tests/net/mesh/simulated_mesh.h"

#include <algorithm>

#include "net/base/sha256.h"

namespace atl {

std::string fake_sha256(const std::string& of) { return sha256_hex(as_bytes(of)); }

SimulatedMesh::SimulatedMesh(RunConfig run) : run_(std::move(run)) {
  state_hashes_[0] = fake_sha256("initial");
  disk_.agreed_hash = state_hashes_[0];
  disk_.state_hashes[OuterStep{0}] = state_hashes_[0];
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
  kill(number);
  Island& fresh = island(number);
  fresh.running = true;
  if (!fresh.durable.empty()) {
    fresh.outer_step = fresh.durable.back().outer_step;
    fresh.state_hash = fresh.durable.back().state_hash;
  }
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
  event.hello.state_hash = said_hash(island);
  if (island.lies.step) event.hello.outer_step = OuterStep{island.outer_step.value_or(OuterStep{0}).value + 3};
  if (keeps_states) event.hello.durable = island.durable;
  if (keeps_states && island.newest_commit) {
    event.proven_commit = island.newest_commit;
    event.proven_epoch = island.newest_commit->epoch;
  }
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
  if (island.linked) cut(number);
  Island dead;
  dead.id = island.id;
  dead.lies = island.lies;
  if (keeps_states) {  // its disk stays
    dead.durable = island.durable;
    dead.kept_average = island.kept_average;
    dead.newest_commit = island.newest_commit;
  }
  island = std::move(dead);
}

void SimulatedMesh::remove(int number) {
  disk_.removed.insert(island(number).id);
  hub_hears(IslandRemoved{island(number).id, "removed"});
}

void SimulatedMesh::restart_hub() {
  disk_.open_leases.clear();
  disk_.returned_leases.clear();
  disk_.lease_cursor = lease_floor_;
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
  ++disk_.epoch;
  hub_.emplace(run_, disk_, [](const HubCommit& commit) { return fake_sha256(commit_record(commit)); });
}

void SimulatedMesh::roll_back(OuterStep to, bool automatic) {
  RollBack event{to, disk_.state_hashes.at(to), ++disk_.epoch, {}, "asked for", automatic};
  for (const auto& [first, row] : lease_rows_) {
    if (row.first >= to.value && used_up_.contains(first)) event.leases.push_back(row.second.range);
  }
  carry_out(hub_->next(event, now_));
}

// Leases of what is undone are free again, and its states are no more.
void SimulatedMesh::note_rollback(const PersistRollback& back) {
  for (auto& [first, row] : lease_rows_) {
    if (row.first < back.to.value || !used_up_.contains(first)) continue;
    used_up_.erase(first);
    std::erase_if(committed_leases_, [&](const LeaseRange& range) { return range.first == first; });
  }
  disk_.committed = back.to;
  disk_.record_epoch = disk_.epoch = back.epoch;
  disk_.last_commit.reset();
  disk_.restored = false;
  disk_.spoiled.reset();
  disk_.last_attempt = Attempt{0};
  disk_.agreed_hash = disk_.state_hashes.at(back.to);
  std::erase_if(state_hashes_, [&](const auto& entry) { return entry.first > back.to.value; });
  std::erase_if(disk_.state_hashes, [&](const auto& entry) { return entry.first > back.to; });
}

void SimulatedMesh::back_up() { backup_ = {disk_, lease_rows_, used_up_}; }

void SimulatedMesh::restore() {
  const std::uint64_t epoch = disk_.epoch;
  std::tie(disk_, lease_rows_, used_up_) = backup_.value();
  disk_.epoch = epoch;  // by the clock, a later one than any before
  disk_.restored = true;
  committed_leases_.clear();
  restart_hub();
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
  if (!wants_back_) return;
  const OuterStep to = *std::exchange(wants_back_, std::nullopt);
  rollbacks_that_fail-- > 0 ? hub_hears(RollBackFailed{to}) : roll_back(to, true);
}

// ---- the hub's actions, and what must hold

void SimulatedMesh::carry_out(const RoundCoordinator::Actions& actions) {
  bool just_committed = false;
  for (const CoordinatorAction& action : actions) {
    if (const auto* send = std::get_if<SendTo>(&action)) {
      Island* island = find(send->island);
      if (const auto* commit = std::get_if<HubCommit>(&send->message)) {
        check_commit_was_persisted(*commit);
        if (just_committed && (island == nullptr || !holds(*island, *commit)))
          violate("a member is told to commit what it does not hold");
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
      disk_.state_hashes[hash->outer_step] = hash->state_hash;
      const auto honest = state_hashes_.find(hash->outer_step.value);
      if (honest != state_hashes_.end() && honest->second != hash->state_hash) {
        violate("a state is agreed on that no honest island computed");
      }
    } else if (const auto* back = std::get_if<PersistRollback>(&action)) {
      note_rollback(*back);
    } else if (const auto* forth = std::get_if<PersistFastForward>(&action)) {
      disk_.committed = OuterStep{forth->commit.round.value + 1};
      disk_.last_commit = forth->commit;
      disk_.record_epoch = forth->commit.epoch;
      disk_.agreed_hash.reset();
      disk_.spoiled.reset();
      for (auto& [first, row] : lease_rows_) {
        if (first < forth->commit.lease_cursor) used_up_.insert(first);
      }
      lease_floor_ = forth->commit.lease_cursor;
    } else if (const auto* spoiled = std::get_if<PersistSpoiled>(&action)) {
      disk_.spoiled = spoiled->state;
    } else if (const auto* want = std::get_if<WantRollback>(&action)) {
      wants_back_ = want->to;
    } else if (std::get_if<StepDown>(&action) != nullptr) {
      stepped_down = true;
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
  disk_.record_epoch = commit.epoch;
  disk_.restored = false;
  disk_.last_attempt = Attempt{0};
  disk_.agreed_hash.reset();
  std::erase_if(disk_.state_hashes, [&](const auto& entry) { return entry.first >= disk_.committed; });
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

// What its disk keeps: the newest three states.
void SimulatedMesh::keep(Island& island) {
  if (!keeps_states) return;
  std::erase_if(island.durable, [&](const HeldState& held) { return held.outer_step >= *island.outer_step; });
  island.durable.push_back({*island.outer_step, island.state_hash});
  if (island.durable.size() > 3) island.durable.erase(island.durable.begin());
  island.outbox.push_back(IslandDurable{island.durable});
}

std::string SimulatedMesh::said_hash(const Island& island) const {
  return island.lies.state_hash && island.outer_step ? fake_sha256("a lie of " + island.state_hash) : island.state_hash;
}

void SimulatedMesh::adopt(Island& island, OuterStep step, std::string hash) {
  island.outer_step = step;
  island.state_hash = std::move(hash);
  keep(island);
  island.round.reset();
  island.average.reset();
  island.recover.reset();
  island.outbox.push_back(IslandRecovered{step, said_hash(island)});
}

void SimulatedMesh::take(Island& island, const HubMessage& message) {
  if (std::holds_alternative<HubInitialise>(message)) {
    adopt(island, OuterStep{0}, state_hashes_[0]);
  } else if (const auto* recover = std::get_if<HubRecover>(&message)) {
    island.round.reset();
    island.attempt.reset();
    island.recover = *recover;
  } else if (const auto* begin = std::get_if<HubRoundBegin>(&message)) {
    if (island.outer_step != begin->round) {
      violate(island.id.value + " is to train " + std::to_string(begin->round.value) + " and holds " +
              (island.outer_step ? std::to_string(island.outer_step->value) : "nothing"));
    }
    const bool same = island.round && island.round->round == begin->round &&
                      island.round->inner_steps == begin->inner_steps &&
                      island.round->lease_first_sequence == begin->lease_first_sequence;
    island.round = *begin;
    island.recover.reset();
    if (!same) island.inner_done = false;
    if (same && island.inner_done) island.inner_done = false;  // says ready again
    if (!same) island.average.reset();
    if (begin->validate && trains_by_itself) {
      island.outbox.push_back(IslandValidation{begin->round, island.lies.validation ? 99.0 : 2.0});
    } else if (island.lies.validation) {
      island.outbox.push_back(IslandValidation{begin->round, 0.1});
    }
  } else if (const auto* attempt = std::get_if<HubAttempt>(&message)) {
    if (island.round && island.round->round == attempt->round) begin_attempt(island, *attempt);
  } else if (const auto* abort = std::get_if<HubAbort>(&message)) {
    answer_abort(island, *abort);
  } else if (const auto* commit = std::get_if<HubCommit>(&message)) {
    if (island.outer_step == OuterStep{commit->round.value + 1}) {
      island.outbox.push_back(IslandApplied{*island.outer_step, said_hash(island)});
    } else if (island.outer_step != commit->round || !holds(island, *commit)) {
      island.outbox.push_back(IslandAttemptFailed{commit->round, commit->attempt, std::nullopt, "does not hold it"});
    } else {
      island.newest_commit = *commit;
      island.outer_step = OuterStep{commit->round.value + 1};
      island.state_hash = fake_sha256(island.state_hash + commit->digest);
      island.round.reset();
      island.attempt.reset();
      island.average.reset();
      keep(island);
      island.outbox.push_back(IslandApplied{*island.outer_step, said_hash(island)});
    }
  } else if (const auto* show = std::get_if<HubShowChunks>(&message)) {
    IslandChunks answer{show->round, show->attempt, {}};
    if (island.chunks_of == show->attempt) answer.digests = island.chunks;
    island.outbox.push_back(std::move(answer));
  } else if (const auto* goodbye = std::get_if<HubGoodbye>(&message)) {
    island.goodbye = *goodbye;
  }
}

// In memory, or on its disk from before its process died.
bool SimulatedMesh::holds(const Island& island, const HubCommit& commit) {
  return (island.average && island.average->second == commit.digest) ||
         (island.kept_average && *island.kept_average == std::pair(commit.round, commit.digest));
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
      const HeldState wanted{island.recover->outer_step, island.recover->state_hash};
      const bool own = id == island.id && std::ranges::find(island.durable, wanted) != island.durable.end();
      return own || (source != nullptr && source->running && source->outer_step == island.recover->outer_step &&
                     source->state_hash == island.recover->state_hash);
    };
    if (std::ranges::none_of(island.recover->sources, serves)) return false;
    adopt(island, island.recover->outer_step, std::string(island.recover->state_hash));
    return true;
  }
  if (island.round && !island.inner_done) {
    island.inner_done = true;
    const std::uint64_t tokens =
        std::uint64_t{island.round->inner_steps} * run_.sequences_per_step * run_.sequence_length;
    IslandReady ready{island.round->round, tokens, 0.5, 2.0};
    if (island.lies.norm) ready.norm_over_steps = 50;
    if (island.lies.tokens && tokens > 0) ready.tokens = 10 * tokens;
    island.outbox.push_back(ready);
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
    finish_average(island);
    island.attempt.reset();
    return true;
  }
  return false;
}

// By the ring's schedule: chunk c is owned by rank c - 1, and everybody between its owner and an island passed it on.
std::vector<std::string> SimulatedMesh::chunks_held_by(const Island& island, const HubAttempt& attempt) {
  const std::size_t world_size = attempt.order.size();
  const auto place = std::ranges::find(attempt.order, island.id, &AttemptMember::id) - attempt.order.begin();
  std::vector<std::string> chunks;
  for (std::size_t chunk = 0; chunk < world_size; ++chunk) {
    std::string of = "chunk " + std::to_string(chunk);
    for (std::size_t rank = (chunk + world_size - 1) % world_size; rank != static_cast<std::size_t>(place);
         rank = (rank + 1) % world_size) {
      const Island* passes_on = find(attempt.order[rank].id);
      const bool owner = rank == (chunk + world_size - 1) % world_size;
      if (!owner && passes_on->lies.bytes) of += " altered by " + passes_on->id.value;
    }
    chunks.push_back(fake_sha256(of));
  }
  return chunks;
}

bool SimulatedMesh::is_too_large(const Island& island, const HubAttempt& attempt) {
  if (island.lies.complaint) return true;
  if (attempt.norm_limit == 0) return false;
  double norm = 0, tokens = 0;
  for (const AttemptMember& member : attempt.order) {
    const Lies& lies = find(member.id)->lies;
    const double steps = static_cast<double>(member.tokens) / (run_.sequences_per_step * run_.sequence_length);
    norm += static_cast<double>(member.tokens) * (lies.norm || lies.hidden_norm ? 50 : 0.5) * steps;
    tokens += static_cast<double>(member.tokens);
  }
  const bool lies = island.lies.hidden_norm;  // of course it finds nothing amiss
  return !lies && norm / tokens > attempt.norm_limit;
}

void SimulatedMesh::finish_average(Island& island) {
  const HubAttempt attempt = *island.attempt;
  average_buckets(island, kBuckets);
  island.chunks = chunks_held_by(island, attempt);
  island.chunks_of = attempt.attempt;
  if (island.lies.links && attempt.order.size() > 1) {
    const IslandId victim = attempt.order[attempt.order[0].id == island.id ? 1 : 0].id;
    island.outbox.push_back(
        IslandAttemptFailed{attempt.round, attempt.attempt, victim, "a lie", {}, /*silent=*/true, std::nullopt});
    island.lies.links = false;  // now and then
    return;
  }
  if (is_too_large(island, attempt)) {
    IslandAttemptFailed refusal{attempt.round, attempt.attempt, std::nullopt, "too large"};
    refusal.too_large = true;
    island.outbox.push_back(std::move(refusal));
    return;
  }
  std::string of;
  for (const std::string& bucket : island.buckets) of += bucket;
  for (std::size_t i = 0; i < island.chunks.size(); ++i) {
    if (island.chunks[i] != fake_sha256("chunk " + std::to_string(i))) of += island.chunks[i];
  }
  if (wrong_digest.contains(island.id)) of += wrong_digest[island.id];
  if (island.lies.digest) of += "a lie";
  island.average = {attempt.attempt, fake_sha256(of)};
  if (keeps_states) island.kept_average = {attempt.round, island.average->second};
  island.outbox.push_back(IslandHave{attempt.round, attempt.attempt, island.average->second, 0.1});
}

void SimulatedMesh::settle() {
  for (int i = 0; i < 400; ++i) {
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
