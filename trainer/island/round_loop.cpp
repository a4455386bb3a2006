#include "trainer/island/round_loop.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reduce.h"
#include "kernels/wire_codec.h"
#include "net/base/encoding.h"
#include "net/collective/canonical_digest.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kRecoverRetry{1};
constexpr double kWorstLoss = 1e6;  // nats

constexpr std::uint64_t kTellingBytes = 4u << 20;  // how fast fewer of them went tells of latency, not of the link

std::size_t bucket_count(std::int64_t numel, std::int64_t bucket_numel) {
  return static_cast<std::size_t>((numel + bucket_numel - 1) / bucket_numel);
}

double seconds_since(Clock::time_point begin) { return Seconds(Clock::now() - begin).count(); }

}  // namespace

RoundLoop::RoundLoop(const RunConfig& run, Engine& engine, BatchSource& batches, OuterStateStore& outer,
                     AttemptGate& gate, IslandStatus& status, RoundLoopNetwork& network, const AbortSignal& stop)
    : run_(run),
      engine_(engine),
      batches_(batches),
      outer_(outer),
      gate_(gate),
      status_(status),
      network_(network),
      stop_(stop),
      schedule_(schedule_of(run.inner)) {}

Status RoundLoop::handle(const HubMessage& message) {
  return std::visit([this](const auto& m) { return on(m); }, message);
}

void RoundLoop::set_phase(Phase phase, IslandPhase shown) {
  phase_ = phase;
  status_.update([&](IslandState& s) { s.state = shown; });
}

// The hub's configuration was read before this loop existed; after a reconnection it comes again.
Status RoundLoop::on(const HubWelcome& message) {
  gate_.pass_welcome();
  if (message.run.run_id == run_.run_id) return ok_status();
  return Error{ErrorCode::kInviteOtherRun,
               "the hub at this address now serves another run; join it with an invite of its own"};
}

Status RoundLoop::on(const HubRoster& message) {
  status_.update([&](IslandState& s) {
    s.islands_live = static_cast<std::uint32_t>(message.islands.size());
    s.islands_total = std::max(s.islands_total, s.islands_live);
  });
  return ok_status();
}

// ---- recovery
// ------------------------------------------------------------------------------------------------------------

Status RoundLoop::on(const HubInitialise&) {
  ATOLL_ASSIGN_OR_RETURN(std::vector<float> parameters, network_.initial_parameters());
  outer_.initialise(std::move(parameters));
  residual_.clear();
  has_round_ = false;
  average_.reset();
  recover_.reset();
  adopt_outer_state();
  return ok_status();
}

Status RoundLoop::on(const HubRecover& message) {
  recover_ = message;
  has_round_ = false;
  average_.reset();
  return recover();
}

void RoundLoop::begin() {
  if (outer_.holds_state()) adopt_outer_state();
}

Status RoundLoop::recover() {
  if (outer_.version() == recover_->outer_step && outer_.tree_hash() == recover_->state_hash) {
    recover_.reset();
    adopt_outer_state();
    return ok_status();
  }
  set_phase(Phase::kWaiting, IslandPhase::kRecovering);
  network_.publish(StateNews::kChanged);
  const auto began = Clock::now();
  Result<FetchedState> fetched = network_.kept_state({recover_->outer_step, recover_->state_hash});
  if (!fetched.ok()) fetched = network_.fetch(*recover_);
  if (!fetched.ok()) {
    // Its sources may have moved on or gone; the hub's next message brings newer ones.
    spdlog::warn("recovery round={} error=\"{}\"", recover_->outer_step.value, fetched.error().message);
    recover_again_ = Clock::now() + kRecoverRetry;
    return ok_status();
  }
  outer_.replace(std::move(fetched).value());
  spdlog::info("recovery round={} seconds={:.1f}", outer_.version().value, seconds_since(began));
  residual_.clear();  // it belongs to rounds that others went on from
  recover_.reset();
  adopt_outer_state();
  return ok_status();
}

Status RoundLoop::idle() {
  if (recover_ && Clock::now() >= recover_again_ && !stop_.raised()) return recover();
  return ok_status();
}

void RoundLoop::adopt_outer_state() {
  engine_.write_parameters(outer_.parameters());
  set_phase(Phase::kWaiting, IslandPhase::kWaiting);
  status_.update([&](IslandState& s) {
    s.outer_step = outer_.version().value;
    s.state_hash = outer_.tree_hash();
  });
  network_.send(IslandRecovered{outer_.version(), outer_.tree_hash()});
  network_.publish(StateNews::kChanged);
}

