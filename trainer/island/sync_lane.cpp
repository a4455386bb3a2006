#include "trainer/island/sync_lane.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "net/base/encoding.h"
#include "net/collective/canonical_digest.h"
#include "net/recovery/outer_step.h"
#include "net/recovery/work_sketch.h"

namespace atl {
namespace {

constexpr std::uint64_t kTellingBytes = 4u << 20;  // how fast fewer of them went tells of latency, not of the link

}  // namespace

SyncLane::SyncLane(FragmentId fragment, Fragment part, const RunConfig& run, OuterStateStore& outer, AttemptGate& gate,
                   IslandStatus& status, LaneNetwork& network, Tell tell)
    : fragment_(fragment),
      part_(std::move(part)),
      run_(run),
      outer_(outer),
      gate_(gate),
      status_(status),
      network_(network),
      tell_(std::move(tell)) {}

void SyncLane::handle(LaneCommand command) {
  std::visit([this](auto& c) { on(std::move(c)); }, command);
}

void SyncLane::refuse(OuterStep round, Attempt attempt, const std::string& why, std::vector<bool> whole_buckets) {
  IslandAttemptFailed refusal{round, attempt, {}, why, std::move(whole_buckets)};
  refusal.fragment = fragment_;
  network_.send(refusal);
}

// ---- the pseudo-gradient
// ---------------------------------------------------------------------------------------------

void SyncLane::on(LaneBegin command) {
  has_round_ = true;
  average_.reset();
  ready_ = command.ready;
  ready_.fragment = fragment_;
  pseudo_gradient_ = std::move(command.local);
  std::optional<double> squared;
  if (command.finite) {
    squared = pseudo_gradient(outer_.parameters(), part_.ranges, pseudo_gradient_);
    if (!squared) {
      spdlog::error("round={} not_finite=\"the parameters are not finite after the inner phase\"", ready_.round.value);
    }
  }
  if (!squared) {
    // The hub is told, refuses this round's work, and has the island recover.
    pseudo_gradient_.clear();
    ready_.tokens = 0;
    ready_.norm_over_steps = ready_.mean_loss_nats = std::numeric_limits<double>::quiet_NaN();
    network_.send(ready_);
    return;
  }
  // Who takes part with no weight gives nothing, whatever it has trained of the fragment before.
  if (ready_.tokens > 0) ready_.norm_over_steps = std::sqrt(*squared) / std::max<std::uint32_t>(1, command.inner_steps);
  network_.send(ready_);
  network_.publish(StateNews::kSyncing);
}

void SyncLane::on(const LaneSayReady& command) {
  if (has_round(command.round)) network_.send(ready_);
}

void SyncLane::on(const LaneDrop& command) {
  has_round_ = false;
  average_.reset();
  tell_(LaneDropped{command.generation});
}

// ---- attempts
// --------------------------------------------------------------------------------------------------------

// By the run's format, whichever the attempt's: what rounds before lost is sent with any.
ErrorFeedback SyncLane::feedback() {
  if (!feeds_errors_back(run_.wire)) return {};
  const auto numel = static_cast<std::size_t>(part_.numel);
  residual_.resize(numel);  // zeros, at first and after a recovery
  lost_.resize(numel);
  return {residual_, lost_};
}

AllReduceSpec SyncLane::spec_of(const HubAttempt& message) {
  AllReduceSpec spec{.round = message.round,
                     .attempt = message.attempt,
                     .order = {},
                     .schedule = message.schedule,
                     .wire = message.wire};
  spec.fragment = fragment_;
  spec.fragments = static_cast<int>(run_.fragments);
  spec.feedback = feedback();
  spec.final_buckets = message.final_buckets;
  spec.connections_per_edge = static_cast<int>(run_.connections_per_edge);
  spec.silence_timeout = run_.dead_after;
  for (const AttemptMember& member : message.order) {
    spec.order.push_back({member.id, member.address, static_cast<double>(member.tokens), member.dials_previous});
  }
  return spec;
}

// Room for the average, with the buckets that stay from the attempt before in their places.
Result<SyncLane::Average> SyncLane::begin_average(const AllReduceSpec& spec) {
  Average average{.attempt = spec.attempt,
                  .payload = payload_of(spec, part_.numel),
                  .world_size = static_cast<int>(spec.order.size())};
  const std::vector<bool>& stay = spec.final_buckets;
  if (average_) {
    const std::vector<bool>& whole = average_->whole_buckets;
    bool holds_them = whole.size() == stay.size() && average_->attempt.value + 1 == spec.attempt.value &&
                      average_->payload.wire == spec.wire;
    for (std::size_t i = 0; holds_them && i < stay.size(); ++i) holds_them = whole[i] || !stay[i];
    average.canonical = std::move(average_->canonical);
    if (average_->is_shared) {
      const SharedBytes mine = room_.take(average.canonical->size());
      std::ranges::copy(*average.canonical, mine->begin());
      average.canonical = mine;
    }
    if (holds_them) average.whole_buckets = stay;
  }
  average_.reset();
  const auto bytes = static_cast<std::size_t>(encoded_bytes(spec.wire, part_.numel));
  if (average.canonical) {
    average.canonical->resize(bytes);
  } else {
    average.canonical = room_.take(bytes);
  }
  if (average.whole_buckets == stay) return average;
  return Error{ErrorCode::kProtocol, "the hub keeps buckets of an attempt of which this island does not hold them"};
}

void SyncLane::attempt_failed(Average average, const AllReduceFailure& failure) {
  spdlog::warn("all_reduce round={} attempt={} error=\"{}\"", ready_.round.value, average.attempt.value,
               failure.error.message);
  if (!failure.whole_buckets.empty()) average.whole_buckets = failure.whole_buckets;
  IslandAttemptFailed failed{ready_.round,          average.attempt, failure.peer,         failure.error.message,
                             average.whole_buckets, failure.silent,  failure.stalled_after};
  failed.fragment = fragment_;
  failed.never_met = failure.never_met;
  network_.send(failed);
  average_ = std::move(average);
}

void SyncLane::on(const HubAttempt& message) {
  if (message.fragment != fragment_) {
    return refuse(message.round, message.attempt, "the attempt names another fragment than its round's");
  }
  if (!has_round(message.round)) {
    // Not of a round gone by: the hub counts on work that was given up meanwhile.
    if (message.round >= outer_.current_version()) {
      refuse(message.round, message.attempt, "this island has no work of this round");
    }
    return;
  }
  if (holds_average() && average_->attempt == message.attempt) {  // after a reconnection
    return say_have(*average_, 0);
  }
  if (pseudo_gradient_.empty()) return refuse(message.round, message.attempt, "this island has nothing to average");
  const AllReduceSpec spec = spec_of(message);
  Result<Average> begun = begin_average(spec);
  if (!begun.ok()) return refuse(message.round, message.attempt, begun.error().message);
  Average average = std::move(*begun);
  const auto abort = gate_.begin(message.round, message.attempt);
  network_.attempt_begins(message);
  const auto outcome = network_.all_reduce(spec, pseudo_gradient_, average.canonical, *abort);
  if (const auto* failure = std::get_if<AllReduceFailure>(&outcome)) {
    return attempt_failed(std::move(average), *failure);
  }
  const auto& report = std::get<AllReduceReport>(outcome);
  average.digest = to_hex(report.digest);
  average.whole_buckets.assign(static_cast<std::size_t>(average.payload.buckets()), true);
  if (is_too_large(average, message.norm_limit)) {
    IslandAttemptFailed refusal{message.round, message.attempt, std::nullopt,
                                "the average is larger than its parts can be"};
    refusal.too_large = true;
    refusal.fragment = fragment_;
    network_.send(refusal);
    return;
  }
  average.is_shared = true;
  network_.keep_average(message.round, spec.wire, average.digest, average.canonical);
  status_.update([&](IslandState& s) {
    s.bytes_sent += report.bytes_sent;
    s.last_sync_seconds = report.duration.count();
  });
  sketch(average);
  say_have(average, report.duration.count());
  if (report.bytes_sent >= kTellingBytes) {
    LinkReportEntry link{report.next, /*outgoing=*/true, report.link_bytes_per_second, report.rtt_seconds,
                         report.at_least};
    // Directly many connections share an upload and overflow it by themselves: that tells nothing of the link.
    if (spec.schedule == Schedule::kRing) {
      link.loss =
          std::min(1.0, static_cast<double>(report.bytes_retransmitted) / static_cast<double>(report.bytes_sent));
    }
    network_.send(IslandLinkReport{{link}});
  }
  average_ = std::move(average);
}

// Somebody gave more than it said: the sum of others' work cannot be taken apart, but it cannot be longer than its
// parts.
bool SyncLane::is_too_large(const Average& average, double norm_limit) const {
  if (norm_limit <= 0) return false;
  const std::optional<double> squared = average_squared_norm(average.payload.wire, *average.canonical, part_.numel);
  return !squared || std::sqrt(*squared) > norm_limit;
}

// With what others gave, the hub sees whether this is what they gave, and whose goes against the others'.
void SyncLane::sketch(Average& average) const {
  const auto of_average = sketch_of_average(average.digest, average.payload.wire, *average.canonical, part_.numel);
  if (!of_average) return;
  average.sketch = encode_sketch(*of_average);
  if (ready_.tokens == 0) return;
  average.gave_sketch = encode_sketch(sketch_of_work(average.digest, pseudo_gradient_, residual_, lost_));
}

void SyncLane::say_have(const Average& average, double seconds) {
  network_.send(IslandHave{ready_.round, average.attempt, average.digest, seconds, fragment_, average.gave_sketch,
                           average.sketch});
}

// The hub found that members hold different averages.
void SyncLane::on(const HubShowChunks& message) {
  IslandChunks answer{message.round, message.attempt, {}, fragment_};
  const bool shows = message.fragment == fragment_ && has_round(message.round) && holds_average();
  if (shows && average_->attempt == message.attempt) {
    for (const Digest& digest : chunk_digests(average_->payload, average_->world_size, *average_->canonical)) {
      answer.digests.push_back(to_hex(digest));
    }
  }
  network_.send(answer);
}

// What it has of the average stays, for the next attempt to go on from; but it is no average that could be committed.
void SyncLane::on(const HubAbort& message) {
  if (message.fragment != fragment_ || !has_round(message.round) || !holds_average()) return;
  if (average_->attempt > message.attempt) return;
  average_->digest.clear();
  refuse(message.round, average_->attempt, message.reason, average_->whole_buckets);
}

// ---- the outer step
// --------------------------------------------------------------------------------------------------

// The inner loop passes on the commit of the next round alone: that of the outer state which is held.
void SyncLane::on(const HubCommit& message) {
  network_.committed(message.round);
  if (has_round(message.round) && holds_average() && average_->digest == message.digest) {
    const Average average = std::move(*average_);
    average_.reset();
    std::swap(residual_, lost_);
    return take_outer_step(message, average.payload.wire, average.canonical);
  }
  // Another process of this island may have held it.
  Result<KeptAverage> kept = network_.kept_average(message.round, message.digest);
  const auto bytes = static_cast<std::size_t>(kept.ok() ? encoded_bytes(kept->wire, part_.numel) : 0);
  if (kept.ok() && kept->canonical.size() == bytes) {
    spdlog::info("round={} average=kept", message.round.value);
    return take_outer_step(message, kept->wire, std::make_shared<Bytes>(std::move(kept->canonical)));
  }
  // The hub answers with HubRecover: this island takes no outer step on anything but the committed average.
  tell_(LaneRefused{message.round});
  refuse(message.round, message.attempt, "does not hold the committed average");
}

void SyncLane::take_outer_step(const HubCommit& message, WireFormat wire, const SharedBytes& canonical) {
  network_.keep_commit(message);
  const std::string from = outer_.tree_hash();
  LaneApplied applied{.fragment = fragment_, .round = message.round, .state = {}, .buffer = {}};
  applied.state = outer_.apply(part_.ranges, wire, *canonical, static_cast<float>(message.outer_learning_rate),
                               static_cast<float>(message.outer_momentum));
  network_.keep_round(message, wire, canonical, from, applied.state);
  average_.reset();
  applied.contributed = has_round(message.round) && ready_.tokens > 0 && network_.gave_to(message);
  applied.buffer = std::move(pseudo_gradient_);
  pseudo_gradient_.clear();
  has_round_ = false;
  status_.update([&](IslandState& s) {
    s.outer_step = applied.state.outer_step.value;
    s.state_hash = applied.state.state_hash;
  });
  const IslandApplied told{applied.state.outer_step, applied.state.state_hash};
  tell_(std::move(applied));
  network_.send(told);
}

}  // namespace atl
