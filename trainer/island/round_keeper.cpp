#include "trainer/island/round_keeper.h"

#include <algorithm>
#include <future>
#include <optional>
#include <utility>
#include <vector>

namespace atl {

// What the keeper's thread has of an average. Its bytes come in pieces; as many as lie side by side are written at
// once.
struct RoundKeeper::Average::File {
  FragmentId fragment;
  OuterStep round;
  WireFormat wire = WireFormat::kInt8Block;
  SharedBytes canonical;

  struct Piece {
    std::size_t offset = 0, count = 0;
  };
  Mutex mutex;  // held while a piece is written
  bool given_up ATOLL_GUARDED_BY(mutex) = false;
  std::optional<AverageWriter> writer ATOLL_GUARDED_BY(mutex);  // from the first piece on
  Status status ATOLL_GUARDED_BY(mutex);

  Mutex pieces_mutex;
  std::vector<Piece> pieces ATOLL_GUARDED_BY(pieces_mutex);  // final, not written yet
};

RoundKeeper::Average::Average(RoundKeeper& keeper, std::shared_ptr<File> file)
    : keeper_(keeper), file_(std::move(file)) {}

RoundKeeper::Average::~Average() {
  MutexLock lock(file_->mutex);
  file_->given_up = true;
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
    while (i < pieces.size() && pieces[i].offset == run.offset + run.count) run.count += pieces[i++].count;
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
  auto finished = std::make_shared<std::promise<void>>();
  const std::future<void> end = finished->get_future();
  post([this, kept = std::shared_ptr<Average>(std::move(average)), digest, finished = std::move(finished)] {
    Average::File& file = *kept->file_;
    write_pending(file);
    MutexLock lock(file.mutex);
    if (file.status.ok() && file.writer) file.status = file.writer->finish(digest);
    tell_.kept(file.round, file.status);
    finished->set_value();
  });
  (void)end.wait_for(patience);
}

void RoundKeeper::keep_round(const HubCommit& commit, WireFormat wire, SharedBytes canonical, std::string from,
                             HeldState made) {
  if (!disk_.keeps()) return;
  post([this, commit, wire, canonical = std::move(canonical), from = std::move(from), made = std::move(made)] {
    tell_.kept(commit.round, disk_.keep_round(commit, wire, *canonical, from, made));
    tell_.durable_changed();
  });
}

bool RoundKeeper::await_idle(Deadline patience) {
  MutexLock lock(mutex_);
  return changed_.wait(lock, patience, [&]() ATOLL_REQUIRES(mutex_) { return jobs_.empty() && !busy_; });
}

}  // namespace atl
