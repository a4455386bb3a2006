#include "app/agent/join_stages.h"

namespace atl {

void JoinStages::set(JoinStage stage, Status now, event::JoinProgress more) {
  const bool has_figures = more.done_bytes || more.total_bytes || more.bytes_per_second || more.seconds_left;
  const bool known = status(stage) == now;
  if (known && !has_figures && more.text.empty()) return;
  status(stage) = now;
  more.stage = stage;
  more.status = now;
  tell_(more);
}

void JoinStages::finish(JoinStage stage) {
  if (status(stage) != Status::kDone) set(stage, Status::kDone);
}

// The last stage that runs, else the first that is not done.
void JoinStages::fail(const std::string& why) {
  std::optional<JoinStage> failed;
  for (int i = 0; i < kJoinStages; ++i) {
    const auto stage = static_cast<JoinStage>(i);
    if (status(stage) == Status::kRunning) failed = stage;
  }
  for (int i = 0; i < kJoinStages && !failed; ++i) {
    if (status(static_cast<JoinStage>(i)) != Status::kDone) failed = static_cast<JoinStage>(i);
  }
  if (failed) set(*failed, Status::kFailed, {.text = why});
}

void JoinStages::take(const JoinNews& news) {
  switch (news.kind) {
    case JoinNews::Kind::kBegan:
      status_.fill(Status::kWaiting);
      run_.clear();
      return;
    case JoinNews::Kind::kStage:
      if (news.stage != JoinStage::kUnknown) set(news.stage, news.status);
      return;
    case JoinNews::Kind::kEnrolled:
      for (const JoinStage stage : {JoinStage::kKey, JoinStage::kEnrol, JoinStage::kCheck}) finish(stage);
      run_ = news.text;
      set(JoinStage::kTrainer, Status::kRunning);
      return;
    case JoinNews::Kind::kFailed: run_.clear(); return fail(news.text);
  }
}

void JoinStages::trainer_started() {
  if (follows()) set(JoinStage::kTrainer, Status::kRunning);
}

void JoinStages::trainer_says(const IslandState& state) {
  // The last words of a trainer of another run are not this one's first.
  if (!follows() || state.run_id != run_) return;
  const IslandPhase phase = state.state;
  if (phase == IslandPhase::kError || phase == IslandPhase::kStopped) return;  // it ends; why is told by its end
  finish(JoinStage::kTrainer);
  if (phase == IslandPhase::kJoining) {
    if (status(JoinStage::kData) != Status::kDone) set(JoinStage::kData, Status::kRunning);
    return;
  }
  finish(JoinStage::kData);
  if (phase == IslandPhase::kRecovering) return set(JoinStage::kState, Status::kRunning);
  finish(JoinStage::kState);
  if (state.tokens == 0) return set(JoinStage::kFirstStep, Status::kRunning);
  finish(JoinStage::kFirstStep);
  run_.clear();
}

void JoinStages::transfer(const event::Transfer& told) {
  if (!follows() || told.what == Download::kUnknown) return;
  const JoinStage stage = told.what == Download::kData ? JoinStage::kData : JoinStage::kState;
  finish(JoinStage::kTrainer);
  if (stage == JoinStage::kState) finish(JoinStage::kData);
  event::JoinProgress figures{.done_bytes = told.done_bytes,
                              .total_bytes = told.total_bytes,
                              .bytes_per_second = told.bytes_per_second,
                              .seconds_left = told.seconds_left,
                              .text = told.text};
  // What failed is tried again, or ends the trainer, which tells of itself.
  set(stage, told.status == DownloadStatus::kDone ? Status::kDone : Status::kRunning, std::move(figures));
}

void JoinStages::trainer_ended(const std::string& why) {
  if (follows()) fail(why.empty() ? "the trainer ended" : why);
}

}  // namespace atl
