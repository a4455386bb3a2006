#include "trainer/island/inner_loop.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "net/base/round_words.h"
#include "net/model/train_only.h"
#include "net/step/flops.h"
#include "trainer/island/validation.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kRecoverRetry{1};

double seconds_since(Clock::time_point begin) { return Seconds(Clock::now() - begin).count(); }

bool same(const HubRoundBegin& a, const HubRoundBegin& b) {
  return a.round == b.round && a.inner_steps == b.inner_steps && a.lease_first_sequence == b.lease_first_sequence;
}

}  // namespace

InnerLoop::InnerLoop(const RunConfig& run, std::vector<Fragment> fragments, Engine& engine, BatchSource& batches,
                     OuterStateStore& outer, IslandStatus& status, InnerLoopOwner& owner, const AbortSignal& stop)
    : run_(run),
      fragments_(std::move(fragments)),
      trained_(ranges_of(fragments_)),
      engine_(engine),
      batches_(batches),
      outer_(outer),
      status_(status),
      owner_(owner),
      stop_(stop),
      schedule_(schedule_of(run.inner)),
      steps_(engine),
      flops_(
          flops_per_token(engine.config(), layout_of_training(engine.config(), run.train_only), run.sequence_length)),
      torchtitan_flops_(torchtitan_flops_per_token(engine.config(), layout_of_training(engine.config(), run.train_only),
                                                   run.sequence_length)),
      buffers_(fragments_.size()) {}

Status InnerLoop::handle(const HubMessage& message) {
  return std::visit([this](const auto& m) { return on(m); }, message);
}

Status InnerLoop::handle(LaneNews news) {
  return std::visit([this](auto& n) { return on(std::move(n)); }, news);
}

void InnerLoop::show(IslandPhase phase) {
  status_.update([&](IslandState& s) { s.state = phase; });
}

// The hub's configuration was read before this loop existed; after a reconnection it comes again.
Status InnerLoop::on(const HubWelcome& message) {
  if (message.run.run_id == run_.run_id) {
    // A hub that was started again says anew what is amiss.
    if (status_.set_trouble(Trouble::kRun, {})) owner_.publish(StateNews::kChanged);
    owner_.give_up_uploads_after(message.outer_step);
    return ok_status();
  }
  return Error{ErrorCode::kInviteOtherRun,
               "the hub at this address now serves another run; join it with an invite of its own"};
}

Status InnerLoop::on(const HubRoster& message) {
  status_.update([&](IslandState& s) {
    s.islands_live = static_cast<std::uint32_t>(message.islands.size());
    s.islands_total = std::max(s.islands_total, s.islands_live);
    s.islands_needed = run_.min_islands;
  });
  return ok_status();
}

Status InnerLoop::on(const HubNotice& message) {
  if (!status_.set_trouble(Trouble::kRun, message.text)) return ok_status();
  if (!message.text.empty()) spdlog::warn("hub notice=\"{}\"", message.text);
  owner_.publish(StateNews::kChanged);
  return ok_status();
}

Status InnerLoop::on(const HubSafe& message) {
  status_.update([&](IslandState& s) { s.safe_outer_step = message.outer_step.value; });
  owner_.publish(StateNews::kChanged);
  return ok_status();
}

Status InnerLoop::on(const HubUpload& message) {
  owner_.upload(message);
  return ok_status();
}

Status InnerLoop::on(const HubGoodbye& message) {
  goodbye_ = true;
  if (message.finished) return ok_status();
  return Error{message.code, message.message};
}

// ---- recovery
// ------------------------------------------------------------------------------------------------------------

Status InnerLoop::on(const HubInitialise&) {
  initialises_ = true;
  recover_.reset();
  drop_rounds();
  return ok_status();
}

Status InnerLoop::on(const HubRecover& message) {
  initialises_ = false;
  recover_ = message;
  drop_rounds();
  return ok_status();
}

// The outer state may be replaced once no lane works on it: attempts under way end first, as they would without this.
void InnerLoop::drop_rounds() {
  training_ = false;
  steps_.forget();
  starts_anew_ = false;
  open_.clear();
  commits_.clear();
  begin_later_.reset();
  waits_since_.reset();
  std::vector<FragmentId> all;
  for (std::uint32_t lane = 0; lane < fragments_.size(); ++lane) all.push_back(FragmentId{lane});
  drop(all);
}

