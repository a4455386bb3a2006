#include "trainer/island/island_disk.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "net/base/file.h"
#include "net/base/new_file.h"
#include "net/base/round_words.h"
#include "net/disk/replay.h"
#include "net/model/train_only.h"

namespace atl {
namespace {

// How long a round that was taken may take to be logged, before a snapshot counts on it no more.
constexpr std::chrono::seconds kLogPatience{60};
constexpr std::uint64_t kRoomForRounds = 4;  // a part of a state: 2 bytes a parameter, of averages that come meanwhile

// A state that fills the disk would take the room of the rounds, of which nobody else keeps this island's copy.
Status has_room_for(const std::filesystem::path& directory, std::uint64_t numel) {
  std::error_code failed;
  const std::filesystem::space_info space = std::filesystem::space(directory, failed);
  const std::uint64_t state_bytes = 2 * sizeof(float) * numel, needed = state_bytes + state_bytes / kRoomForRounds;
  if (failed || space.available >= needed) return ok_status();
  return Error{
      ErrorCode::kDiskFull,
      fmt::format("an outer state needs {:.3g} GB in {}, with the rounds that come meanwhile, and {:.3g} GB are "
                  "free; make room, or put the home on a larger disk",
                  static_cast<double>(needed) / 1e9, directory.string(), static_cast<double>(space.available) / 1e9)};
}

}  // namespace

Result<IslandCheckpoint> IslandDisk::load() {
  if (!keeps()) return Error{ErrorCode::kNotFound, "this island keeps nothing across restarts"};
  remove_forgotten_files(directory_);
  remove_forgotten_files(directory_ / kRoundsDirectory);
  record_.load();
  std::vector<KeptState> unreadable;
  Result<IslandCheckpoint> loaded = load_checkpoint(directory_, &unreadable);
  for (const KeptState& state : unreadable) is_unreadable(state);
  const std::vector<StateOnDisk> found = newest_states(readable_states(), log_.rounds());
  if (loaded.ok() && !found.empty() && found.front().state.outer_step > loaded->outer->version()) {
    log_.remove(loaded->outer->version());
  }
  const MutexLock files(files_);
  look_at_disk();
  return loaded;
}

void IslandDisk::of_run(const ModelConfig& model, std::uint32_t fragments, Retention retention,
                        std::vector<std::string> train_only) {
  model_ = model;
  fragments_ = fragments;
  retention_ = std::move(retention);
  train_only_ = std::move(train_only);
}

// An index does not tell that a chunk is damaged: nobody is to count on what was once read in vain. It stays where it
// is, for its owner to look at, until newer states take its room.
std::vector<KeptState> IslandDisk::readable_states() const {
  std::vector<KeptState> kept = kept_states(directory_);
  MutexLock lock(mutex_);
  std::erase_if(kept, [&](const KeptState& state) ATOLL_REQUIRES(mutex_) {
    return unreadable_.contains({state.path, state.info.number});
  });
  return kept;
}

void IslandDisk::is_unreadable(const KeptState& state) {
  MutexLock lock(mutex_);
  unreadable_.emplace(state.path, state.info.number);
}

// What can be come back to, and whether the next outer state is written at once: so much is logged for it, or a round
// that made `made` was logged upon a state that was fetched, or where one is missing, and leads nowhere from what is
// kept.
void IslandDisk::look_at_disk(const HeldState* made) {
  const std::vector<KeptState> kept = readable_states();
  const LoggedRounds logged = log_.rounds();
  // A state whose name another thread has just given it is there after a power cut from now on.
  if (keeps() && !kept.empty()) {
    if (const Status flushed = flush_directory(directory_); !flushed.ok()) return;
  }
  std::uint64_t since = 0, numel = 0;
  if (const auto newest = newest_states(kept, logged); !newest.empty()) {
    const StateOnDisk& way = newest.front();
    for (const LoggedRound& round : way.rounds) {
      if (round.round() >= way.snapshot.state().outer_step) since += round.average_bytes;
    }
    numel = way.snapshot.info.numel;
  }
  log_asks_for_state_ = since > most_logged_bytes(numel) || (made != nullptr && !way_to(*made, kept, logged));
  std::vector<HeldState> found = durable_states(kept, logged);
  MutexLock lock(mutex_);
  durable_ = std::move(found);
}

// ---- outer states
// ----------------------------------------------------------------------------------------------------

Status IslandDisk::begin(std::uint64_t numel) {
  ATOLL_RETURN_IF_ERROR(make_directories(directory_, FileMode::kPrivate));
  const std::string config = to_json(model_);
  const auto there = read_file(directory_ / kModelConfigFile, 1u << 20);
  if (!there.ok() || *there != config) {
    ATOLL_RETURN_IF_ERROR(write_file_atomically(directory_ / kModelConfigFile, config, FileMode::kPrivate));
  }
  prune();
  give_up();  // of a process before this one, too: which rounds lead on from its chunks nobody knows
  ATOLL_RETURN_IF_ERROR(has_room_for(directory_, numel));
  ATOLL_ASSIGN_OR_RETURN(SnapshotWriter writer, SnapshotWriter::open(directory_ / kWrittenSnapshot, numel));
  writer_.emplace(std::move(writer));
  return ok_status();
}

Status IslandDisk::put(std::uint64_t index, const StoredChunk& chunk, ByteView bytes) {
  return writer_->put(index, chunk, bytes);
}

bool IslandDisk::rounds_lead_to(OuterStep from, const HeldState& state) {
  if (from == state.outer_step) return true;
  {
    MutexLock lock(mutex_);
    (void)logged_.wait(lock, Deadline::after(kLogPatience), [&]() ATOLL_REQUIRES(mutex_) {
      return std::ranges::find(through_with_, state) != through_with_.end();
    });
  }
  return rounds_lead(from, state, log_.rounds());
}

Status IslandDisk::finish(const HeldState& state) {
  Status placed = std::move(*writer_).finish(state, directory_ / kept_state_name(state.outer_step));
  writer_.reset();
  prune();
  return placed;
}

void IslandDisk::give_up() {
  writer_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(directory_ / kWrittenSnapshot, ignored);
}

void IslandDisk::prune() {
  const MutexLock still(reading_);
  remove_states(directory_, retention_, log_);
  const MutexLock files(files_);
  remove_rounds(directory_, retention_, log_);
  look_at_disk();
}

bool IslandDisk::has_snapshot_of(const HeldState& state) const {
  const std::vector<KeptState> kept = readable_states();
  const KeptState* newest = newest_of(kept);
  return newest != nullptr && newest->state() == state;
}

bool IslandDisk::leads_to(const HeldState& state) const {
  const std::vector<StateOnDisk> found = newest_states(readable_states(), log_.rounds());
  return !found.empty() && found.front().state == state;
}

// What cannot be read is passed over: there may be another way.
Result<FetchedState> IslandDisk::kept_state(const HeldState& wanted, const ModelConfig& model, FetchedState room) {
  const MutexLock still(reading_);
  std::vector<KeptState> kept;
  if (keeps()) kept = readable_states();
  const ParameterLayout layout = layout_of_training(model, train_only_);
  while (const auto way = way_to(wanted, kept, log_.rounds())) {
    const KeptState snapshot = way->snapshot;
    std::erase_if(kept, [&](const KeptState& state) { return state.path == way->snapshot.path; });
    Result<FetchedState> state = restore(*way, log_, layout, std::exchange(room, {}));
    if (!state.ok()) {
      spdlog::warn("kept_state error=\"{}\"", state.error().message);
      is_unreadable(snapshot);
      const MutexLock files(files_);
      look_at_disk();
      continue;
    }
    if (state->version == wanted.outer_step) return state;
    room = std::move(*state);
    const MutexLock files(files_);
    log_.remove(room.version);  // it cannot be taken again, and nobody is to count on it
    look_at_disk();
  }
  return Error{ErrorCode::kNotFound,
               fmt::format("the state {} is not on this disk", after_round(wanted.outer_step.value))};
}

void IslandDisk::incoming_is_kept() {
  const MutexLock files(files_);
  look_at_disk();
}

void IslandDisk::drop_incoming() const {
  if (!keeps()) return;
  std::error_code failed;
  std::filesystem::remove_all(incoming(), failed);
  if (failed) spdlog::warn("recovery directory={} error=\"{}\"", incoming().string(), failed.message());
}

std::vector<HeldState> IslandDisk::durable() const {
  MutexLock lock(mutex_);
  return durable_;
}

// ---- the work of an interrupted round
// --------------------------------------------------------------------------------

// A disk that does not take it costs this round's steps, no more.
void IslandDisk::keep_work(const InnerState& work) const {
  if (!keeps()) return;
  Status kept = make_directories(directory_, FileMode::kPrivate);
  if (kept.ok()) kept = save_inner_state(inner_state_file(), work);
  if (!kept.ok()) spdlog::error("interrupted_work=lost error=\"{}\"", kept.error().message);
}

std::optional<HeldWork> IslandDisk::held_work() const {
  if (!keeps()) return std::nullopt;
  const auto info = peek_inner_state(inner_state_file());
  if (!info.ok()) return std::nullopt;
  const HubRoundBegin& round = info->work.round;
  return HeldWork{round.round, round.lease_first_sequence, round.lease_sequences};
}

std::optional<InnerState> IslandDisk::take_work(std::uint64_t numel, std::span<const ParameterRange> trained) const {
  if (!keeps()) return std::nullopt;
  auto work = load_inner_state(inner_state_file(), numel, trained);
  // Whatever becomes of it, the next pause writes a new one.
  std::error_code ignored;
  std::filesystem::remove(inner_state_file(), ignored);
  if (work.ok()) return std::move(*work);
  if (work.error().code != ErrorCode::kNotFound) {
    spdlog::warn("interrupted_work=unreadable error=\"{}\"", work.error().message);
  }
  return std::nullopt;
}

// ---- averages
// ---------------------------------------------------------------------------------------------------------

std::filesystem::path IslandDisk::average_file(FragmentId fragment) const {
  return directory_ / kept_average_name(fragment);
}

Result<AverageWriter> IslandDisk::begin_average(FragmentId fragment, OuterStep round, WireFormat wire,
                                                std::uint64_t bytes) const {
  ATOLL_RETURN_IF_ERROR(make_directories(directory_, FileMode::kPrivate));
  return AverageWriter::create(average_file(fragment), round, wire, bytes);
}

Result<KeptAverage> IslandDisk::kept_average(FragmentId fragment, OuterStep round, const std::string& digest) const {
  Result<KeptAverage> open = load_average(average_file(fragment), round, digest);
  return open.ok() ? std::move(open) : log_.average(round, digest);
}

Status IslandDisk::keep_round(const SignedCommit& record, WireFormat wire, ByteView canonical, const std::string& from,
                              const HeldState& made) {
  Status kept = log_round(record, wire, canonical, from, made);
  is_through_with(made);
  return kept;
}

void IslandDisk::keep_fetched(FetchedRounds& rounds) {
  const MutexLock files(files_);
  if (std::move(rounds).log() > 0) look_at_disk();
}

// What a rollback undid is not said of the states that are made in its place.
void IslandDisk::is_through_with(const HeldState& made) {
  {
    MutexLock lock(mutex_);
    std::erase_if(through_with_, [&](const HeldState& state) { return state.outer_step >= made.outer_step; });
    through_with_.push_back(made);
    if (through_with_.size() > kMaxHeldStates) through_with_.pop_front();
  }
  logged_.notify_all();
}

Status IslandDisk::log_round(const SignedCommit& record, WireFormat wire, ByteView canonical, const std::string& from,
                             const HeldState& made) {
  if (!keeps()) return ok_status();
  const LoggedRound round{.record = record, .from = from, .made = made.state_hash, .fragments = fragments_};
  const MutexLock files(files_);
  Status kept = log_.keep(round, average_file(record.commit.fragment), wire, canonical);
  look_at_disk(kept.ok() ? &made : nullptr);
  return kept;
}

// ---- the hub's records
// -----------------------------------------------------------------------------------------------

void IslandDisk::told(std::shared_ptr<const SignedCommit> commit) {
  MutexLock lock(mutex_);
  const auto is_told = [&](const auto& told) { return told->commit.signature == commit->commit.signature; };
  if (std::ranges::any_of(told_, is_told)) return;  // again, after a reconnection
  told_.push_back(std::move(commit));
  if (told_.size() > kMaxFragments) told_.pop_front();
}

std::shared_ptr<const SignedCommit> IslandDisk::signed_record(const HubCommit& commit) const {
  MutexLock lock(mutex_);
  const auto found =
      std::ranges::find_if(told_, [&](const auto& told) { return told->commit.signature == commit.signature; });
  return found == told_.end() ? nullptr : *found;
}

void IslandDisk::keep_commit(const HubCommit& commit) {
  const std::shared_ptr<const SignedCommit> signed_commit = signed_record(commit);
  if (!signed_commit) return;
  const Status kept = record_.add(signed_commit);
  if (!kept.ok()) spdlog::warn("commit round={} error=\"{}\"", commit.round.value, kept.error().message);
}

}  // namespace atl