// ---- the inner phase
// -----------------------------------------------------------------------------------------------------

Status RoundLoop::on(const HubRoundBegin& message) {
  if (!outer_.holds_state() || message.round != outer_.version()) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("the hub began round {}, but this island holds outer step {}; start it again, "
                             "and it will recover",
                             message.round.value, outer_.version().value)};
  }
  const bool same = has_round_ && message.round == round_.round && message.inner_steps == round_.inner_steps &&
                    message.lease_first_sequence == round_.lease_first_sequence;
  if (same) {  // after a reconnection
    if (phase_ != Phase::kTraining) network_.send(ready_);
    return ok_status();
  }
  if (has_round_ && message.round == round_.round) engine_.write_parameters(outer_.parameters());
  round_ = message;
  has_round_ = true;
  recover_.reset();
  average_.reset();
  inner_step_ = 0;
  loss_sum_ = 0;
  inner_seconds_ = 0;
  status_.update([&](IslandState& s) {
    s.round = message.round.value;
    s.inner_step = 0;
    s.inner_steps = message.inner_steps;
  });
  set_phase(Phase::kTraining, IslandPhase::kTraining);
  const bool goes_on = take_up_interrupted_work(message);
  network_.publish(StateNews::kRoundBegin);
  if (goes_on) return ok_status();
  if (message.validate) ATOLL_RETURN_IF_ERROR(validate());
  return message.inner_steps == 0 ? finish_inner_phase() : ok_status();
}

std::optional<InnerState> RoundLoop::interrupted_work() const {
  if (phase_ != Phase::kTraining || inner_step_ == 0) return std::nullopt;
  InnerState work;
  work.round = round_;
  work.outer_hash = outer_.tree_hash();
  work.inner_step = inner_step_;
  work.loss_sum = loss_sum_;
  work.inner_seconds = inner_seconds_;
  work.optimizer_steps = engine_.optimizer_steps();
  const auto numel = static_cast<std::size_t>(engine_.numel());
  for (auto* values : {&work.parameters, &work.first_moment, &work.second_moment}) values->resize(numel);
  engine_.read_parameters(work.parameters);
  engine_.read_moments(work.first_moment, work.second_moment);
  work.residual = residual_;
  return work;
}

bool RoundLoop::take_up_interrupted_work(const HubRoundBegin& message) {
  const std::optional<InnerState> work = std::exchange(interrupted_, std::nullopt);
  if (!work) return false;
  if (!work->belongs_to(message, outer_.tree_hash())) {
    spdlog::info("round={} interrupted_work=dropped of_round={} inner_steps={}", message.round.value,
                 work->round.round.value, work->inner_step);
    return false;
  }
  engine_.write_parameters(work->parameters);
  engine_.write_moments(work->first_moment, work->second_moment, work->optimizer_steps);
  residual_ = work->residual;
  inner_step_ = work->inner_step;
  loss_sum_ = work->loss_sum;
  inner_seconds_ = work->inner_seconds;
  status_.update([&](IslandState& s) { s.inner_step = inner_step_; });
  spdlog::info("round={} interrupted_work=resumed inner_step={}", message.round.value, inner_step_);
  return true;
}

Status RoundLoop::validate() {
  double loss_sum = 0;
  std::int64_t tokens = 0;
  for (std::uint32_t i = 0; i < batches_.validation_batches() && !stop_.raised(); ++i) {
    ATOLL_ASSIGN_OR_RETURN(const TokenBatch batch, batches_.validation_batch(i));
    const Result<double> evaluated = engine_.evaluate(batch);
    if (!evaluated.ok() && evaluated.error().code == ErrorCode::kAborted) return ok_status();  // its owner ends it
    const bool is_no_number = !evaluated.ok() && evaluated.error().code == ErrorCode::kNonFinite;
    ATOLL_ASSIGN_OR_RETURN(const double loss, is_no_number ? Result<double>(kWorstLoss) : evaluated);
    loss_sum += loss * static_cast<double>(batch.token_count());
    tokens += batch.token_count();
  }
  if (tokens == 0 || stop_.raised()) return ok_status();
  // A state whose loss is no number is as bad as can be; the hub has to hear of it.
  const double mean = loss_sum / static_cast<double>(tokens);
  const double loss_nats = std::isfinite(mean) ? std::min(mean, kWorstLoss) : kWorstLoss;
  status_.update([&](IslandState& s) { s.validation_loss_nats = loss_nats; });
  network_.send(IslandValidation{outer_.version(), loss_nats});
  return ok_status();
}