// What waits for it goes on when all of them have said that they did.
void InnerLoop::drop(const std::vector<FragmentId>& lanes) {
  ++generation_;
  lanes_to_drop_ = lanes.size();
  for (const FragmentId lane : lanes) owner_.post(lane, LaneDrop{generation_});
}

Status InnerLoop::on(const LaneDropped& news) {
  if (news.generation != generation_ || lanes_to_drop_ == 0 || --lanes_to_drop_ > 0) return ok_status();
  if (initialises_) ATOLL_RETURN_IF_ERROR(initialise());
  if (recover_) ATOLL_RETURN_IF_ERROR(recover());
  return begin_what_waits();
}

Status InnerLoop::initialise() {
  initialises_ = false;
  (void)outer_.release();  // of before a way back: there is no room for two
  ATOLL_ASSIGN_OR_RETURN(std::vector<float> parameters, owner_.initial_parameters());
  outer_.initialise(std::move(parameters));
  for (std::uint32_t lane = 0; lane < fragments_.size(); ++lane) owner_.post(FragmentId{lane}, LaneOwes{});
  adopt_outer_state();
  return ok_status();
}

void InnerLoop::begin() {
  if (outer_.holds_state()) adopt_outer_state();
}

Status InnerLoop::recover() {
  if (outer_.version() == recover_->outer_step && outer_.tree_hash() == recover_->state_hash) {
    recover_.reset();
    adopt_outer_state();
    return ok_status();
  }
  show(IslandPhase::kRecovering);
  owner_.publish(StateNews::kChanged);
  const auto began = Clock::now();
  Result<FetchedState> fetched = owner_.kept_state({recover_->outer_step, recover_->state_hash});
  if (!fetched.ok()) fetched = owner_.fetch(*recover_);
  if (!outer_.holds_state()) state_.reset();  // it made room
  if (!fetched.ok()) {
    // Its sources may have moved on or gone; the hub's next message brings newer ones.
    spdlog::warn("recovery round={} error=\"{}\"", recover_->outer_step.value, fetched.error().message);
    recover_again_ = Clock::now() + kRecoverRetry;
    return ok_status();
  }
  outer_.replace(std::move(fetched).value());
  spdlog::info("recovery round={} seconds={:.1f}", outer_.version().value, seconds_since(began));
  // What they owe belongs to rounds that others went on from.
  for (std::uint32_t lane = 0; lane < fragments_.size(); ++lane) owner_.post(FragmentId{lane}, LaneOwes{});
  recover_.reset();
  adopt_outer_state();
  return ok_status();
}

Status InnerLoop::idle() {
  const bool again = recover_ && !waits_for_lanes() && Clock::now() >= recover_again_ && !stop_.raised();
  return again ? recover() : ok_status();
}

void InnerLoop::adopt_outer_state() {
  state_ = HeldState{outer_.version(), outer_.tree_hash()};
  engine_.write_parameters(outer_.parameters());
  show(IslandPhase::kWaiting);
  status_.update([&](IslandState& s) {
    s.outer_step = state_->outer_step.value;
    s.state_hash = state_->state_hash;
  });
  owner_.send(IslandRecovered{state_->outer_step, state_->state_hash});
  owner_.publish(StateNews::kChanged);
}

// ---- the inner phase
// -----------------------------------------------------------------------------------------------------

