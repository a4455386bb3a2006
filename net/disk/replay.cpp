#include "net/disk/replay.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "net/base/mutex.h"
#include "net/base/parallel.h"
#include "net/base/round_words.h"
#include "net/model/fragments.h"
#include "net/recovery/outer_step.h"

namespace atl {
namespace {

class AverageOnDisk final : public AverageSource {
 public:
  explicit AverageOnDisk(AverageFile file) : file_(std::move(file)) {}
  const KeptAverageInfo& info() const { return file_.info(); }
  Result<ByteView> read(std::uint64_t offset, std::size_t bytes, Bytes& room) const override {
    room.resize(bytes);
    ATOLL_RETURN_IF_ERROR(file_.read(offset, room));
    return ByteView(room);
  }

 private:
  AverageFile file_;
};

// A logged round, ready to be taken on any chunk.
struct RoundToTake {
  std::vector<ParameterRange> ranges;
  OuterSgd hyper;
  std::optional<AverageOnDisk> average;
  std::optional<Error> why_not;
};

Result<AverageFile> open_average(const LoggedRound& round, const RoundLog& log, const Fragment& part) {
  ATOLL_ASSIGN_OR_RETURN(AverageFile average, AverageFile::open(log.average_file(round.round())));
  const KeptAverageInfo& info = average.info();
  if (info.round != round.round() || info.digest != round.record.commit.digest) {
    return Error{ErrorCode::kCorrupt, "its average is another's"};
  }
  if (info.bytes != static_cast<std::uint64_t>(encoded_bytes(info.wire, part.numel))) {
    return Error{ErrorCode::kCorrupt, "its average is of another model"};
  }
  return average;
}

RoundToTake open_round(const LoggedRound& round, const RoundLog& log, const ParameterLayout& layout) {
  const HubCommit& commit = round.record.commit;
  RoundToTake open;
  const auto fragments = fragments_of(layout, round.fragments);
  if (!fragments.ok()) {
    open.why_not = fragments.error();
    return open;
  }
  const Fragment& part = fragments->at(commit.fragment.value);
  open.ranges = part.ranges;
  open.hyper = {static_cast<float>(commit.outer_learning_rate), static_cast<float>(commit.outer_momentum)};
  auto average = open_average(round, log, part);
  average.ok() ? void(open.average.emplace(std::move(*average))) : void(open.why_not = average.error());
  return open;
}

// One pass over all chunks, through all the rounds of a way.
class Replay {
 public:
  // `abort`, where there is one, and the others outlive it.
  Replay(const StateOnDisk& way, const RoundLog& log, const ParameterLayout& layout, const SnapshotReader& snapshot,
         const AbortSignal* abort = nullptr)
      : abort_(abort),
        snapshot_(snapshot),
        way_(way),
        first_(snapshot.info().oldest_chunk()),
        taken_(way.rounds.size()),
        digests_(way.rounds.size() + 1, std::vector<Digest>(snapshot.info().chunks.size())) {
    for (const LoggedRound& round : way.rounds) rounds_.push_back(open_round(round, log, layout));
    for (std::size_t i = 0; i < rounds_.size(); ++i) {
      if (rounds_[i].why_not) cannot_take(i, *rounds_[i].why_not);
    }
  }

  // room(index): the chunk's parameters and momentum.
  template <class Room>
  void run(Room room) {
    parallel_for(digests_.front().size(), [&](std::size_t index) {
      auto&& values = room(index);
      const Status made = make(index, values.parameters, values.momentum);
      if (!made.ok()) broken(made.error());
    });
  }