// Depends on the run's progress alone, so that an island that joins late trains at everybody's rate.
float RoundLoop::learning_rate() const {
  const std::int64_t step = std::int64_t{round_.round.value} * run_.inner_steps + inner_step_;
  return static_cast<float>(learning_rate_at(schedule_, step, 1));
}

Status RoundLoop::work() {
  const auto begin = Clock::now();
  const Lease lease{round_.lease_first_sequence, round_.lease_sequences};
  ATOLL_ASSIGN_OR_RETURN(const TokenBatch batch, batches_.train_batch(round_.round, inner_step_, lease));
  const float rate = learning_rate();
  const Result<StepReport> taken = engine_.train_step(batch, rate);
  // A step that is not finite has changed nothing: the hub is told, refuses this round's work, and has the island
  // recover.
  if (!taken.ok() && taken.error().code == ErrorCode::kNonFinite) return report_not_finite(taken.error().message);
  if (!taken.ok() && taken.error().code == ErrorCode::kAborted) return ok_status();  // its owner ends it
  if (!taken.ok()) return taken.error();
  const StepReport& report = *taken;
  const double seconds = seconds_since(begin);
  ++inner_step_;
  loss_sum_ += report.loss_nats;
  inner_seconds_ += seconds;
  status_.update([&](IslandState& s) {
    s.inner_step = inner_step_;
    s.loss_nats = report.loss_nats;
    s.learning_rate = static_cast<double>(rate);
    s.gradient_norm = report.gradient_norm;
    s.tokens += static_cast<std::uint64_t>(report.tokens);
    s.tokens_per_second = static_cast<double>(report.tokens) * inner_step_ / inner_seconds_;
    s.inner_seconds += seconds;
    s.next_sync_seconds = inner_seconds_ / inner_step_ * (round_.inner_steps - inner_step_);
  });
  network_.publish(StateNews::kStep);
  return inner_step_ == round_.inner_steps ? finish_inner_phase() : ok_status();
}

Status RoundLoop::finish_inner_phase() {
  sync_began_ = Clock::now();
  set_phase(Phase::kSyncing, IslandPhase::kSyncing);
  const std::span<const float> outer = outer_.parameters();
  pseudo_gradient_.resize(outer.size());
  engine_.read_parameters(pseudo_gradient_);
  std::transform(outer.begin(), outer.end(), pseudo_gradient_.begin(), pseudo_gradient_.begin(),
                 [](float theta, float local) { return theta - local; });
  const std::optional<double> squared = finite_squared_norm(pseudo_gradient_);
  if (!squared) return report_not_finite("the parameters are not finite after the inner phase");
  const double steps = std::max<std::uint32_t>(1, inner_step_);
  ready_ = IslandReady{.round = round_.round,
                       .tokens = std::uint64_t{inner_step_} * run_.sequences_per_step * run_.sequence_length,
                       .norm_over_steps = std::sqrt(*squared) / steps,
                       .mean_loss_nats = loss_sum_ / steps};
  network_.send(ready_);
  network_.publish(StateNews::kSyncing);
  return ok_status();
}

Status RoundLoop::report_not_finite(const std::string& what) {
  spdlog::error("round={} inner_step={} not_finite=\"{}\"", round_.round.value, inner_step_, what);
  set_phase(Phase::kSyncing, IslandPhase::kSyncing);
  ready_ = IslandReady{.round = round_.round,
                       .tokens = 0,
                       .norm_over_steps = std::numeric_limits<double>::quiet_NaN(),
                       .mean_loss_nats = std::numeric_limits<double>::quiet_NaN()};
  network_.send(ready_);
  return ok_status();
}

// ---- the all-reduce and the outer step
// -----------------------------------------------------------------------------------

// By the run's format, whichever the attempt's: what rounds before lost is sent with any.
ErrorFeedback RoundLoop::feedback() {
  if (!feeds_errors_back(run_.wire)) return {};
  const auto numel = static_cast<std::size_t>(engine_.numel());
  residual_.resize(numel);  // zeros, at first and after a recovery
  lost_.resize(numel);
  return {residual_, lost_};
}