Status InnerLoop::on(const HubRoundBegin& message) {
  if (message.fragment != run_.fragment_of(message.round)) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("the hub began round {} of fragment {}, which is of fragment {}", message.round.value,
                             message.fragment.value, run_.fragment_of(message.round).value)};
  }
  const auto held = std::ranges::find(open_, message.round, &HubRoundBegin::round);
  if (held != open_.end() && same(*held, message)) {  // after a reconnection
    owner_.post(message.fragment, LaneSayReady{message.round});
    return ok_status();
  }
  if (training_ && same(round_, message)) return ok_status();
  if (waits_for_lanes()) {
    begin_later_ = message;
    return ok_status();
  }
  const auto fragments = static_cast<std::uint32_t>(fragments_.size());
  // Commits that came and are not taken yet count: the hub is there already.
  const std::uint32_t committed = state_ ? state_->outer_step.value + static_cast<std::uint32_t>(commits_.size()) : 0;
  if (!state_ || message.round < state_->outer_step || message.round.value >= committed + fragments) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("the hub began round {}, but this island holds the state {}; start it again, "
                             "and it will recover",
                             round_number(message.round.value), after_round(state_ ? state_->outer_step.value : 0))};
  }
  // Who is to leave begins no other round, but goes through with one that is begun anew: others count on it.
  const bool takes_part = starts_anew_ || (training_ && message.round <= round_.round) ||
                          (!open_.empty() && message.round <= open_.back().round);
  if (!begins_ && !takes_part) return ok_status();
  // The hub heard late that it is through with the round that it trains anew, or its fragment's round before is not
  // over here: then comes that first.
  const bool trains_another = training_ && round_.round < message.round;
  if (trains_another || message.round.value >= state_->outer_step.value + fragments) {
    begin_later_ = message;
    return ok_status();
  }
  // Begun anew with another lease: what was trained for it, or after it, is given up.
  if (!open_.empty() && open_.back().round >= message.round) {
    std::vector<FragmentId> lanes;
    for (; !open_.empty() && open_.back().round >= message.round; open_.pop_back()) {
      lanes.push_back(run_.fragment_of(open_.back().round));
    }
    training_ = false;
    starts_anew_ = true;
    begin_later_ = message;
    drop(lanes);
    return ok_status();
  }
  if (std::exchange(starts_anew_, false) || (training_ && message.round == round_.round)) {
    const MutexLock still(outer_.changing());  // a lane may be at a round before this one
    engine_.write_parameters(outer_.parameters());
  }
  return start(message);
}

Status InnerLoop::start(const HubRoundBegin& message) {
  end_waiting();
  steps_.forget();
  round_ = message;
  training_ = true;
  recover_.reset();
  inner_step_ = 0;
  loss_sum_ = 0;
  inner_seconds_ = 0;
  // Behind the last round its state is looked at, and none begins.
  const bool is_round = run_.max_rounds == 0 || message.round.value < run_.max_rounds;
  if (is_round) {
    status_.update([&](IslandState& s) {
      s.round = message.round.value;
      s.inner_step = 0;
      s.inner_steps = message.inner_steps;
    });
  }
  show(IslandPhase::kTraining);
  const bool goes_on = take_up_interrupted_work(message);
  if (is_round) owner_.publish(StateNews::kRoundBegin);
  if (goes_on) return ok_status();
  if (message.validate) ATOLL_RETURN_IF_ERROR(validate());
  if (message.evaluate) owner_.evaluate(/*to_the_end=*/message.inner_steps == 0);
  return message.inner_steps == 0 ? end_inner_phase(true) : ok_status();
}

Status InnerLoop::begin_what_waits() {
  if (!begin_later_) return ok_status();
  return on(*std::exchange(begin_later_, std::nullopt));
}

// Of the outer parameters. With several fragments what was trained of the others is put aside meanwhile: the one copy
// of the whole model that this loop makes, in rounds that are validated.
Status InnerLoop::validate() {
  OuterStep of = state_->outer_step;
  std::vector<float> local;
  if (fragments_.size() > 1) {
    local.resize(static_cast<std::size_t>(engine_.numel()));
    engine_.read_parameters(local);
    const MutexLock still(outer_.changing());
    of = outer_.version();
    engine_.write_parameters(outer_.parameters());
  }
  const Result<std::optional<double>> loss = validation_loss(engine_, batches_, stop_);
  if (!local.empty()) engine_.write_parameters(local);
  if (!loss.ok() && loss.error().code == ErrorCode::kAborted) return ok_status();  // its owner ends it
  if (!loss.ok() && loss.error().code == ErrorCode::kUnreachable) {                // the hub waits for nobody's loss
    spdlog::warn("validation outer_step={} error=\"{}\"", of.value, loss.error().message);
    return ok_status();
  }
  if (!loss.ok()) return loss.error();
  if (!*loss) return ok_status();
  status_.update([&](IslandState& s) { s.validation_loss_nats = **loss; });
  owner_.send(IslandValidation{of, **loss});
  return ok_status();
}

// Depends on the run's progress, so that an island that joins late trains at everybody's rate; but it comes without
// moments, and warms up for as long as the second takes to forget that it began at zero (2 / (1 - beta2) steps). With
// another island's moments it began no better, without either 0.1 nats worse for some 20 steps
// (tests/bench/newcomer_moments); and moments are nobody's but who says so.
float InnerLoop::learning_rate(std::uint32_t inner_step) const {
  const std::int64_t step = std::int64_t{round_.round.value} * run_.inner_steps + inner_step;
  const WarmupStableDecay schedule = round_.decay ? with_decay(schedule_, *round_.decay, run_.inner_steps) : schedule_;
  const double rate = learning_rate_at(schedule, step, 1);
  const std::int64_t own = engine_.optimizer_steps() + steps_.under_way();
  const double warmup = 2 / (1 - run_.inner.beta2);
  if (own >= step) return static_cast<float>(rate);  // it was there from the beginning
  return static_cast<float>(rate * std::min(1.0, static_cast<double>(own + 1) / warmup));
}

