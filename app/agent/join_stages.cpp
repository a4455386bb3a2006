#include "app/agent/join_stages.h"

#include "net/control/told.h"

namespace atl {
namespace {

constexpr std::array<const char*, 7> kNames = {"key", "enrol", "check", "trainer", "data", "state", "first_step"};
constexpr std::array<const char*, 4> kStatusNames = {"waiting", "running", "done", "failed"};
constexpr std::size_t kMaxText = 512;

}  // namespace

std::optional<JoinStages::Stage> JoinStages::stage_named(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<Stage>(i);
  }
  return std::nullopt;
}

void JoinStages::set(Stage stage, Status status, nlohmann::json more) {
  const bool known = status_[stage] == status;
  if (known && more.empty()) return;
  status_[stage] = status;
  more["stage"] = kNames[stage];
  more["status"] = kStatusNames[static_cast<std::size_t>(status)];
  tell_(more);
}

void JoinStages::finish(Stage stage) {
  if (status_[stage] != Status::kDone) set(stage, Status::kDone);
}

// The last stage that runs, else the first that is not done.
void JoinStages::fail(const std::string& why) {
  std::optional<Stage> failed;
  for (int i = kKey; i < kStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    if (status_[stage] == Status::kRunning) failed = stage;
  }
  for (int i = kKey; i < kStages && !failed; ++i) {
    if (status_[static_cast<std::size_t>(i)] != Status::kDone) failed = static_cast<Stage>(i);
  }
  if (failed) set(*failed, Status::kFailed, {{"text", why}});
}

void JoinStages::take(const JoinNews& news) {
  switch (news.kind) {
    case JoinNews::Kind::kBegan:
      status_.fill(Status::kWaiting);
      run_.clear();
      return;
    case JoinNews::Kind::kStage:
      if (const auto stage = stage_named(news.stage))
        set(*stage, news.status == "done" ? Status::kDone : Status::kRunning);
      return;
    case JoinNews::Kind::kEnrolled:
      for (const Stage stage : {kKey, kEnrol, kCheck}) finish(stage);
      run_ = news.text;
      set(kTrainer, Status::kRunning);
      return;
    case JoinNews::Kind::kFailed: run_.clear(); return fail(news.text);
  }
}

void JoinStages::trainer_started() {
  if (follows()) set(kTrainer, Status::kRunning);
}

void JoinStages::trainer_says(const nlohmann::json& state) {
  // The last words of a trainer of another run are not this one's first.
  if (!follows() || told::text(state, "run_id") != run_) return;
  const std::string word = told::text(state, "state");
  if (word == "error" || word == "stopped") return;  // it ends; why is told by its end
  finish(kTrainer);
  if (word == "joining") {
    if (status_[kData] != Status::kDone) set(kData, Status::kRunning);
    return;
  }
  finish(kData);
  if (word == "recovering") return set(kState, Status::kRunning);
  finish(kState);
  if (told::number(state, "tokens").value_or(0) <= 0) return set(kFirstStep, Status::kRunning);
  finish(kFirstStep);
  run_.clear();
}

void JoinStages::transfer(const nlohmann::json& data) {
  const auto stage = stage_named(told::text(data, "what"));
  if (!follows() || (stage != kData && stage != kState)) return;
  finish(kTrainer);
  if (stage == kState) finish(kData);
  nlohmann::json figures = nlohmann::json::object();
  for (const char* key : {"done_bytes", "total_bytes", "bytes_per_second", "seconds_left"}) {
    if (data.contains(key) && data[key].is_number()) figures[key] = data[key];
  }
  if (const std::string text = told::text(data, "text", kMaxText); !text.empty()) figures["text"] = text;
  // What failed is tried again, or ends the trainer, which tells of itself.
  set(*stage, told::text(data, "status") == "done" ? Status::kDone : Status::kRunning, std::move(figures));
}

void JoinStages::trainer_ended(const std::string& why) {
  if (follows()) fail(why.empty() ? "the trainer ended" : why);
}

}  // namespace atl