  // How many of the rounds make what they made: an error where not even the first states on the way are right.
  Result<std::size_t> right_rounds() {
    MutexLock lock(mutex_);
    if (broken_) return *broken_;
    const OuterStep least = snapshot_.info().newest_chunk();
    for (std::size_t rounds = taken_ + 1; rounds-- > 0;) {
      const OuterStep step{first_.value + static_cast<std::uint32_t>(rounds)};
      if (step < least) break;
      const StateManifest manifest{step, 2 * sizeof(float) * snapshot_.info().numel, digests_[rounds]};
      if (to_hex(manifest.tree_hash()) == hash_after(rounds)) return rounds;
      why_ = {ErrorCode::kCorrupt, "it makes another outer state than it did"};
    }
    return Error{ErrorCode::kCorrupt, fmt::format("{} is not whole, or the rounds are not that it needs: {}",
                                                  way_.snapshot.path.string(), why_.message)};
  }
  Error why() const {
    MutexLock lock(mutex_);
    return why_;
  }
  const std::vector<Digest>& digests_after(std::size_t rounds) const { return digests_[rounds]; }
  // Through all the rounds, again: several threads at once, each with a chunk of its own.
  Status make_again(std::size_t index, std::span<float> parameters, std::span<float> momentum) {
    return make(index, parameters, momentum);
  }

 private:
  std::size_t index_of(OuterStep step) const { return step.value - first_.value; }
  const std::string& hash_after(std::size_t rounds) const {
    if (rounds > 0) return way_.rounds[rounds - 1].made;
    return way_.rounds.empty() ? way_.snapshot.state().state_hash : way_.rounds.front().from;
  }

  Status make(std::size_t index, std::span<float> parameters, std::span<float> momentum) {
    if (abort_ != nullptr && abort_->raised()) return Error{ErrorCode::kAborted, abort_->reason()};
    ATOLL_ASSIGN_OR_RETURN(Digest digest, snapshot_.read(index, parameters, momentum));
    std::size_t at = index_of(snapshot_.info().chunks[index].step);
    digests_[at][index] = digest;
    for (; at < rounds_.size(); ++at) {
      const RoundToTake& round = rounds_[at];
      if (round.why_not) return ok_status();
      if (touches_chunk(round.ranges, index)) {
        const Status taken = step_chunk(index, parameters, momentum, round.ranges, round.average->info().wire,
                                        *round.average, round.hyper);
        if (!taken.ok()) {
          cannot_take(at, taken.error());
          return ok_status();
        }
        digest = chunk_digest(parameters, momentum);
      }
      digests_[at + 1][index] = digest;
    }
    return ok_status();
  }

  void cannot_take(std::size_t round, const Error& why) {
    MutexLock lock(mutex_);
    if (round >= taken_) return;
    taken_ = round;
    why_ = why;
  }
  void broken(const Error& why) {
    MutexLock lock(mutex_);
    if (!broken_) broken_ = why;
  }

  const AbortSignal* const abort_;
  const SnapshotReader& snapshot_;
  const StateOnDisk& way_;
  const OuterStep first_;  // of its chunks
  std::vector<RoundToTake> rounds_;
  mutable Mutex mutex_;
  std::size_t taken_ ATOLL_GUARDED_BY(mutex_);  // that could be read; from `why_` on
  Error why_ ATOLL_GUARDED_BY(mutex_);
  std::optional<Error> broken_ ATOLL_GUARDED_BY(mutex_);
  std::vector<std::vector<Digest>> digests_;  // after so many rounds, of each chunk: one thread a chunk
};

struct Room {
  std::span<float> parameters, momentum;
};
struct OwnRoom : Room {
  explicit OwnRoom(std::size_t numel) : values(2 * numel) {
    parameters = std::span(values).first(numel);
    momentum = std::span(values).last(numel);
  }
  std::vector<float> values;
};

// pass(replay) runs it. Where rounds are missing, once more with those before: memory is of the last.
template <class Pass>
Result<HeldState> replay(StateOnDisk way, const RoundLog& log, const ParameterLayout& layout, Pass pass) {
  ATOLL_ASSIGN_OR_RETURN(const SnapshotReader snapshot, SnapshotReader::open(way.snapshot.path));
  if (snapshot.info().numel != static_cast<std::uint64_t>(layout.numel)) {
    return Error{ErrorCode::kCorrupt, fmt::format("{} is not a whole checkpoint of this model; it is left as it is",
                                                  way.snapshot.path.string())};
  }
  for (;;) {
    Replay replay(way, log, layout, snapshot);
    pass(replay);
    ATOLL_ASSIGN_OR_RETURN(const std::size_t right, replay.right_rounds());
    if (right == way.rounds.size()) break;
    spdlog::warn("round_log round={} error=\"{}\"", way.rounds[right].round().value, replay.why().message);
    way.state = way.rounds[right].before();
    way.rounds.resize(right);
  }
  const std::uint32_t from = way.snapshot.state().outer_step.value;
  if (way.state.outer_step.value > from) {
    spdlog::info("round_log round={} from={} rounds={}", way.state.outer_step.value, from,
                 way.state.outer_step.value - from);
  }
  return way.state;
}

}  // namespace

Result<FetchedState> restore(const StateOnDisk& way, const RoundLog& log, const ParameterLayout& layout,
                             FetchedState room) {
  FetchedState state = std::move(room);
  ATOLL_ASSIGN_OR_RETURN(
      const HeldState made, replay(way, log, layout, [&](Replay& replay) {
        // Not before it is known that the snapshot is of this model.
        state.parameters.resize(static_cast<std::size_t>(layout.numel));
        state.momentum.resize(static_cast<std::size_t>(layout.numel));
        replay.run([&](std::size_t index) {
          return Room{of_chunk(std::span(state.parameters), index), of_chunk(std::span(state.momentum), index)};
        });
      }));
  state.version = made.outer_step;
  return state;
}

Result<HeldState> try_restore(const StateOnDisk& way, const RoundLog& log, const ParameterLayout& layout) {
  return replay(way, log, layout, [&](Replay& replay) {
    const auto numel = static_cast<std::size_t>(layout.numel);
    replay.run([&](std::size_t index) {
      return OwnRoom(std::min<std::size_t>(kStateChunkNumel, numel - index * kStateChunkNumel));
    });
  });
}

struct RestoredChunks::Impl {
  Impl(const StateOnDisk& on_disk, const RoundLog& log, const ParameterLayout& layout, SnapshotReader reader,
       const AbortSignal& ends)
      : way(on_disk), snapshot(std::move(reader)), replay(way, log, layout, snapshot, &ends) {}

