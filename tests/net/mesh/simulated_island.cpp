#include "tests/net/mesh/simulated_island.h"

#include <algorithm>

#include "net/base/sha256.h"

namespace atl {
namespace {

using Lane = SimulatedIsland::Lane;

// The first `count` buckets: each a function of the members that averaged it.
void average_buckets(Lane& lane, std::size_t count) {
  std::string of = "round " + std::to_string(lane.attempt->round.value);
  for (const AttemptMember& member : lane.attempt->order) of += member.id.value + std::to_string(member.tokens);
  for (std::size_t i = 0; i < count; ++i) {
    if (lane.buckets[i].empty()) lane.buckets[i] = of + " bucket " + std::to_string(i);
  }
}

}  // namespace

std::string fake_sha256(const std::string& of) { return sha256_hex(as_bytes(of)); }

SimulatedIsland* SimulatedWorld::find(const IslandId& id) {
  for (auto& [number, island] : all) {
    if (island.id == id) return &island;
  }
  return nullptr;
}

void SimulatedWorld::violate(std::string what) {
  if (broken_rule.empty()) broken_rule = std::move(what);
}

SimulatedIsland SimulatedIsland::after_death(bool disk_stays) const {
  SimulatedIsland dead;
  dead.id = id;
  dead.lies = lies;
  dead.dials_ahead = dials_ahead;
  if (!disk_stays) return dead;
  dead.durable = durable;
  dead.logged = logged;
  dead.newest_commit = newest_commit;
  for (std::size_t i = 0; i < lanes.size(); ++i) dead.lanes[i].kept_average = lanes[i].kept_average;
  return dead;
}

std::string SimulatedIsland::said_hash() const {
  return lies.state_hash && outer_step ? fake_sha256("a lie of " + state_hash) : state_hash;
}

bool SimulatedIsland::holds(const HubCommit& commit) const {
  const Lane& of = lane(commit.fragment);
  return (of.average && of.average->second == commit.digest) ||
         (of.kept_average && *of.kept_average == std::pair(commit.round, commit.digest)) ||
         (logged.contains(commit.round) && logged.at(commit.round).digest == commit.digest);
}

std::optional<HeldState> SimulatedIsland::newest_on_disk() const {
  if (durable.empty()) return std::nullopt;
  HeldState state = durable.back();
  for (auto next = logged.find(state.outer_step); next != logged.end() && next->second.from == state.state_hash;
       next = logged.find(state.outer_step)) {
    state = {OuterStep{state.outer_step.value + 1}, next->second.made};
  }
  return state;
}

std::vector<HeldState> SimulatedIsland::all_on_disk() const {
  std::vector<HeldState> states;
  for (HeldState state : durable) {
    for (;;) {
      if (std::ranges::find(states, state) == states.end()) states.push_back(state);
      const auto next = logged.find(state.outer_step);
      if (next == logged.end() || next->second.from != state.state_hash) break;
      state = {OuterStep{state.outer_step.value + 1}, next->second.made};
    }
  }
  std::ranges::sort(states, {}, &HeldState::outer_step);
  if (states.size() > kMaxHeldStates) states.erase(states.begin(), states.end() - kMaxHeldStates);
  return states;
}

// What its disk keeps: the newest three whole states, and the rounds since the oldest of them.
void SimulatedIsland::keep(const SimulatedWorld& world, bool whole) {
  if (!world.keeps_states) return;
  const std::vector<HeldState> kept = all_on_disk();
  const bool leads_here = std::ranges::find(kept, HeldState{*outer_step, state_hash}) != kept.end();
  if (whole || !leads_here || outer_step->value % world.snapshot_every == 0) {
    std::erase_if(durable, [&](const HeldState& held) { return held.outer_step >= *outer_step; });
    durable.push_back({*outer_step, state_hash});
    if (durable.size() > 3) durable.erase(durable.begin());
    std::erase_if(logged, [&](const auto& round) { return round.first < durable.front().outer_step; });
  }
  outbox.push_back(IslandDurable{all_on_disk()});
}

void SimulatedIsland::drop_rounds() {
  for (Lane& each : lanes) each.round.reset();
}

void SimulatedIsland::adopt(SimulatedWorld& world, OuterStep step, std::string hash) {
  outer_step = step;
  state_hash = std::move(hash);
  keep(world, /*whole=*/true);
  drop_rounds();
  for (Lane& each : lanes) each.average.reset();
  recover.reset();
  outbox.push_back(IslandRecovered{step, said_hash()});
}

// ---- what the hub says

void SimulatedIsland::take(SimulatedWorld& world, const HubMessage& message) {
  if (std::holds_alternative<HubInitialise>(message)) {
    adopt(world, OuterStep{0}, world.honest_hashes[0]);
  } else if (const auto* source = std::get_if<HubRecover>(&message)) {
    drop_rounds();
    for (Lane& each : lanes) each.attempt.reset();
    recover = *source;
  } else if (const auto* begin = std::get_if<HubRoundBegin>(&message)) {
    take(world, *begin);
  } else if (const auto* attempt = std::get_if<HubAttempt>(&message)) {
    take(world, *attempt);
  } else if (const auto* abort = std::get_if<HubAbort>(&message)) {
    take(*abort);
  } else if (const auto* commit = std::get_if<HubCommit>(&message)) {
    take(world, *commit);
  } else if (const auto* show = std::get_if<HubShowChunks>(&message)) {
    take(*show);
  } else if (const auto* farewell = std::get_if<HubGoodbye>(&message)) {
    goodbye = *farewell;
  }
}

// It holds an outer state to which all is committed that was averaged of this fragment before; with one fragment that
// is the round's own. Where rounds overlap, it is through with the one before.
void SimulatedIsland::take(SimulatedWorld& world, const HubRoundBegin& begin) {
  const std::uint32_t fragments = world.run.fragments;
  const bool may_train = outer_step && *outer_step <= begin.round && begin.round.value - outer_step->value < fragments;
  if (!may_train) {
    world.violate(id.value + " is to train " + std::to_string(begin.round.value) + " and holds " +
                  (outer_step ? std::to_string(outer_step->value) : "nothing"));
  }
  if (may_train && *outer_step < begin.round) {
    const OuterStep before{begin.round.value - 1};
    // The hub may have heard that late, when it is to train it anew: then this round comes after that (work()).
    if (!said_ready.contains(before)) {
      world.violate(id.value + " is to train " + std::to_string(begin.round.value) + " before it has trained " +
                    std::to_string(before.value));
    }
  }
  Lane& its = lane(begin.fragment);
  const bool same = its.round && its.round->round == begin.round && its.round->inner_steps == begin.inner_steps &&
                    its.round->lease_first_sequence == begin.lease_first_sequence;
  its.round = begin;
  if (!same) {  // with other data: what was trained after it is given up
    for (Lane& later : lanes) {
      if (later.round && later.round->round > begin.round) later = Lane{};
    }
  }
  recover.reset();
  const bool says_ready_again = same && its.inner_done && world.trains_by_itself;
  its.inner_done = false;
  if (says_ready_again) train(world, its);
  if (!same) its.average.reset();
  const OuterStep evaluated = outer_step.value_or(begin.round);
  if (begin.validate && world.trains_by_itself) {
    outbox.push_back(IslandValidation{evaluated, lies.validation ? 99.0 : 2.0});
  } else if (lies.validation) {
    outbox.push_back(IslandValidation{evaluated, 0.1});
  }
}

// Buckets that the hub keeps must be there; the others are averaged anew.
void SimulatedIsland::take(SimulatedWorld& world, const HubAttempt& attempt) {
  Lane& its = lane(attempt.fragment);
  const bool has_work = its.round && its.round->round == attempt.round && (its.inner_done || !world.trains_by_itself);
  if (!has_work) {
    if (!outer_step || attempt.round < *outer_step) return;  // of a round gone by
    IslandAttemptFailed refusal{attempt.round, attempt.attempt, std::nullopt, "has no work of this round"};
    refusal.fragment = attempt.fragment;
    outbox.push_back(std::move(refusal));
    return;
  }
  const bool is_next = its.buckets_of.value + 1 == attempt.attempt.value;
  for (std::size_t i = 0; i < its.buckets.size(); ++i) {
    const bool stays = !attempt.final_buckets.empty() && attempt.final_buckets[i];
    if (stays && (!is_next || its.buckets[i].empty())) {
      world.violate(id.value + " is to keep what it does not hold");
    }
    if (!stays) its.buckets[i].clear();
  }
  its.buckets_of = attempt.attempt;
  its.attempt = attempt;
  its.average.reset();
}

void SimulatedIsland::take(const HubAbort& abort) {
  Lane& its = lane(abort.fragment);
  if (!its.round || its.round->round != abort.round) return;
  const bool averages = its.attempt && its.attempt->attempt <= abort.attempt;
  const bool holds_it = its.average && its.average->first <= abort.attempt;
  if (!averages && !holds_it) return;
  its.attempt.reset();
  its.average.reset();
  IslandAttemptFailed answer{abort.round, its.buckets_of, std::nullopt, abort.reason};
  answer.fragment = abort.fragment;
  for (const std::string& bucket : its.buckets) answer.whole_buckets.push_back(!bucket.empty());
  outbox.push_back(std::move(answer));
}

void SimulatedIsland::take(SimulatedWorld& world, const HubCommit& commit) {
  if (outer_step == OuterStep{commit.round.value + 1}) {
    outbox.push_back(IslandApplied{*outer_step, said_hash()});
  } else if (outer_step != commit.round || !holds(commit)) {
    IslandAttemptFailed failed{commit.round, commit.attempt, std::nullopt, "does not hold it"};
    failed.fragment = commit.fragment;
    outbox.push_back(std::move(failed));
  } else {
    newest_commit = commit;
    outer_step = OuterStep{commit.round.value + 1};
    const std::string from = std::exchange(state_hash, fake_sha256(state_hash + commit.digest));
    if (world.keeps_states) logged[commit.round] = {from, state_hash, commit.digest};
    Lane& its = lane(commit.fragment);
    its.round.reset();
    its.attempt.reset();
    its.average.reset();
    keep(world, /*whole=*/false);
    outbox.push_back(IslandApplied{*outer_step, said_hash()});
  }
}

void SimulatedIsland::take(const HubShowChunks& show) {
  const Lane& its = lane(show.fragment);
  IslandChunks answer{show.round, show.attempt, {}, show.fragment};
  if (its.chunks_of == show.attempt) answer.digests = its.chunks;
  outbox.push_back(std::move(answer));
}

// ---- work

bool SimulatedIsland::work(SimulatedWorld& world) {
  if (recover) return recover_now(world);
  std::vector<Lane*> busy;
  for (Lane& each : lanes) {
    if (each.round) busy.push_back(&each);
  }
  std::ranges::sort(busy, {}, [](const Lane* each) { return each->round->round; });
  // Training goes through the rounds in their order; averages come when they come.
  const auto untrained = std::ranges::find(busy, false, &Lane::inner_done);
  const bool averages_first = busy.size() > 1 && ++turns % 2 == 0;
  if (!averages_first && untrained != busy.end()) return train(world, **untrained);
  Lane* next = untrained == busy.end() ? nullptr : *untrained;
  if (turns % 4 == 0) std::ranges::reverse(busy);
  for (Lane* each : busy) {
    if (each->attempt && each->inner_done && average(world, *each)) return true;
  }
  return next != nullptr && train(world, *next);
}

// Succeeds when one of the sources is there and still holds that state.
bool SimulatedIsland::recover_now(SimulatedWorld& world) {
  const auto serves = [&](const IslandId& other) {
    const SimulatedIsland* source = world.find(other);
    const HeldState wanted{recover->outer_step, recover->state_hash};
    const std::vector<HeldState> kept = all_on_disk();
    const bool own = other == id && std::ranges::find(kept, wanted) != kept.end();
    return own || (source != nullptr && source->running && source->outer_step == recover->outer_step &&
                   source->state_hash == recover->state_hash);
  };
  const bool in_store =
      std::ranges::find(world.stored, HeldState{recover->outer_step, recover->state_hash}) != world.stored.end();
  const bool at_hub =
      world.run.begins_at_hub() && recover->outer_step == OuterStep{0} && recover->state_hash == world.honest_hashes[0];
  const bool from_elsewhere = recover->sources.empty() && (in_store || at_hub);
  if (!from_elsewhere && std::ranges::none_of(recover->sources, serves)) return false;
  adopt(world, recover->outer_step, std::string(recover->state_hash));
  return true;
}

bool SimulatedIsland::train(SimulatedWorld& world, Lane& its) {
  its.inner_done = true;
  const RunConfig& run = world.run;
  if (lies.no_data && its.round->inner_steps > 0) {
    outbox.push_back(
        IslandLeaseReturned{its.round->round, its.round->lease_first_sequence, "it is away", its.round->fragment});
    return true;
  }
  const std::uint64_t tokens = std::uint64_t{its.round->inner_steps} * run.sequences_per_step * run.sequence_length;
  IslandReady ready{its.round->round, tokens, 0.5, 2.0, its.round->fragment};
  if (tokens > 0) ready.lease_first_sequence = its.round->lease_first_sequence;
  if (lies.norm) ready.norm_over_steps = 50;
  if (lies.tokens && tokens > 0) ready.tokens = 10 * tokens;
  outbox.push_back(ready);
  said_ready.insert(ready.round);
  return true;
}

bool SimulatedIsland::average(SimulatedWorld& world, Lane& its) {
  for (const AttemptMember& member : its.attempt->order) {
    const SimulatedIsland* other = world.find(member.id);
    if (other != nullptr && other->running) continue;
    // Hangs until the hub aborts, some with more and some with fewer buckets.
    average_buckets(its, std::hash<std::string>{}(id.value + member.id.value) % kBuckets);
    return false;
  }
  finish_average(world, its);
  its.attempt.reset();
  return true;
}

void SimulatedIsland::finish_average(SimulatedWorld& world, Lane& its) {
  const HubAttempt attempt = *its.attempt;
  average_buckets(its, its.buckets.size());
  its.chunks = chunks_held(world, attempt);
  its.chunks_of = attempt.attempt;
  IslandAttemptFailed failed{attempt.round, attempt.attempt, std::nullopt, "too large"};
  failed.fragment = attempt.fragment;
  if (lies.links && attempt.order.size() > 1) {
    failed.peer = attempt.order[attempt.order[0].id == id ? 1 : 0].id;
    failed.reason = "a lie";
    failed.silent = true;
    outbox.push_back(std::move(failed));
    lies.links = false;  // now and then
    return;
  }
  if (finds_too_large(world, attempt)) {
    failed.too_large = true;
    outbox.push_back(std::move(failed));
    return;
  }
  std::string of;
  for (const std::string& bucket : its.buckets) of += bucket;
  for (std::size_t i = 0; i < its.chunks.size(); ++i) {
    if (its.chunks[i] != fake_sha256("chunk " + std::to_string(i))) of += its.chunks[i];
  }
  if (world.wrong_digest.contains(id)) of += world.wrong_digest[id];
  if (lies.digest) of += "a lie";
  its.average = {attempt.attempt, fake_sha256(of)};
  if (world.keeps_states) its.kept_average = {attempt.round, its.average->second};
  IslandHave have{attempt.round, attempt.attempt, its.average->second, 0.1, attempt.fragment};
  if (world.sketch) world.sketch(id, attempt, have);
  outbox.push_back(std::move(have));
}

// Chunk c is owned by rank c - 1, and everybody between its owner and an island passed it on; directly its owner sends
// it to each.
std::vector<std::string> SimulatedIsland::chunks_held(SimulatedWorld& world, const HubAttempt& attempt) const {
  const std::size_t world_size = attempt.order.size();
  const auto place = std::ranges::find(attempt.order, id, &AttemptMember::id) - attempt.order.begin();
  std::vector<std::string> chunks;
  for (std::size_t chunk = 0; chunk < world_size; ++chunk) {
    std::string of = "chunk " + std::to_string(chunk);
    if (attempt.schedule == Schedule::kDirect) {
      const SimulatedIsland* owner = world.find(attempt.order[(chunk + world_size - 1) % world_size].id);
      if (owner->id != id && owner->lies.bytes) of += " altered by " + owner->id.value;
      chunks.push_back(fake_sha256(of));
      continue;
    }
    for (std::size_t rank = (chunk + world_size - 1) % world_size; rank != static_cast<std::size_t>(place);
         rank = (rank + 1) % world_size) {
      const SimulatedIsland* passes_on = world.find(attempt.order[rank].id);
      const bool owner = rank == (chunk + world_size - 1) % world_size;
      if (!owner && passes_on->lies.bytes) of += " altered by " + passes_on->id.value;
    }
    chunks.push_back(fake_sha256(of));
  }
  return chunks;
}

bool SimulatedIsland::finds_too_large(SimulatedWorld& world, const HubAttempt& attempt) const {
  if (lies.complaint) return true;
  if (attempt.norm_limit == 0) return false;
  double norm = 0, tokens = 0;
  for (const AttemptMember& member : attempt.order) {
    const Lies& its_lies = world.find(member.id)->lies;
    const double steps =
        static_cast<double>(member.tokens) / (world.run.sequences_per_step * world.run.sequence_length);
    norm += static_cast<double>(member.tokens) * (its_lies.norm || its_lies.hidden_norm ? 50 : 0.5) * steps;
    tokens += static_cast<double>(member.tokens);
  }
  // Who gives too much finds nothing amiss, of course.
  return !lies.hidden_norm && norm / tokens > attempt.norm_limit;
}

}  // namespace atl
