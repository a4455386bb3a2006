// How far a joining is, from a key to the first inner step, told stage by stage ("join.progress", docs/control.md). A
// pure state machine: what happens goes in, what is to be told comes out. Owned and used by the agent's loop.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

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
  std::string stage = {}, status = {}, text = {};
  nlohmann::json done = {};  // "join.done", to be published after the progress; null: nothing
};

class JoinStages {
 public:
  using Tell = std::function<void(const nlohmann::json& progress)>;

  explicit JoinStages(Tell tell) : tell_(std::move(tell)) {}

  void take(const JoinNews& news);

  // The trainer's part, in the order of its events. Ignored unless follows().
  void trainer_started();
  void trainer_says(const nlohmann::json& state);  // as its events tell it
  void transfer(const nlohmann::json& data);       // its event of that name
  void trainer_ended(const std::string& why);      // or did not start; another may come
  // A trainer is on its way to its first step.
  bool follows() const { return !run_.empty(); }

 private:
  enum Stage { kKey, kEnrol, kCheck, kTrainer, kData, kState, kFirstStep, kStages };
  enum class Status { kWaiting, kRunning, kDone, kFailed };

  static std::optional<Stage> stage_named(std::string_view name);
  void set(Stage stage, Status status, nlohmann::json more = nlohmann::json::object());
  void finish(Stage stage);  // once
  void fail(const std::string& why);

  const Tell tell_;
  std::array<Status, kStages> status_{};
  std::string run_;  // whose trainer is awaited
};

}  // namespace atl
