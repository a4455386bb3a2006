#include "app/agent/agent_board.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "net/base/mutex.h"
#include "net/base/unix_time.h"

namespace atl {
namespace {

using Phase = Supervisor::Phase;

constexpr std::chrono::seconds kGpusAreNews{30};

double seconds_until(Clock::time_point when) { return std::max(0.0, Seconds(when - Clock::now()).count()); }

// What the island does while no trainer answers.
IslandPhase phase_without_trainer(const AgentFacts& facts) {
  if (!facts.joined) return IslandPhase::kUnjoined;
  switch (facts.phase) {
    case Phase::kRunning:
    case Phase::kEnding: return IslandPhase::kJoining;
    case Phase::kBackoff:
      return facts.last_exit && facts.last_exit->cause == ExitCause::kHubUnreachable ? IslandPhase::kReconnecting
                                                                                     : IslandPhase::kError;
    case Phase::kFailed: return IslandPhase::kError;
    case Phase::kIdle:
    case Phase::kOver: break;
  }
  return facts.followed == Wish::kPause ? IslandPhase::kPaused : IslandPhase::kStopped;
}

std::string error_without_trainer(const AgentFacts& facts) {
  if (!facts.last_exit || (facts.phase != Phase::kBackoff && facts.phase != Phase::kFailed)) return {};
  const std::string what = facts.last_exit->text.empty() ? "the trainer ended" : facts.last_exit->text;
  if (facts.phase == Phase::kFailed) {
    const bool is_refused = facts.last_exit->cause == ExitCause::kRefused;
    return fmt::format("{}; when that is put right: atoll resume{}", what,
                       is_refused ? ", or with another invite: atoll join --invite-stdin" : "");
  }
  return facts.retry_at ? fmt::format("{}; starts again in {:.0f} s", what, seconds_until(*facts.retry_at)) : what;
}

}  // namespace

void AgentBoard::set_facts(AgentFacts facts) {
  MutexLock lock(mutex_);
  facts.wish = facts_.wish;
  facts.paused_gpus = facts_.paused_gpus;
  facts_ = std::move(facts);
}

void AgentBoard::set_wish(const WishFile& wish) {
  MutexLock lock(mutex_);
  facts_.wish = wish;
}

void AgentBoard::set_paused_gpus(const PausedGpus& paused) {
  MutexLock lock(mutex_);
  facts_.paused_gpus = paused;
}

void AgentBoard::update(const std::function<void(AgentFacts&)>& change) {
  MutexLock lock(mutex_);
  change(facts_);
}

void AgentBoard::set_trainer_state(const IslandState& state) {
  MutexLock lock(mutex_);
  if (facts_.trainer_pid == 0) return;  // its last words, after its end
  trainer_ = state;
  heard_at_ = Clock::now();
}

void AgentBoard::forget_trainer() {
  MutexLock lock(mutex_);
  // One that never reached the hub knows less of the run than the one before.
  if (trainer_ && (!last_ || !trainer_->run_id.empty())) last_ = trainer_;
  trainer_.reset();
  gpus_.clear();
}

void AgentBoard::set_gpus(std::vector<GpuSample> gpus) {
  MutexLock lock(mutex_);
  if (facts_.trainer_pid == 0) return;
  gpus_ = std::move(gpus);
  gpus_at_ = Clock::now();
}

AgentFacts AgentBoard::facts() const {
  MutexLock lock(mutex_);
  return facts_;
}

// What is known of the island while no trainer says it.
IslandState AgentBoard::base() const {
  IslandState state;
  if (last_) {
    state = *last_;
  } else if (const auto join = load_join_file(home_.join_file()); join.ok()) {
    state.run_id = join->run_id;
    state.run_name = join->run_name;
    state.name = join->display_name;
  }
  state.pid = 0;
  state.tokens_per_second = 0;
  state.mfu.reset();
  state.flops_per_second.reset();
  state.step_seconds.reset();
  state.next_sync_seconds.reset();
  state.micro_batch.reset();
  state.memory_bytes.reset();
  state.state = phase_without_trainer(facts_);
  state.error = error_without_trainer(facts_);
  return state;
}

NodeState AgentBoard::state() const {
  MutexLock lock(mutex_);
  NodeState state = put_together(trainer_ ? *trainer_ : base(), trainer_.has_value());
  if (Clock::now() - gpus_at_ < kGpusAreNews) state.gpus = gpus_;
  return state;
}

NodeState AgentBoard::with_agent(const IslandState& trainer) const {
  MutexLock lock(mutex_);
  return put_together(trainer, /*trainer_answers=*/true);
}

NodeState AgentBoard::put_together(const IslandState& island, bool trainer_answers) const {
  NodeState state{.island = island, .has_agent = true};
  // The trainer does not know that it is to end.
  if (trainer_answers && facts_.followed == Wish::kFinish) state.island.state = IslandPhase::kFinishing;
  if (!facts_.joined) state.island.state = IslandPhase::kUnjoined;
  state.disk_free_bytes = facts_.disk_free_bytes;
  const WishFile& wish = facts_.wish;
  AgentView& agent = state.agent;
  agent.pid = ::getpid();
  agent.version = ATOLL_VERSION;
  agent.wish = wish.wish;
  agent.followed = facts_.followed;
  agent.since = wish.since_unix_seconds;
  agent.paused_until = wish.paused_until_unix_seconds;
  agent.seconds = Seconds(Clock::now() - began_).count();
  agent.trainer_pid = facts_.trainer_pid;
  agent.taken_over = facts_.taken_over;
  if (trainer_answers) agent.heard_seconds_ago = trainer_ ? Seconds(Clock::now() - heard_at_).count() : 0.0;
  agent.restarts = facts_.restarts;
  if (facts_.retry_at) agent.restart_in_seconds = seconds_until(*facts_.retry_at);
  if (const auto& exit = facts_.last_exit) {
    agent.last_exit = TrainerExitView{exit->cause, exit->text, exit->unix_seconds, exit->status};
  }
  agent.warning = facts_.warning;
  agent.upload_cap = facts_.upload_cap;
  agent.download_cap = facts_.download_cap;
  // Where the owner wants it to train, and it does not.
  if (wish_now(wish, unix_seconds_now()) == Wish::kRun) agent.paused_by = facts_.paused_by;
  agent.paused_gpus = facts_.paused_gpus.at(unix_seconds_now()).pauses;
  agent.contributed = contributions_.of(island.run_id);
  return state;
}

}  // namespace atl