// The hub answers with another lease, or with none: the round is then begun again here, from the outer parameters.
Status InnerLoop::return_lease(const Error& why) {
  spdlog::warn("round={} lease={} returned=1 inner_step={} error=\"{}\"", round_.round.value,
               round_.lease_first_sequence, inner_step_, why.message);
  steps_.forget();
  training_ = false;
  starts_anew_ = true;
  owner_.send(IslandLeaseReturned{round_.round, round_.lease_first_sequence, why.message, round_.fragment});
  show(IslandPhase::kWaiting);
  owner_.publish(StateNews::kChanged);
  return ok_status();
}

// Of the whole phase there is always one step that is not finished while the next is begun, where the engine can be
// ahead: what it came to is told one call later, and all of it before the phase ends.
Status InnerLoop::work() {
  const std::uint32_t next = inner_step_ + steps_.under_way();
  if (next < round_.inner_steps) {
    const auto since = Clock::now();
    const Lease lease{round_.lease_first_sequence, round_.lease_sequences, round_.mixture, round_.expected_sequence};
    const Result<TokenBatch> batch = batches_.train_batch(round_.round, next, lease);
    if (!batch.ok() && batch.error().code == ErrorCode::kUnreachable) return return_lease(batch.error());
    if (!batch.ok() && batch.error().code == ErrorCode::kAborted) return ok_status();  // its owner ends it
    if (!batch.ok()) return batch.error();
    Status begun = steps_.begin(*batch, learning_rate(next), since, seconds_since(since));
    if (!begun.ok() && begun.error().code == ErrorCode::kAborted) return ok_status();  // its owner ends it
    if (!begun.ok()) return begun;
  }
  const bool last = inner_step_ + steps_.under_way() == round_.inner_steps;
  while (steps_.under_way() > 0 && (last || steps_.enough())) {
    ATOLL_ASSIGN_OR_RETURN(const bool finite, finish_step());
    if (!finite) return end_inner_phase(false);
  }
  return inner_step_ == round_.inner_steps ? end_inner_phase(true) : ok_status();
}

// False: a step that is not finite has changed nothing, nor did those after it. The hub is told, refuses this round's
// work, and has the island recover.
Result<bool> InnerLoop::finish_step() {
  const Result<TakenStep> step = steps_.finish();
  if (!step.ok() && step.error().code == ErrorCode::kNonFinite) {
    spdlog::error("round={} inner_step={} not_finite=\"{}\"", round_.round.value, inner_step_, step.error().message);
    steps_.forget();
    return false;
  }
  if (!step.ok()) return step.error();
  const StepReport& report = step->report;
  ++inner_step_;
  loss_sum_ += report.loss_nats;
  inner_seconds_ += step->seconds;
  status_.update([&](IslandState& s) {
    s.inner_step = inner_step_;
    s.loss_nats = report.loss_nats;
    s.learning_rate = static_cast<double>(step->learning_rate);
    s.gradient_norm = report.gradient_norm;
    s.tokens += static_cast<std::uint64_t>(report.tokens);
    s.tokens_per_second = static_cast<double>(report.tokens) * inner_step_ / inner_seconds_;
    s.inner_seconds += step->seconds;
    s.next_sync_seconds = inner_seconds_ / inner_step_ * (round_.inner_steps - inner_step_);
    // The wait for data counts as time in which nothing is computed, as in torchtitan's MFU.
    const double tokens_per_second = static_cast<double>(report.tokens) / step->seconds;
    s.flops_per_second = flops_ * tokens_per_second;
    if (peak_flops_) s.mfu = torchtitan_flops_ * tokens_per_second / *peak_flops_;
    show_step_times(s, *step);
  });
  owner_.publish(StateNews::kStep);
  return true;
}