AllReduceSpec RoundLoop::spec_of(const HubAttempt& message) {
  AllReduceSpec spec{.round = message.round,
                     .attempt = message.attempt,
                     .fragment = message.fragment,
                     .fragments = static_cast<int>(run_.fragments),
                     .order = {},
                     .wire = message.wire};
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
Result<RoundLoop::Average> RoundLoop::begin_average(const AllReduceSpec& spec) {
  Average average;
  const std::vector<bool>& stay = spec.final_buckets;
  if (average_) {
    const std::vector<bool>& whole = average_->whole_buckets;
    bool holds_them =
        whole.size() == stay.size() && average_->attempt.value + 1 == spec.attempt.value && average_->wire == spec.wire;
    for (std::size_t i = 0; holds_them && i < stay.size(); ++i) holds_them = whole[i] || !stay[i];
    average.canonical = std::move(average_->canonical);
    if (holds_them) average.whole_buckets = stay;
  }
  average_.reset();
  average.attempt = spec.attempt;
  average.wire = spec.wire;
  average.final_buckets = spec.final_buckets;
  average.world_size = static_cast<int>(spec.order.size());
  average.canonical.resize(static_cast<std::size_t>(encoded_bytes(spec.wire, engine_.numel())));
  if (average.whole_buckets == stay) return average;
  return Error{ErrorCode::kProtocol, "the hub keeps buckets of an attempt of which this island does not hold them"};
}

void RoundLoop::attempt_failed(Average average, const AllReduceFailure& failure) {
  spdlog::warn("all_reduce round={} attempt={} error=\"{}\"", round_.round.value, average.attempt.value,
               failure.error.message);
  if (!failure.whole_buckets.empty()) average.whole_buckets = failure.whole_buckets;
  network_.send(IslandAttemptFailed{round_.round, average.attempt, failure.peer, failure.error.message,
                                    average.whole_buckets, failure.silent, failure.stalled_after});
  average_ = std::move(average);
}

Status RoundLoop::on(const HubAttempt& message) {
  if (!has_round_ || message.round != round_.round || phase_ != Phase::kSyncing)
    return ok_status();                                           // of a round gone by
  if (holds_average() && average_->attempt == message.attempt) {  // after a reconnection
    network_.send(IslandHave{message.round, message.attempt, average_->digest, 0});
    return ok_status();
  }
  const AllReduceSpec spec = spec_of(message);
  Result<Average> begun = begin_average(spec);
  if (!begun.ok()) {
    network_.send(IslandAttemptFailed{message.round, message.attempt, {}, begun.error().message});
    return ok_status();
  }
  Average average = std::move(*begun);
  const auto abort = gate_.begin(message.round, message.attempt);
  const auto outcome = network_.all_reduce(spec, pseudo_gradient_, average.canonical, *abort);
  if (const auto* failure = std::get_if<AllReduceFailure>(&outcome)) {
    attempt_failed(std::move(average), *failure);
    return ok_status();
  }
  const auto& report = std::get<AllReduceReport>(outcome);
  average.digest = to_hex(report.digest);
  average.whole_buckets.assign(bucket_count(engine_.numel(), spec.bucket_numel), true);
  if (is_too_large(average, message.norm_limit)) {
    IslandAttemptFailed refusal{message.round, message.attempt, std::nullopt,
                                "the average is larger than its parts can be"};
    refusal.too_large = true;
    network_.send(refusal);
    return ok_status();
  }
  network_.keep_average(message.round, average.wire, average.digest, average.canonical);
  status_.update([&](IslandState& s) {
    s.bytes_sent += report.bytes_sent;
    s.last_sync_seconds = report.duration.count();
  });
  network_.send(IslandHave{message.round, message.attempt, average.digest, report.duration.count()});
  if (report.bytes_sent >= kTellingBytes) {
    network_.send(IslandLinkReport{
        {{report.next, /*outgoing=*/true, report.link_bytes_per_second, report.rtt_seconds, report.at_least}}});
  }
  average_ = std::move(average);
  return ok_status();
}

// Somebody gave more than it said: the sum of others' work cannot be taken apart, but it cannot be longer than its
// parts.
bool RoundLoop::is_too_large(const Average& average, double norm_limit) const {
  if (norm_limit <= 0) return false;
  constexpr std::int64_t kPieceNumel = std::int64_t{1} << 16;  // whole blocks of every format
  std::vector<float> piece(static_cast<std::size_t>(std::min(kPieceNumel, engine_.numel())));
  double squared = 0;
  for (std::int64_t begin = 0; begin < engine_.numel(); begin += kPieceNumel) {
    const std::int64_t end = std::min(engine_.numel(), begin + kPieceNumel);
    const auto first = static_cast<std::size_t>(encoded_bytes(average.wire, begin));
    const auto bytes = static_cast<std::size_t>(encoded_bytes(average.wire, end)) - first;
    const std::span<float> values(piece.data(), static_cast<std::size_t>(end - begin));
    decode_values(average.wire, std::span(average.canonical).subspan(first, bytes), values);
    const std::optional<double> sum = finite_squared_norm(values);
    if (!sum) return true;
    squared += *sum;
  }
  return std::sqrt(squared) > norm_limit;
}

// The hub found that members hold different averages.
Status RoundLoop::on(const HubShowChunks& message) {
  IslandChunks answer{message.round, message.attempt, {}};
  if (has_round_ && message.round == round_.round && holds_average() && average_->attempt == message.attempt) {
    const RingPayload payload{
        .wire = average_->wire, .numel = engine_.numel(), .final_buckets = average_->final_buckets};
    for (const Digest& digest : chunk_digests(payload, average_->world_size, average_->canonical)) {
      answer.digests.push_back(to_hex(digest));
    }
  }
  network_.send(answer);
  return ok_status();
}

Status RoundLoop::on(const HubNotice& message) {
  if (!status_.set_trouble(Trouble::kRun, message.text)) return ok_status();
  if (!message.text.empty()) spdlog::warn("hub notice=\"{}\"", message.text);
  network_.publish(StateNews::kChanged);
  return ok_status();
}

// What it has of the average stays, for the next attempt to go on from; but it is no average that could be committed.
Status RoundLoop::on(const HubAbort& message) {
  const bool ends_average = has_round_ && message.round == round_.round && holds_average();
  if (!ends_average || average_->attempt > message.attempt) return ok_status();
  average_->digest.clear();
  network_.send(IslandAttemptFailed{message.round, average_->attempt, {}, message.reason, average_->whole_buckets});
  return ok_status();
}

Status RoundLoop::on(const HubCommit& message) {
  if (outer_.holds_state() &&
      message.round.value + 1 == outer_.version().value) {  // taken already; after a reconnection
    network_.send(IslandApplied{outer_.version(), outer_.tree_hash()});
    return ok_status();
  }
  if (has_round_ && message.round == round_.round && holds_average() && average_->digest == message.digest) {
    const Average average = std::move(*average_);
    average_.reset();
    std::swap(residual_, lost_);
    return take_outer_step(message, average.wire, average.canonical);
  }
  // Another process of this island may have held it.
  if (outer_.holds_state() && outer_.version() == message.round) {
    const Result<KeptAverage> kept = network_.kept_average(message.round, message.digest);
    const auto bytes = static_cast<std::size_t>(kept.ok() ? encoded_bytes(kept->wire, engine_.numel()) : 0);
    if (kept.ok() && kept->canonical.size() == bytes) {
      spdlog::info("round={} average=kept", message.round.value);
      return take_outer_step(message, kept->wire, kept->canonical);
    }
  }
  // The hub answers with HubRecover: this island takes no outer step on anything but the committed average.
  network_.send(IslandAttemptFailed{message.round, message.attempt, {}, "does not hold the committed average"});
  return ok_status();
}

Status RoundLoop::take_outer_step(const HubCommit& message, WireFormat wire, ByteView canonical) {
  network_.keep_commit(message);
  outer_.apply(wire, canonical, static_cast<float>(message.outer_learning_rate),
               static_cast<float>(message.outer_momentum));
  engine_.write_parameters(outer_.parameters());
  average_.reset();
  const bool had_round = std::exchange(has_round_, false);
  const bool contributed = had_round && ready_.tokens > 0;
  set_phase(Phase::kWaiting, IslandPhase::kWaiting);
  status_.update([&](IslandState& s) {
    s.outer_step = outer_.version().value;
    s.state_hash = outer_.tree_hash();
    if (had_round) s.sync_seconds += seconds_since(sync_began_);
    if (contributed) s.accepted_round = message.round.value;
  });
  network_.send(IslandApplied{outer_.version(), outer_.tree_hash()});
  network_.publish(StateNews::kSyncDone);
  return ok_status();
}

Status RoundLoop::on(const HubGoodbye& message) {
  finished_ = true;
  if (message.finished) return ok_status();
  return Error{message.code, message.message};
}

}  // namespace atl