  const StateOnDisk way;
  const SnapshotReader snapshot;
  Replay replay;
  StateManifest manifest;
};

Result<RestoredChunks> RestoredChunks::open(const StateOnDisk& way, const RoundLog& log, const ParameterLayout& layout,
                                            const AbortSignal& abort) {
  ATOLL_ASSIGN_OR_RETURN(SnapshotReader snapshot, SnapshotReader::open(way.snapshot.path));
  const std::uint64_t numel = snapshot.info().numel;
  if (numel != static_cast<std::uint64_t>(layout.numel)) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} is not a whole checkpoint of this model", way.snapshot.path.string())};
  }
  auto impl = std::make_unique<Impl>(way, log, layout, std::move(snapshot), abort);
  impl->replay.run([&](std::size_t index) {
    return OwnRoom(std::min<std::size_t>(kStateChunkNumel, numel - index * kStateChunkNumel));
  });
  ATOLL_ASSIGN_OR_RETURN(const std::size_t right, impl->replay.right_rounds());
  if (right != way.rounds.size()) {
    return impl->replay.why().with_context(
        fmt::format("the state {} cannot be made again", after_round(way.state.outer_step.value)));
  }
  impl->manifest = {way.state.outer_step, 2 * sizeof(float) * numel, impl->replay.digests_after(right)};
  return RestoredChunks(std::move(impl));
}

const StateManifest& RestoredChunks::manifest() const { return impl_->manifest; }

Result<Bytes> RestoredChunks::chunk(std::uint64_t index) const {
  OwnRoom room(impl_->manifest.chunk_bytes(index) / (2 * sizeof(float)));
  ATOLL_RETURN_IF_ERROR(impl_->replay.make_again(index, room.parameters, room.momentum));
  const ByteView bytes = std::as_bytes(std::span(room.values));
  if (sha256(bytes) != impl_->manifest.chunk_sha256[index]) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("chunk {} of {} is not what it was any more", index, impl_->way.snapshot.path.string())};
  }
  return Bytes(bytes.begin(), bytes.end());
}

RestoredChunks::RestoredChunks(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RestoredChunks::RestoredChunks(RestoredChunks&&) noexcept = default;
RestoredChunks& RestoredChunks::operator=(RestoredChunks&&) noexcept = default;
RestoredChunks::~RestoredChunks() = default;

}  // namespace atl