// The lane makes the pseudo-gradient of the parameters as they are now, and says that the island is ready.
Status InnerLoop::end_inner_phase(bool finite) {
  waits_since_ = Clock::now();
  show(IslandPhase::kSyncing);
  LaneBegin begin;
  begin.finite = finite;
  begin.inner_steps = inner_step_;
  begin.ready = IslandReady{.round = round_.round,
                            .tokens = std::uint64_t{inner_step_} * run_.sequences_per_step * run_.sequence_length,
                            .norm_over_steps = 0,
                            .mean_loss_nats = loss_sum_ / std::max<std::uint32_t>(1, inner_step_)};
  if (round_.lease_sequences > 0) begin.ready.lease_first_sequence = round_.lease_first_sequence;
  const FragmentId fragment = run_.fragment_of(round_.round);
  if (finite) {
    begin.local = std::exchange(buffers_[fragment.value], {});
    begin.local.resize(static_cast<std::size_t>(part(fragment).numel));
    engine_.read_parameters(part(fragment).ranges, begin.local);
  }
  training_ = false;
  if (fragments_.size() == 1) engine_.rest();  // what the round makes now takes its place (net/step/memory_needs.h)
  open_.push_back(round_);
  owner_.post(fragment, std::move(begin));
  return begin_what_waits();
}

void InnerLoop::end_waiting() {
  const auto since = std::exchange(waits_since_, std::nullopt);
  if (since) status_.update([&](IslandState& s) { s.sync_seconds += seconds_since(*since); });
}

// ---- what lanes made of it
// -------------------------------------------------------------------------------------------

void InnerLoop::refuse(const HubCommit& message, const char* why) {
  IslandAttemptFailed refusal{message.round, message.attempt, {}, why};
  refusal.fragment = run_.fragment_of(message.round);
  owner_.send(refusal);
}

// One lane takes its outer step at a time, in the order of rounds.
Status InnerLoop::on(const HubCommit& message) {
  constexpr const char* kNotHeld = "does not hold the committed average";
  if (state_ && message.round < state_->outer_step) {  // taken already; after a reconnection
    const bool is_last = message.round.value + 1 == state_->outer_step.value;
    if (is_last) owner_.send(IslandApplied{state_->outer_step, state_->state_hash});
    return ok_status();
  }
  if (std::ranges::find(commits_, message.round, &HubCommit::round) != commits_.end()) return ok_status();
  const std::uint32_t next = state_ ? state_->outer_step.value + static_cast<std::uint32_t>(commits_.size()) : 0;
  // The hub answers with HubRecover: this island takes no outer step on anything but the committed average.
  if (!state_ || message.round.value != next || replaces_state() || commits_.size() >= fragments_.size()) {
    refuse(message, kNotHeld);
    return ok_status();
  }
  if (message.fragment != run_.fragment_of(message.round)) {
    refuse(message, "the commit names another fragment than its round's");
    return ok_status();
  }
  commits_.push_back(message);
  if (commits_.size() == 1) owner_.post(message.fragment, message);
  return ok_status();
}

Status InnerLoop::on(const LaneRefused& news) {
  if (commits_.empty() || commits_.front().round != news.round) return ok_status();
  commits_.pop_front();
  for (const HubCommit& after : std::exchange(commits_, {})) refuse(after, "does not hold the outer state before it");
  return ok_status();
}

Status InnerLoop::on(LaneApplied news) {
  state_ = news.state;
  buffers_[news.fragment.value] = std::move(news.buffer);
  if (replaces_state()) return ok_status();  // the whole of it is written to the engine then
  commits_.pop_front();
  bool had_round = training_ && round_.round == news.round;
  if (had_round) {
    training_ = false;
    steps_.forget();
  }
  if (!open_.empty() && open_.front().round == news.round) {
    open_.pop_front();
    had_round = true;
  }
  engine_.write_parameters(part(news.fragment).ranges, outer_.parameters());
  if (!training_) {
    show(open_.empty() ? IslandPhase::kWaiting : IslandPhase::kSyncing);
    if (had_round && open_.empty()) end_waiting();
  }
  status_.update([&](IslandState& s) {
    if (news.contributed) {
      s.accepted_round = news.round.value;
      s.rounds_accepted = s.rounds_accepted.value_or(0) + 1;
    }
    if (!had_round && !training_) s.round = news.round.value;  // told again by the hub: it began in another process
  });
  owner_.publish(StateNews::kSyncDone);
  if (!commits_.empty()) owner_.post(commits_.front().fragment, commits_.front());
  return begin_what_waits();
}

}  // namespace atl
