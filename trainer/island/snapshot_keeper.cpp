#include "trainer/island/snapshot_keeper.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace atl {
namespace {

constexpr std::chrono::seconds kQuickWrite{1};
constexpr int kWriteShare = 20;
constexpr std::size_t kChunksOfFlush = 16;  // 256 MiB
constexpr int kMostPasses = 8;              // over chunks that the state has left behind, where rounds are not logged

// One snapshot, from its first chunk to the state to which all lead.
class WrittenState {
 public:
  WrittenState(SnapshotDisk& disk, const OuterStateStore& outer, const std::stop_token& stop)
      : disk_(disk), outer_(outer), stop_(stop) {}

  Result<HeldState> write() {
    ATOLL_ASSIGN_OR_RETURN(const std::uint64_t numel, outer_.held_numel());
    ATOLL_RETURN_IF_ERROR(disk_.begin(numel));
    steps_.resize(state_chunks(numel));
    for (int pass = 0; pass < kMostPasses; ++pass) {
      ATOLL_RETURN_IF_ERROR(copy_what_is_missing());
      if (!std::ranges::all_of(steps_, [](const auto& step) { return step.has_value(); }))
        continue;  // another state took the place of this
      if (disk_.rounds_lead_to(oldest(), last_)) {
        ATOLL_RETURN_IF_ERROR(disk_.finish(last_));
        return last_;
      }
      for (auto& step : steps_) {
        if (*step < last_.outer_step) step.reset();
      }
    }
    return Error{ErrorCode::kIo, "the outer state went on faster than it is written, and its rounds are not logged"};
  }

 private:
  OuterStep oldest() const { return **std::ranges::min_element(steps_); }

  Status copy_what_is_missing() {
    std::size_t unflushed = 0;
    for (std::uint64_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i]) continue;
      if (stop_.stop_requested()) return Error{ErrorCode::kAborted, "the island ends"};
      ATOLL_ASSIGN_OR_RETURN(const CopiedChunk copied, outer_.copy_chunk(i, bytes_));
      if (copied.generation != generation_) steps_.assign(steps_.size(), std::nullopt);
      generation_ = copied.generation;
      last_ = copied.state;
      ATOLL_RETURN_IF_ERROR(disk_.put(i, {copied.state.outer_step, copied.sha256}, bytes_));
      steps_[i] = copied.state.outer_step;
      if (++unflushed % kChunksOfFlush == 0) ATOLL_RETURN_IF_ERROR(disk_.flush());
    }
    return ok_status();
  }

  SnapshotDisk& disk_;
  const OuterStateStore& outer_;
  const std::stop_token& stop_;
  std::vector<std::optional<OuterStep>> steps_;  // of each chunk that is written
  HeldState last_;                               // of which the last one is
  std::uint64_t generation_ = 0;
  Bytes bytes_;
};

}  // namespace

Clock::time_point WritePace::next() const {
  return took_ <= kQuickWrite ? Clock::time_point::min() : wrote_at_ + kWriteShare * took_;
}

void WritePace::wrote(Clock::time_point began, Clock::time_point ended) {
  took_ = ended - began;
  wrote_at_ = ended;
}

Result<HeldState> write_snapshot(SnapshotDisk& disk, const OuterStateStore& outer, const std::stop_token& stop) {
  Result<HeldState> written = WrittenState(disk, outer, stop).write();
  if (!written.ok()) disk.give_up();
  return written;
}

SnapshotKeeper::SnapshotKeeper(SnapshotDisk& disk, const OuterStateStore& outer,
                               std::function<void(const Status&)> told)
    : disk_(disk), outer_(outer), told_(std::move(told)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

SnapshotKeeper::~SnapshotKeeper() = default;

void SnapshotKeeper::state_is(const HeldState& state) {
  {
    MutexLock lock(mutex_);
    state_ = state;
  }
  changed_.notify_one();
}

void SnapshotKeeper::run(const std::stop_token& stop) {
  for (;;) {
    std::optional<HeldState> state;
    {
      MutexLock lock(mutex_);
      const auto is_due = [&]() ATOLL_REQUIRES(mutex_) {
        return ends_ || (state_ && (pace_.may_write(Clock::now()) || disk_.asks_for_snapshot()));
      };
      if (!changed_.wait(lock, stop, [&]() ATOLL_REQUIRES(mutex_) { return ends_ || state_; })) return;
      if (!changed_.wait(lock, stop, Deadline::at(pace_.next()), is_due) && stop.stop_requested()) return;
      if (ends_) return;
      state = std::exchange(state_, std::nullopt);
    }
    write(*state, stop);
  }
}

// After a failure the next outer step tries again.
void SnapshotKeeper::write(const HeldState& state, const std::stop_token& stop) {
  // It may have gone on while the last one was written, which took that in.
  if (disk_.has_snapshot_of(state)) return;
  const auto began = Clock::now();
  const Result<HeldState> written = write_snapshot(disk_, outer_, stop);
  pace_.wrote(began, Clock::now());
  if (!written.ok() && written.error().code == ErrorCode::kAborted) return;
  if (!outer_.held().ok()) return;  // another state is about to take the place of it
  told_(written.ok() ? ok_status() : Status(written.error()));
}

Status SnapshotKeeper::finish() {
  {
    MutexLock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  const Result<HeldState> held = outer_.held();
  if (!held.ok() || disk_.leads_to(*held)) {
    thread_.request_stop();
    thread_.join();
    return ok_status();
  }
  thread_.join();  // what is being written leads there most likely
  if (disk_.leads_to(*held)) return ok_status();
  const Result<HeldState> written = write_snapshot(disk_, outer_);
  return written.ok() ? ok_status() : Status(written.error());
}

}  // namespace atl
