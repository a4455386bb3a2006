#include "net/collective/progress_meter.h"

#include <algorithm>

namespace atl {
namespace {

constexpr std::chrono::milliseconds kWindow{1000};

double rate(std::uint64_t before, std::uint64_t after, double seconds) {
  return after > before && seconds > 0 ? static_cast<double>(after - before) / seconds : 0;
}

}  // namespace

AllReduceProgress ProgressMeter::progress(const Counts& counts, const Reading& since, Clock::time_point now) const {
  const double seconds = Seconds(now - since.when).count();
  AllReduceProgress progress;
  progress.bytes_total = ring_bytes_ + direct_bytes_;
  progress.bytes_done = std::min(progress.bytes_total, counts.received());
  const bool contributions_lack = counts.direct_bytes < direct_bytes_;
  if (inbound_ != nullptr) {
    progress.steps = inbound_->steps();
    progress.step = inbound_->step_after(counts.ring_bytes);
    progress.phase = inbound_->phase_of_step(progress.step);
  } else {
    progress.steps = 2;
    progress.step = contributions_lack ? 0 : counts.ring_bytes < ring_bytes_ ? 1 : 2;
    progress.phase = RingPhase::kAllGather;
  }
  // Contributions past the ring are the reduce-scatter of formats whose ring only gathers.
  if (contributions_lack) progress.phase = RingPhase::kReduceScatter;
  progress.received_bytes_per_second = rate(since.received, counts.received(), seconds);
  progress.sent_bytes_per_second = rate(since.sent, counts.sent_bytes, seconds);
  return progress;
}

void ProgressMeter::tell(const Counts& counts, Clock::time_point now) {
  while (told_.size() > 1 && now - told_[1].when >= kWindow) told_.pop_front();
  tell_(progress(counts, told_.front(), now));
  told_.push_back({now, counts.received(), counts.sent_bytes});
}

void ProgressMeter::look(const Counts& counts, Clock::time_point now) {
  if (told_.empty()) told_.push_back({now, counts.received(), counts.sent_bytes});
  if (now - told_.back().when >= kEvery) tell(counts, now);
}

void ProgressMeter::finish(const Counts& counts, Clock::time_point now) {
  if (told_.size() > 1) tell(counts, now);
}

}  // namespace atl
