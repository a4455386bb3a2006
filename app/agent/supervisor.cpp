#include "app/agent/supervisor.h"

#include <fmt/format.h>

#include <algorithm>

namespace atl {
namespace {

std::string in_seconds(Clock::duration duration) { return fmt::format("{:.0f} s", Seconds(duration).count()); }

}  // namespace

Supervisor::Actions Supervisor::next(const SupervisorEvent& event, Clock::time_point now) {
  now_ = now;
  std::visit([this](const auto& e) { on(e); }, event);
  settle();
  return std::exchange(actions_, {});
}

// ---- events

void Supervisor::on(const TrainerStarted& event) {
  phase_ = Phase::kRunning;
  asked_.reset();
  renews_ = killed_ = false;
  answered_ = false;
  training_ = false;
  progress_ = 0;
  longest_step_ = {};
  stopped_since_.reset();
  trained_since_.reset();
  started_at_ = heard_at_ = progress_at_ = now_;
  // One that was alive before has answered somebody: it gets no time to start.
  if (event.taken_over) answered_ = true;
}

void Supervisor::on(const TrainerDidNotStart& event) {
  TrainerExit exit;
  exit.text = event.why;
  failed(exit);
}

void Supervisor::on(const TrainerAnswered& event) {
  if (!has_process()) return;
  answered_ = true;
  heard_at_ = now_;
  stopped_since_.reset();
  if (event.progress != progress_ || event.training != training_) {
    if (event.training && training_) longest_step_ = std::max(longest_step_, now_ - progress_at_);
    progress_ = event.progress;
    progress_at_ = now_;
  }
  training_ = event.training;
  if (!training_) return;
  if (!trained_since_) trained_since_ = now_;
  if (event.contributed || now_ - *trained_since_ >= options_.stable_after) forget_failures();
}

void Supervisor::on(const TrainerStopped&) {
  if (!stopped_since_) stopped_since_ = now_;
}

void Supervisor::on(const TrainerEnded& event) {
  if (!has_process()) return;
  const bool as_asked = phase_ == Phase::kEnding && event.exit.cause != ExitCause::kHung;
  last_exit_ = event.exit;
  phase_ = Phase::kIdle;
  if (event.exit.cause == ExitCause::kRunFinished || (as_asked && wish_ == Wish::kFinish)) {
    actions_.push_back(SettleWish{Wish::kStop});
    wish_ = Wish::kStop;
  } else if (!as_asked) {
    failed(event.exit);
  }
}

void Supervisor::failed(const TrainerExit& exit) {
  last_exit_ = exit;
  if (wish_ == Wish::kFinish) {
    actions_.push_back(SettleWish{Wish::kStop});
    wish_ = Wish::kStop;
    phase_ = Phase::kIdle;
    return;
  }
  // What the network does is no failure of this machine's, however often and whatever else fails between.
  int& in_a_row = exit.cause == ExitCause::kHubUnreachable ? unreachable_ : failures_;
  in_a_row = std::min(in_a_row + 1, 1000);
  if (is_final(exit.cause) || failures_ >= options_.failures_in_a_row) {
    phase_ = Phase::kFailed;
    return;
  }
  const int doublings = std::min(in_a_row - 1, 20);
  const auto delay =
      std::min<std::chrono::milliseconds>(options_.first_backoff * (1LL << doublings), options_.longest_backoff);
  phase_ = Phase::kBackoff;
  retry_at_ = now_ + delay;
}

void Supervisor::on(const Wished& event) {
  const bool renewed = event.wish != wish_ || phase_ == Phase::kFailed;
  wish_ = event.wish;
  if (event.at_once && has_process()) kill({});
  if (!renewed) return;
  forget_failures();
  if (phase_ == Phase::kFailed || phase_ == Phase::kBackoff) phase_ = Phase::kIdle;
}

void Supervisor::on(const GpusChanged&) { renews_ = has_process(); }

void Supervisor::on(const Joined& event) {
  if (event.joined == joined_) return;
  joined_ = event.joined;
  forget_failures();
  if (phase_ == Phase::kFailed || phase_ == Phase::kBackoff) phase_ = Phase::kIdle;
}

void Supervisor::on(const EndAsked&) { end_asked_ = true; }

void Supervisor::on(const EndNow&) {
  end_asked_ = true;
  if (has_process()) kill({});
}

// ---- what the state of things now calls for

void Supervisor::settle() {
  if (has_process()) {
    // What the owner wants now, as the trainer understands it; a resume after a pause, and other GPUs, start it anew
    // once it is gone.
    const std::optional<Wish> wanted = !joined_              ? std::optional(Wish::kStop)
                                       : end_asked_          ? std::optional(ending_wish())
                                       : wish_ != Wish::kRun ? std::optional(wish_)
                                       : renews_             ? std::optional(Wish::kPause)
                                                             : std::nullopt;
    const bool stronger = wanted && (!asked_ || (*asked_ == Wish::kFinish && *wanted != Wish::kFinish));
    if (stronger && !killed_) {
      asked_ = wanted;
      phase_ = Phase::kEnding;
      end_by_ = now_ + options_.end_within;
      actions_.push_back(AskTrainer{*wanted});
    }
    return watch_for_hangs();
  }
  settle_idle();
}

void Supervisor::settle_idle() {
  if (end_asked_) {
    phase_ = Phase::kOver;
    return;
  }
  if (phase_ == Phase::kBackoff && !should_run()) phase_ = Phase::kIdle;
  if (!should_run() || phase_ == Phase::kFailed) {
    if (wish_ == Wish::kFinish) {  // there is nothing to finish
      actions_.push_back(SettleWish{Wish::kStop});
      wish_ = Wish::kStop;
    }
    return;
  }
  if (phase_ == Phase::kBackoff && now_ < retry_at_) return;
  if (phase_ == Phase::kBackoff) ++restarts_;
  phase_ = Phase::kRunning;  // until TrainerStarted or TrainerDidNotStart says more
  started_at_ = heard_at_ = now_;
  answered_ = false;
  actions_.push_back(StartTrainer{});
}

void Supervisor::watch_for_hangs() {
  if (killed_) return;
  // A round takes as long as it takes: a trainer that finishes it is watched like one that trains on.
  const bool ends_soon = asked_ && *asked_ != Wish::kFinish;
  if (ends_soon && now_ >= end_by_)
    return kill(fmt::format("it did not end within {}", in_seconds(options_.end_within)));
  if (stopped_since_ && now_ - *stopped_since_ >= options_.stopped_within) {
    return kill("its process was stopped (SIGSTOP or a debugger) and did not go on");
  }
  const auto silent = now_ - heard_at_;
  if (silent >= (answered_ ? options_.answer_within : options_.start_within)) {
    return kill(fmt::format("it did not answer for {}", in_seconds(silent)));
  }
  const auto allowed = std::max<Clock::duration>(options_.step_within, options_.usual_steps * longest_step_);
  if (training_ && now_ - progress_at_ >= allowed) {
    kill(fmt::format("it said that it trains, and took no step for {}", in_seconds(now_ - progress_at_)));
  }
}

void Supervisor::kill(const std::string& hung) {
  killed_ = true;
  actions_.push_back(KillTrainer{hung});
}

}  // namespace atl
