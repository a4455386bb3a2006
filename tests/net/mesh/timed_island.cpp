#include "tests/net/mesh/timed_island.h"

#include <algorithm>

#include "tests/net/mesh/simulated_island.h"
#include "tests/net/mesh/timed_mesh.h"

namespace atl {
namespace {

using namespace std::chrono_literals;

constexpr Clock::duration kRedial = 1s, kRecoverRetry = 1s, kProbeTakes = 500ms;
constexpr std::size_t kKept = 3;  // states, on its disk

}  // namespace

// ---- the connection to the hub

IslandHello TimedIsland::hello() {
  IslandHello hello;
  hello.outer_step = outer_step_;
  if (outer_step_) hello.state_hash = state_hash_;
  hello.durable = durable_;
  hello.dials_ahead = true;
  return hello;
}

void TimedIsland::link() {
  if (linked_) return;
  linked_ = true;
  said_goodbye_ = false;
  ++connection_;
  IslandConnected event;
  event.entry = RosterEntry{id_, id_.value, Address{id_.value, 1000}, ""};
  event.hello = hello();
  later(mesh_.times().message, [this, event] { mesh_.hub_hears(event); });
  later(mesh_.run().heartbeat, [this] { beat(); });
}

void TimedIsland::beat() {
  if (IslandMessage beats = IslandHeartbeat{}; says(beats)) say_now(std::move(beats));
  later(mesh_.run().heartbeat, [this] { beat(); });
}

void TimedIsland::unlink() {
  if (!linked_) return;
  linked_ = false;
  ++connection_;
  mesh_.after(mesh_.times().message, [this, connection = connection_] {
    if (connection == connection_) mesh_.hub_hears(IslandDisconnected{id_});
  });
}

void TimedIsland::later(Clock::duration time, std::function<void()> act) {
  mesh_.after(time, [this, connection = connection_, act = std::move(act)] {
    if (linked_ && connection == connection_) act();
  });
}

// An honest one that was sent away is started again, by whoever looks after it; one that was only closed dials again.
void TimedIsland::closed() {
  linked_ = false;
  ++connection_;
  was_closed();
  if (!honest()) return;
  if (said_goodbye_) {
    drop_round();
    recover_.reset();
  }
  mesh_.after(said_goodbye_ ? 10 * kRedial : kRedial, [this, connection = connection_] {
    if (connection == connection_) link();
  });
}

void TimedIsland::later_by_a_message(std::function<void()> act) { later(mesh_.times().message, std::move(act)); }

void TimedIsland::say_now(IslandMessage message) {
  later(mesh_.times().message, [this, message = std::move(message)] { mesh_.hub_hears(IslandSaid{id_, message}); });
}

void TimedIsland::say(IslandMessage message) {
  if (says(message)) say_now(std::move(message));
}

void TimedIsland::hears(const HubMessage& message) {
  if (!takes(message)) return;
  std::visit([this](const auto& its) { take(its); }, message);
}

// ---- the outer state

void TimedIsland::drop_round() {
  round_.reset();
  ready_.reset();
  average_.reset();
  ++phase_;
}

void TimedIsland::hold(OuterStep step, const std::string& hash) {
  outer_step_ = step;
  state_hash_ = hash;
  std::erase_if(durable_, [&](const HeldState& held) { return held.outer_step >= step; });
  durable_.push_back({step, hash});
  if (durable_.size() > kKept) durable_.erase(durable_.begin());
  say(IslandDurable{durable_});
}

void TimedIsland::adopt(OuterStep step, const std::string& hash) {
  hold(step, hash);
  recover_.reset();
  say(IslandRecovered{step, hash});
}

void TimedIsland::take(const HubInitialise&) {
  drop_round();
  recover_.reset();
  later(200ms, [this, recovery = ++recovery_] {
    if (recovery == recovery_) adopt(OuterStep{0}, mesh_.honest_hash(OuterStep{0}));
  });
}

void TimedIsland::take(const HubRecover& recover) {
  drop_round();
  recover_ = recover;
  ++recovery_;
  const bool holds_it = outer_step_ == recover.outer_step && state_hash_ == recover.state_hash;
  later(holds_it ? std::min<Clock::duration>(50ms, fetch()) : fetch(), [this, recovery = recovery_] {
    if (recovery == recovery_) try_to_recover();
  });
}

// A source that holds it serves it, also when it has gone a round on; what liars serve is found to be something else.
void TimedIsland::try_to_recover() {
  if (!recover_) return;
  const auto is_it = [&](const HeldState& held) {
    return held.outer_step == recover_->outer_step && held.state_hash == recover_->state_hash;
  };
  const bool holds_it = std::ranges::any_of(durable_, is_it) || !honest();
  const auto serves = [&](const IslandId& id) {
    const TimedIsland* source = mesh_.find(id);
    return source != nullptr && source->honest() && source->linked() && source->outer_step() &&
           *source->outer_step() >= recover_->outer_step &&
           mesh_.honest_hash(recover_->outer_step) == recover_->state_hash;
  };
  if (holds_it || std::ranges::any_of(recover_->sources, serves)) {
    return adopt(recover_->outer_step, std::string(recover_->state_hash));
  }
  later(kRecoverRetry, [this, recovery = recovery_] {
    if (recovery == recovery_) try_to_recover();
  });
}

// ---- the inner phase

Clock::duration TimedIsland::fetch() { return mesh_.times().fetch; }

Clock::duration TimedIsland::inner_phase() {
  std::uniform_real_distribution<double> jitter(0.97, 1.03);
  return std::chrono::duration_cast<Clock::duration>(mesh_.times().inner * jitter(mesh_.random()));
}

void TimedIsland::take(const HubRoundBegin& begin) {
  const bool same = round_ && round_->round == begin.round && round_->inner_steps == begin.inner_steps &&
                    round_->lease_first_sequence == begin.lease_first_sequence;
  if (same) return ready_ ? say_ready() : void();
  if (!outer_step_ || *outer_step_ != begin.round) {
    if (honest()) mesh_.violate(id_.value + " is to train what it does not hold");
    return;
  }
  recover_.reset();
  drop_round();
  round_ = begin;
  if (begin.validate) {
    std::uniform_real_distribution<double> noise(-0.01, 0.01);
    say(IslandValidation{*outer_step_, mesh_.model(*outer_step_).loss() + noise(mesh_.random())});
  }
  mesh_.after(begin.inner_steps == 0 ? Clock::duration(1ms) : inner_phase(), [this, phase = phase_] {
    if (phase == phase_) finish_training();
  });
}

void TimedIsland::finish_training() {
  gradient_ = round_->inner_steps > 0 ? mesh_.model(round_->round).pseudo_gradient(mesh_.random()) : TimedValues{};
  const RunConfig& run = mesh_.run();
  IslandReady ready{round_->round, std::uint64_t{round_->inner_steps} * run.sequences_per_step * run.sequence_length, 0,
                    mesh_.model(round_->round).loss(), round_->fragment};
  if (ready.tokens > 0) {
    ready.norm_over_steps = norm_of(gradient_) / round_->inner_steps;
    ready.lease_first_sequence = round_->lease_first_sequence;
  }
  ready_ = ready;
  say_ready();
}

void TimedIsland::say_ready() { say(*ready_); }

// ---- attempts

void TimedIsland::refuse(OuterStep round, Attempt attempt, const std::string& why, bool whole) {
  IslandAttemptFailed refusal{round, attempt, std::nullopt, why};
  if (average_) refusal.whole_buckets = {whole};
  say(std::move(refusal));
}

void TimedIsland::take(const HubAttempt& attempt) {
  if (!round_ || round_->round != attempt.round || !ready_) {
    if (outer_step_ && attempt.round >= *outer_step_)
      refuse(attempt.round, attempt.attempt, "has no work of this round");
    return;
  }
  if (average_ && average_->attempt == attempt.attempt && !average_->digest.empty()) {
    return say(IslandHave{attempt.round, attempt.attempt, average_->digest, 0, attempt.fragment});
  }
  const bool stays = !attempt.final_buckets.empty() && attempt.final_buckets[0];
  if (stays && !(average_ && average_->whole && average_->attempt.value + 1 == attempt.attempt.value)) {
    average_.reset();
    return refuse(attempt.round, attempt.attempt, "the hub keeps buckets that this island does not hold");
  }
  if (!stays) average_.reset();
  enter_attempt(attempt);
}

void TimedIsland::enter_attempt(const HubAttempt& attempt) {
  ring_ = mesh_.ring(attempt);
  if (ring_) ring_->join(*this);
}

void TimedIsland::averaged(const HubAttempt& attempt, const TimedValues& average, const std::string& digest) {
  if (!round_ || round_->round != attempt.round) return;
  average_ = Average{attempt.attempt, average, digest, true};
  if (honest() && attempt.norm_limit > 0 && norm_of(average) > attempt.norm_limit) {
    average_.reset();
    IslandAttemptFailed refusal{attempt.round, attempt.attempt, std::nullopt,
                                "the average is larger than its parts can be"};
    refusal.too_large = true;
    return say(std::move(refusal));
  }
  say(IslandHave{attempt.round, attempt.attempt, digest, 0.1, attempt.fragment});
}

void TimedIsland::average_failed(const HubAttempt& attempt, IslandAttemptFailed report) {
  average_ = Average{attempt.attempt, {}, "", false};
  say(std::move(report));
}

void TimedIsland::take(const HubAbort& abort) {
  if (!round_ || round_->round != abort.round) return;
  if (ring_ && ring_->attempt().attempt <= abort.attempt && ring_->abort(*this, abort.reason)) return;
  if (!average_ || average_->digest.empty() || average_->attempt > abort.attempt) return;
  average_->digest.clear();
  refuse(abort.round, average_->attempt, abort.reason, average_->whole);
}

void TimedIsland::take(const HubShowChunks& show) {
  IslandChunks answer{show.round, show.attempt, {}, show.fragment};
  if (ring_ && ring_->attempt().attempt == show.attempt) answer.digests = ring_->chunks_of(id_);
  say(std::move(answer));
}

void TimedIsland::take(const HubCommit& commit) {
  if (outer_step_ == OuterStep{commit.round.value + 1}) return say(IslandApplied{*outer_step_, state_hash_});
  if (outer_step_ != commit.round || !average_ || average_->digest != commit.digest) {
    return refuse(commit.round, commit.attempt, "does not hold the committed average");
  }
  drop_round();
  hold(OuterStep{commit.round.value + 1}, fake_sha256(state_hash_ + commit.digest));
  say(IslandApplied{*outer_step_, state_hash_});
}

void TimedIsland::take(const HubProbe& probe) {
  later(kProbeTakes, [this, from = probe.from] { say(IslandLinkReport{{{from, false, 50e6, 0.03, false, {}}}}); });
}

}  // namespace atl
