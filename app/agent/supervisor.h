// When a trainer is started, asked to end, killed, started again, given up. A pure state machine: events and the time
// go in, actions come out; processes, sockets and clocks are its owner's (app/agent/agent). One thread.
//
// idle -> running -> (ending) -> idle, and running -> backoff -> running after an end that nobody wished; failed after
// too many of those, or after one that the next start would only repeat. Failed ends with a new wish.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "app/agent/trainer_exit.h"
#include "app/agent/wish.h"
#include "net/base/deadline.h"

namespace atl {

struct SupervisorOptions {
  std::chrono::milliseconds first_backoff{1'000};
  std::chrono::milliseconds longest_backoff{300'000};
  int failures_in_a_row = 10;                       // then it is given up; an unreachable hub does not count
  std::chrono::milliseconds stable_after{60'000};   // of training, or one contribution: earlier failures are forgotten
  std::chrono::milliseconds start_within{120'000};  // until it answers for the first time
  std::chrono::milliseconds answer_within{15'000};  // hung: its socket is silent
  std::chrono::milliseconds stopped_within{5'000};  // hung: stopped by a signal
  std::chrono::milliseconds step_within{300'000};   // hung: trains, and no part of a step is done; at least
  int usual_steps = 20;                             // and at least so many times as long as its steps took
  std::chrono::milliseconds end_within{90'000};     // after it was asked to end; then it is killed
  Wish agent_ends = Wish::kPause;  // what the trainer is asked to when its agent ends: by default it keeps its place
};

// ---- in

struct TrainerStarted {  // also: taken over
  bool taken_over = false;
};
struct TrainerDidNotStart {
  std::string why;
};
struct TrainerAnswered {
  bool training = false;       // taking inner steps
  std::uint64_t progress = 0;  // changes with every part of a step, round and state
  bool contributed = false;    // a round was committed with its work, since it was started
};
struct TrainerStopped {};  // a signal has stopped its process, seen now
struct TrainerEnded {
  TrainerExit exit;
};
struct Wished {
  Wish wish = Wish::kRun;
  bool at_once = false;  // without a clean end
};
struct GpusChanged {};  // the trainer is to compute on others than those that it was started with
struct Joined {         // the home belongs to a run, or no longer
  bool joined = true;
};
struct EndAsked {};  // of the agent: the trainer ends first
struct EndNow {};
struct SupervisorTick {};

using SupervisorEvent = std::variant<TrainerStarted, TrainerDidNotStart, TrainerAnswered, TrainerStopped, TrainerEnded,
                                     Wished, GpusChanged, Joined, EndAsked, EndNow, SupervisorTick>;

// ---- out: to be carried out in order

struct StartTrainer {};
struct AskTrainer {  // by its control socket, or SIGTERM when that does not answer
  Wish to = Wish::kStop;
};
struct KillTrainer {
  std::string hung;  // why, if it is for that
};
struct SettleWish {  // a finish is done: the wish is kStop from now on
  Wish wish = Wish::kStop;
};
using SupervisorAction = std::variant<StartTrainer, AskTrainer, KillTrainer, SettleWish>;

class Supervisor {
 public:
  using Actions = std::vector<SupervisorAction>;
  enum class Phase { kIdle, kRunning, kEnding, kBackoff, kFailed, kOver };

  Supervisor(SupervisorOptions options, Wish wish, bool joined) : options_(options), wish_(wish), joined_(joined) {}

  // SupervisorTick: at least every second. `now` never goes back.
  Actions next(const SupervisorEvent& event, Clock::time_point now);

  Phase phase() const { return phase_; }
  Wish wish() const { return wish_; }
  bool joined() const { return joined_; }
  bool over() const { return phase_ == Phase::kOver; }  // the agent may end
  std::uint64_t restarts() const { return restarts_; }
  const std::optional<TrainerExit>& last_exit() const { return last_exit_; }
  // In kBackoff.
  Clock::time_point retry_at() const { return retry_at_; }
  // Whether the trainer has ever trained since it was started.
  bool has_trained() const { return trained_since_.has_value(); }

 private:
  void on(const TrainerStarted& event);
  void on(const TrainerDidNotStart& event);
  void on(const TrainerAnswered& event);
  void on(const TrainerStopped& event);
  void on(const TrainerEnded& event);
  void on(const Wished& event);
  void on(const GpusChanged& event);
  void on(const Joined& event);
  void on(const EndAsked& event);
  void on(const EndNow& event);
  void on(const SupervisorTick&) {}
  void settle();
  void settle_idle();
  void watch_for_hangs();
  void kill(const std::string& hung);
  void failed(const TrainerExit& exit);
  void forget_failures() { failures_ = unreachable_ = 0; }
  bool has_process() const { return phase_ == Phase::kRunning || phase_ == Phase::kEnding; }
  // One that finishes or stops for good does not come back to its place.
  Wish ending_wish() const { return wish_ == Wish::kStop ? Wish::kStop : options_.agent_ends; }
  bool should_run() const { return joined_ && (wish_ == Wish::kRun); }

  const SupervisorOptions options_;
  Clock::time_point now_;
  Actions actions_;

  Phase phase_ = Phase::kIdle;
  Wish wish_;
  bool joined_;
  bool end_asked_ = false;
  std::optional<Wish> asked_;  // of the trainer that runs
  Clock::time_point end_by_;   // since then
  bool renews_ = false;        // it is to end, its work kept, for another
  bool killed_ = false;

  bool answered_ = false;  // since it was started
  Clock::time_point heard_at_;
  Clock::time_point started_at_;
  bool training_ = false;
  std::uint64_t progress_ = 0;
  Clock::time_point progress_at_;
  Clock::duration longest_step_{};
  std::optional<Clock::time_point> stopped_since_;
  std::optional<Clock::time_point> trained_since_;

  int failures_ = 0;     // in a row, but for those of a hub that could not be reached
  int unreachable_ = 0;  // the latter, in a row
  Clock::time_point retry_at_;
  std::uint64_t restarts_ = 0;
  std::optional<TrainerExit> last_exit_;
};

}  // namespace atl
