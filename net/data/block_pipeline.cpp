#include "net/data/block_pipeline.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <thread>
#include <vector>

#include "net/base/mutex.h"

namespace atl {
namespace {

constexpr std::size_t kMostOpenFiles = 16;

struct BlockSlot {
  enum class State { kRead, kUnderWork, kDone };
  BlockSlot(std::uint64_t number, TextBlock text) : block(number), disk_bytes(text.disk_bytes), raw(std::move(text)) {}

  const std::uint64_t block;
  const std::uint64_t disk_bytes;
  State state = State::kRead;
  TextBlock raw;
  std::optional<Result<std::unique_ptr<BlockResult>>> result;
};

struct OpenFile {
  std::unique_ptr<TextBlocks> blocks;  // null until it is opened
  std::uint64_t next_block = 0;
  bool being_read = false;
  bool ended = false;
  Status failure;  // of reading: comes after the blocks that were read
  // A deque keeps its elements where they are when others come and go at its ends.
  std::deque<BlockSlot> slots;
};

class Pipeline {
 public:
  Pipeline(const PipelineOptions& options, const PipelineSteps& steps)
      : options_(options),
        steps_(steps),
        window_(std::min(options.threads, kMostOpenFiles)),
        most_of_first_(2 * options.threads + 2),
        most_of_others_(3 * options.threads),
        first_(options.from.file) {}

  Status run() {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < options_.threads; ++i) others.emplace_back([this] { work_until_done(); });
    work_until_done();
    others.clear();
    MutexLock lock(mutex_);
    return status_;
  }

 private:
  void work_until_done() {
    const BlockWork work = steps_.make_work();
    MutexLock lock(mutex_);
    while (!over()) {
      if (options_.interrupt != nullptr && options_.interrupt->raised()) {
        finish(Error{ErrorCode::kAborted, "interrupted"});
        break;
      }
      if (take_next(lock) || (hungry() && read_first(lock)) || work_on_one(lock, work) || read_any(lock)) continue;
      // Whoever has something under way tells when it is done; an interrupt is looked for now and then.
      const std::uint64_t seen = changes_;
      changed_.wait(lock, Deadline::after(std::chrono::milliseconds(200)),
                    [&]() ATOLL_REQUIRES(mutex_) { return changes_ != seen || over(); });
    }
    changed_.notify_all();
  }

  bool over() const ATOLL_REQUIRES(mutex_) { return !status_.ok() || first_ == options_.files; }
  void finish(Status status) ATOLL_REQUIRES(mutex_) {
    if (status_.ok()) status_ = std::move(status);
  }
  void tell() ATOLL_REQUIRES(mutex_) {
    ++changes_;
    changed_.notify_all();
  }

  // ---- what is next in order

  bool take_next(MutexLock& lock) ATOLL_REQUIRES(mutex_) {
    if (taking_ || open_.empty()) return false;
    OpenFile& file = open_.front();
    const bool block_is_done = !file.slots.empty() && file.slots.front().state == BlockSlot::State::kDone;
    const bool file_is_done = file.slots.empty() && file.ended && !file.being_read;
    if (!block_is_done && !file_is_done) return false;
    taking_ = true;
    const std::size_t number = first_;
    Status taken;
    if (block_is_done) {
      BlockSlot slot = std::move(file.slots.front());
      file.slots.pop_front();
      --in_flight_;
      lock.unlock();
      taken = slot.result->ok() ? steps_.take({number, slot.block}, slot.disk_bytes, ***slot.result)
                                : Status(slot.result->error());
      lock.lock();
    } else {
      taken = file.failure;
      open_.pop_front();
      lock.unlock();
      if (taken.ok()) taken = steps_.end_of_file(number);
      lock.lock();
      ++first_;
    }
    taking_ = false;
    if (!taken.ok()) finish(std::move(taken));
    tell();
    return true;
  }

  // ---- work

