#include "trainer/island/round_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <optional>
#include <utility>
#include <vector>

namespace atl {
namespace {

// Averages of a fragment whose memory the disk may hold on to: one more than the ring makes while one is written; small
// ones, up to so many bytes.
constexpr int kMostBehind = 2;
constexpr std::size_t kSmallTogether = 16u << 20;
constexpr std::size_t kMostAtOnce = 64u << 20;  // bytes of one write: who gives an average up waits for no more

}  // namespace

// What the keeper's thread has of an average. Its bytes come in pieces; those that lie side by side are written at
// once.
struct RoundKeeper::Average::File {
  FragmentId fragment;
  OuterStep round;
  WireFormat wire = WireFormat::kInt8Block;
  SharedBytes canonical;  // of who holds the mutex, until it is given up

  struct Piece {
    std::size_t offset = 0, count = 0;
  };
  std::atomic<bool> given_up{false};                            // said before the mutex is waited for
  Mutex mutex;                                                  // held while a piece is written
  std::optional<AverageWriter> writer ATOLL_GUARDED_BY(mutex);  // from the first piece on
  Status status ATOLL_GUARDED_BY(mutex);

  Mutex pieces_mutex;
  std::vector<Piece> pieces ATOLL_GUARDED_BY(pieces_mutex);  // final, not written yet
};

RoundKeeper::Average::Average(RoundKeeper& keeper, std::shared_ptr<File> file)
    : keeper_(keeper), file_(std::move(file)) {}

RoundKeeper::Average::~Average() {
  file_->given_up = true;
  MutexLock lock(file_->mutex);
  file_->canonical.reset();  // jobs that have not begun keep the rest of it
}

void RoundKeeper::Average::final_bytes(std::size_t offset, std::size_t count) {
  bool is_first = false;
  {
    MutexLock lock(file_->pieces_mutex);
    is_first = file_->pieces.empty();
    file_->pieces.push_back({offset, count});
  }
  // One job for all that come until it is done.
  if (is_first) keeper_.post([this_keeper = &keeper_, file = file_] { this_keeper->write_pending(*file); });
}

RoundKeeper::RoundKeeper(IslandDisk& disk, Tell tell)
    : disk_(disk), tell_(std::move(tell)), thread_([this] { run(); }) {}

RoundKeeper::~RoundKeeper() {
  MutexLock lock(mutex_);
  ends_ = true;
  changed_.notify_all();
}

// ---- its thread

void RoundKeeper::run() {
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&]() ATOLL_REQUIRES(mutex_) { return !jobs_.empty() || ends_; });
    if (jobs_.empty()) return;
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    job();
    job = nullptr;  // with what it holds
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void RoundKeeper::write_pending(Average::File& file) {
  std::vector<Average::File::Piece> pieces;
  {
    MutexLock lock(file.pieces_mutex);
    pieces.swap(file.pieces);
  }
  std::ranges::sort(pieces, {}, &Average::File::Piece::offset);
  for (std::size_t i = 0; i < pieces.size();) {
    Average::File::Piece run = pieces[i++];
    const auto goes_on = [&] { return i < pieces.size() && pieces[i].offset == run.offset + run.count; };
    while (goes_on() && run.count + pieces[i].count <= kMostAtOnce) run.count += pieces[i++].count;
    MutexLock lock(file.mutex);
    if (file.given_up || !file.status.ok()) return;
    if (!file.writer) {
      auto writer = disk_.begin_average(file.fragment, file.round, file.wire, file.canonical->size());
      if (!writer.ok()) {
        file.status = writer.error();
        return;
      }
      file.writer.emplace(std::move(*writer));
    }
    file.status = file.writer->write(run.offset, ByteView(*file.canonical).subspan(run.offset, run.count));
  }
}

// ---- what lanes ask for

void RoundKeeper::post(std::function<void()> job) {
  MutexLock lock(mutex_);
  jobs_.push_back(std::move(job));
  changed_.notify_all();
}

