#include "app/agent/agent_board.h"

#include <fmt/format.h>
#include <unistd.h>

#include "net/control/island_state.h"

namespace atl {
namespace {

using Phase = Supervisor::Phase;

constexpr std::chrono::seconds kGpusAreNews{30};

nlohmann::json exit_json(const std::optional<TrainerExit>& exit) {
  if (!exit) return nullptr;
  return {{"cause", to_string(exit->cause)},
          {"text", exit->text},
          {"status", exit->status},
          {"unix_seconds", exit->unix_seconds}};
}

double seconds_until(Clock::time_point when) { return std::max(0.0, Seconds(when - Clock::now()).count()); }

// The state's word while no trainer answers.
std::string word_without_trainer(const AgentFacts& facts) {
  if (!facts.joined) return "unjoined";
  switch (facts.phase) {
    case Phase::kRunning:
    case Phase::kEnding: return "joining";
    case Phase::kBackoff:
      return facts.last_exit && facts.last_exit->cause == ExitCause::kHubUnreachable ? "reconnecting" : "error";
    case Phase::kFailed: return "error";
    case Phase::kIdle:
    case Phase::kOver: break;
  }
  return facts.followed == Wish::kPause ? "paused" : "stopped";
}

std::string error_without_trainer(const AgentFacts& facts) {
  if (!facts.last_exit || (facts.phase != Phase::kBackoff && facts.phase != Phase::kFailed)) return {};
  const std::string what = facts.last_exit->text.empty() ? "the trainer ended" : facts.last_exit->text;
  if (facts.phase == Phase::kFailed) return what + "; when that is put right: atoll resume";
  return facts.retry_at ? fmt::format("{}; starts again in {:.0f} s", what, seconds_until(*facts.retry_at)) : what;
}

}  // namespace

void AgentBoard::set_facts(AgentFacts facts) {
  std::lock_guard lock(mutex_);
  facts.wish = facts_.wish;
  facts_ = std::move(facts);
}

void AgentBoard::set_wish(const WishFile& wish) {
  std::lock_guard lock(mutex_);
  facts_.wish = wish;
}

void AgentBoard::update(const std::function<void(AgentFacts&)>& change) {
  std::lock_guard lock(mutex_);
  change(facts_);
}

void AgentBoard::set_trainer_state(const nlohmann::json& state) {
  std::lock_guard lock(mutex_);
  if (facts_.trainer_pid == 0) return;  // its last words, after its end
  trainer_ = state;
  heard_at_ = Clock::now();
}

void AgentBoard::forget_trainer() {
  std::lock_guard lock(mutex_);
  if (!trainer_.is_null()) last_ = std::exchange(trainer_, nullptr);
  gpus_ = nullptr;
}

void AgentBoard::set_gpus(nlohmann::json gpus) {
  std::lock_guard lock(mutex_);
  if (facts_.trainer_pid == 0) return;
  gpus_ = std::move(gpus);
  gpus_at_ = Clock::now();
}

AgentFacts AgentBoard::facts() const {
  std::lock_guard lock(mutex_);
  return facts_;
}

// What is known of the island while no trainer says it.
nlohmann::json AgentBoard::base() const {
  IslandState state;
  if (last_.is_object()) {
    if (auto before = IslandState::from_json(last_); before.ok()) state = *before;
  } else if (const auto join = load_join_file(home_.join_file()); join.ok()) {
    state.run_id = join->run_id;
    state.run_name = join->run_name;
    state.name = join->display_name;
  }
  state.pid = 0;
  state.tokens_per_second = 0;
  state.mfu.reset();
  state.next_sync_seconds.reset();
  state.micro_batch.reset();
  state.memory_bytes.reset();
  state.state = word_without_trainer(facts_);
  state.error = error_without_trainer(facts_);
  return state.to_json();
}

nlohmann::json AgentBoard::state() const {
  std::lock_guard lock(mutex_);
  nlohmann::json state = trainer_.is_object() ? trainer_ : base();
  if (trainer_.is_object() && facts_.followed == Wish::kFinish) state["state"] = "finishing";
  if (facts_.disk_free_bytes) state["disk_free_bytes"] = *facts_.disk_free_bytes;
  if (!gpus_.is_null() && Clock::now() - gpus_at_ < kGpusAreNews) state["gpus"] = gpus_;
  const WishFile& wish = facts_.wish;
  state["agent"] = {
      {"pid", ::getpid()},
      {"version", ATOLL_VERSION},
      {"wish", to_string(wish.wish)},
      {"followed", to_string(facts_.followed)},
      {"since_unix_seconds", wish.since_unix_seconds},
      {"paused_until_unix_seconds",
       wish.paused_until_unix_seconds ? nlohmann::json(*wish.paused_until_unix_seconds) : nlohmann::json()},
      {"seconds", Seconds(Clock::now() - began_).count()},
      {"trainer_pid", facts_.trainer_pid},
      {"taken_over", facts_.taken_over},
      {"heard_seconds_ago",
       trainer_.is_object() ? nlohmann::json(Seconds(Clock::now() - heard_at_).count()) : nlohmann::json()},
      {"restarts", facts_.restarts},
      {"restart_in_seconds", facts_.retry_at ? nlohmann::json(seconds_until(*facts_.retry_at)) : nlohmann::json()},
      {"last_exit", exit_json(facts_.last_exit)},
      {"warning", facts_.warning}};
  return state;
}

}  // namespace atl