  bool work_on_one(MutexLock& lock, const BlockWork& work) ATOLL_REQUIRES(mutex_) {
    if (raw_ == 0) return false;
    for (std::size_t i = 0; i < open_.size(); ++i) {
      for (BlockSlot& slot : open_[i].slots) {
        if (slot.state != BlockSlot::State::kRead) continue;
        slot.state = BlockSlot::State::kUnderWork;
        --raw_;
        const BlockPlace place{number_of(i), slot.block};
        TextBlock raw = std::move(slot.raw);
        lock.unlock();
        auto result = work(place, std::move(raw));
        lock.lock();
        slot.result = std::move(result);
        slot.state = BlockSlot::State::kDone;
        tell();
        return true;
      }
    }
    return false;
  }

  // ---- reading

  // A file of which end_of_file is under way stands in `open_` no more, and still counts in first_.
  std::size_t number_of(std::size_t open) const ATOLL_REQUIRES(mutex_) { return opened_ - open_.size() + open; }

  bool hungry() const ATOLL_REQUIRES(mutex_) { return raw_ < options_.threads; }

  bool read_first(MutexLock& lock) ATOLL_REQUIRES(mutex_) {
    if (open_.empty() && opened_ < options_.files) open_next();
    return !open_.empty() && may_read(0) && read(lock, 0);
  }

  bool read_any(MutexLock& lock) ATOLL_REQUIRES(mutex_) {
    for (std::size_t i = 0;; ++i) {
      if (i == open_.size()) {
        if (i >= window_ || opened_ >= options_.files) return false;
        open_next();
      }
      if (may_read(i)) return read(lock, i);
    }
  }

  void open_next() ATOLL_REQUIRES(mutex_) {
    open_.emplace_back();
    ++opened_;
  }

  bool may_read(std::size_t i) const ATOLL_REQUIRES(mutex_) {
    const OpenFile& file = open_[i];
    if (file.being_read || file.ended) return false;
    return i == 0 ? file.slots.size() < most_of_first_ : in_flight_ < most_of_others_;
  }

  bool read(MutexLock& lock, std::size_t i) ATOLL_REQUIRES(mutex_) {
    OpenFile& file = open_[i];
    file.being_read = true;
    const std::size_t number = number_of(i);
    ++in_flight_;
    lock.unlock();
    auto block = read_block(file, number);
    lock.lock();
    file.being_read = false;
    if (block.ok() && *block) {
      file.slots.emplace_back(file.next_block++, std::move(**block));
      ++raw_;
    } else {
      --in_flight_;
      file.ended = true;
      if (!block.ok()) file.failure = block.error();
    }
    tell();
    return true;
  }

  // Nobody else touches a file that is being read, but for its slots.
  Result<std::optional<TextBlock>> read_block(OpenFile& file, std::size_t number) {
    if (!file.blocks) {
      ATOLL_ASSIGN_OR_RETURN(file.blocks, steps_.open(number));
    }
    const std::uint64_t skipped = number == options_.from.file ? options_.from.block : 0;
    for (; file.next_block < skipped; ++file.next_block) {
      if (options_.interrupt != nullptr && options_.interrupt->raised()) break;
      ATOLL_ASSIGN_OR_RETURN(const std::optional<TextBlock> before, file.blocks->next());
      if (!before) return std::optional<TextBlock>();
    }
    return file.blocks->next();
  }

  const PipelineOptions& options_;
  const PipelineSteps& steps_;
  const std::size_t window_;
  const std::size_t most_of_first_, most_of_others_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::uint64_t changes_ ATOLL_GUARDED_BY(mutex_) = 0;
  std::size_t first_ ATOLL_GUARDED_BY(mutex_);                        // of which something is not taken yet
  std::size_t opened_ ATOLL_GUARDED_BY(mutex_) = options_.from.file;  // files before it were opened
  std::deque<OpenFile> open_ ATOLL_GUARDED_BY(mutex_);                // from first_ to opened_
  std::size_t in_flight_ ATOLL_GUARDED_BY(mutex_) = 0;                // blocks read or being read, and not taken
  std::size_t raw_ ATOLL_GUARDED_BY(mutex_) = 0;                      // of them, those that nobody works on
  bool taking_ ATOLL_GUARDED_BY(mutex_) = false;
  Status status_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace

Status run_block_pipeline(const PipelineOptions& options, const PipelineSteps& steps) {
  return Pipeline(options, steps).run();
}

}  // namespace atl
