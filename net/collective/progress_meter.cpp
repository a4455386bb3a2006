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
  progress.bytes_total = inbound_.bytes() + direct_bytes_;
  progress.bytes_done = std::min(progress.bytes_total, counts.received());
  progress.steps = inbound_.steps();
  progress.step = inbound_.step_after(counts.ring_bytes);
  // Contributions past the ring are the reduce-scatter of formats whose ring only gathers.
  progress.phase =
      counts.direct_bytes < direct_bytes_ ? RingPhase::kReduceScatter : inbound_.phase_of_step(progress.step);
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