// One that is far behind would have to be given memory for each round that comes: what the disk does not take costs a
// way back, not the training.
bool RoundKeeper::may_hold(Work work, FragmentId fragment, std::size_t bytes) {
  MutexLock lock(mutex_);
  Held& held = held_[{work, fragment.value}];
  if (held.averages >= kMostBehind && held.bytes + bytes > kSmallTogether) return false;
  ++held.averages;
  held.bytes += bytes;
  return true;
}

void RoundKeeper::let_go(Work work, FragmentId fragment, std::size_t bytes) {
  MutexLock lock(mutex_);
  Held& held = held_[{work, fragment.value}];
  --held.averages;
  held.bytes -= bytes;
}

std::unique_ptr<RoundKeeper::Average> RoundKeeper::begin(FragmentId fragment, OuterStep round, WireFormat wire,
                                                         SharedBytes canonical) {
  if (!disk_.keeps()) return nullptr;
  auto file = std::make_shared<Average::File>();
  file->fragment = fragment;
  file->round = round;
  file->wire = wire;
  file->canonical = std::move(canonical);
  return std::unique_ptr<Average>(new Average(*this, std::move(file)));
}

void RoundKeeper::finish(std::unique_ptr<Average> average, const std::string& digest,
                         std::chrono::milliseconds patience) {
  if (!average) return;
  const std::size_t bytes = average->file_->canonical->size();
  if (!may_hold(Work::kFinish, average->file_->fragment, bytes)) return;
  auto finished = std::make_shared<std::promise<void>>();
  const std::future<void> end = finished->get_future();
  post([this, kept = std::shared_ptr<Average>(std::move(average)), digest, bytes, finished = std::move(finished)] {
    Average::File& file = *kept->file_;
    write_pending(file);
    MutexLock lock(file.mutex);
    if (file.status.ok() && file.writer) file.status = file.writer->finish(digest);
    tell_.kept(file.round, file.status);
    let_go(Work::kFinish, file.fragment, bytes);
    finished->set_value();
  });
  (void)end.wait_for(patience);
}

void RoundKeeper::keep_round(const HubCommit& commit, WireFormat wire, SharedBytes canonical, std::string from,
                             HeldState made) {
  if (!disk_.keeps()) return;
  // The record is taken now: the disk remembers those of the newest rounds alone.
  const std::shared_ptr<const SignedCommit> record = disk_.signed_record(commit);
  const OuterStep round = commit.round;
  const auto is_not_kept = [&](std::string why) {
    post([this, round, made, why = std::move(why)] {
      disk_.is_through_with(made);
      tell_.kept(round, Error{ErrorCode::kIo, why});
    });
  };
  if (!record) return is_not_kept(fmt::format("the hub's signed record of round {} did not come", round.value));
  if (!may_hold(Work::kLog, commit.fragment, canonical->size())) {
    return is_not_kept(fmt::format("the disk is {} rounds behind, and round {} does not wait for it; look at the disk",
                                   kMostBehind, round.value));
  }
  post([this, record, wire, canonical = std::move(canonical), from = std::move(from), made = std::move(made)] {
    tell_.kept(record->commit.round, disk_.keep_round(*record, wire, *canonical, from, made));
    let_go(Work::kLog, record->commit.fragment, canonical->size());
    tell_.durable_changed();
  });
}

void RoundKeeper::keep_fetched(std::unique_ptr<FetchedRounds> rounds) {
  post([this, fetched = std::shared_ptr<FetchedRounds>(std::move(rounds))] {
    disk_.keep_fetched(*fetched);
    tell_.durable_changed();
  });
}

bool RoundKeeper::await_idle(Deadline patience) {
  MutexLock lock(mutex_);
  return changed_.wait(lock, patience, [&]() ATOLL_REQUIRES(mutex_) { return jobs_.empty() && !busy_; });
}

}  // namespace atl
