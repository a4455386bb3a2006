// How far a joining is, from a key to the first inner step, told stage by stage (event::JoinProgress). A
// pure state machine: what happens goes in, what is to be told comes out. Owned and used by the agent's loop.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "net/control/events.h"

namespace atl {

// What the work before there is a trainer says of itself.
struct JoinNews {
  enum class Kind {
    kBegan,
    kStage,     // `stage` has `status`
    kEnrolled,  // this machine belongs to run `text`; its trainer is to come
    kFailed,    // for the reason `text`
  };
  Kind kind = Kind::kBegan;
  JoinStage stage = JoinStage::kUnknown;
  StageStatus status = StageStatus::kUnknown;
  std::string text = {};
  std::optional<event::JoinDone> done = {};  // to be published after the progress
};

class JoinStages {
 public:
  using Tell = std::function<void(const event::JoinProgress& progress)>;

  explicit JoinStages(Tell tell) : tell_(std::move(tell)) {}

  void take(const JoinNews& news);

  // The trainer's part, in the order of its events. Ignored unless follows().
  void trainer_started();
  void trainer_says(const IslandState& state);  // as its events tell it
  void transfer(const event::Transfer& told);
  void trainer_ended(const std::string& why);  // or did not start; another may come
  // A trainer is on its way to its first step.
  bool follows() const { return !run_.empty(); }

 private:
  using Status = StageStatus;

  Status& status(JoinStage stage) { return status_[static_cast<std::size_t>(stage)]; }
  void set(JoinStage stage, Status status, event::JoinProgress more = {});
  void finish(JoinStage stage);  // once
  void fail(const std::string& why);

  const Tell tell_;
  std::array<Status, kJoinStages> status_{};
  std::string run_;  // whose trainer is awaited
};

}  // namespace atl
