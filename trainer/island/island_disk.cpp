#include "trainer/island/island_disk.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "net/base/file.h"
#include "net/disk/outer_state_file.h"
#include "net/model/layout.h"
#include "trainer/island/replay.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kQuickWrite{1};
constexpr int kWriteShare = 20;

// Of averages that are logged, for a model of so many parameters.
std::uint64_t most_logged_bytes(std::uint64_t numel) { return kMostLoggedStates * 2 * sizeof(float) * numel; }

}  // namespace

bool WritePace::may_write(Clock::time_point now) const {
  return took_ <= kQuickWrite || now - wrote_at_ >= kWriteShare * took_;
}

void WritePace::wrote(Clock::time_point began, Clock::time_point ended) {
  took_ = ended - began;
  wrote_at_ = ended;
}

Result<IslandCheckpoint> IslandDisk::load() {
  if (!keeps()) return Error{ErrorCode::kNotFound, "this island keeps nothing across restarts"};
  record_.load();
  Result<IslandCheckpoint> loaded = load_checkpoint(directory_);
  const std::vector<StateOnDisk> found = newest_states(states().entries(), log_.rounds());
  if (loaded.ok() && !found.empty() && found.front().state().outer_step > loaded->outer->version()) {
    log_.remove(loaded->outer->version());
  }
  const MutexLock files(files_);
  look_at_disk();
  return loaded;
}

void IslandDisk::keep_states(std::uint32_t states, std::uint32_t anchor_every, std::uint32_t fragments) {
  keep_states_ = states;
  anchor_every_ = anchor_every;
  fragments_ = fragments;
}

// What can be come back to, and whether the next outer state is written at once: so much is logged for it, or a round
// that made `made` was logged upon a state that was fetched, or where one is missing, and leads nowhere from what is
// kept.
void IslandDisk::look_at_disk(const HeldState* made) {
  const std::vector<KeptStates::Entry> snapshots = states().entries();
  const LoggedRounds logged = log_.rounds();
  std::uint64_t since = 0, numel = 0;
  if (const auto newest = newest_states(snapshots, logged); !newest.empty()) {
    for (const LoggedRound& round : newest.front().rounds) since += round.average_bytes;
    if (const auto info = peek_outer_state(newest.front().snapshot.file); info.ok()) numel = info->numel;
  }
  log_asks_for_state_ = since > most_logged_bytes(numel) || (made != nullptr && !way_to(*made, snapshots, logged));
  std::vector<HeldState> found = durable_states(snapshots, logged);
  MutexLock lock(mutex_);
  durable_ = std::move(found);
}

// ---- outer states
// ----------------------------------------------------------------------------------------------------

bool IslandDisk::newest_is(const HeldState& state) const {
  if (!keeps()) return false;
  const std::vector<HeldState> kept = states().list();
  return !kept.empty() && kept.front() == state;
}

Status IslandDisk::save(const ModelConfig& model, const OuterStateStore& outer) {
  const MutexLock still(outer.changing());
  const auto began = Clock::now();
  const KeptStates kept = states();
  Status saved = make_directories(directory_, FileMode::kPrivate);
  if (saved.ok()) kept.make_room(outer.version());
  if (saved.ok()) saved = save_checkpoint(directory_, model, outer);
  kept.prune();
  checkpoint_pace_.wrote(began, Clock::now());
  const MutexLock files(files_);
  const std::vector<KeptStates::Entry> entries = kept.entries();
  if (saved.ok() && !entries.empty()) {
    log_.prune(entries.back().state.outer_step, outer.version(), most_logged_bytes(outer.parameters().size()));
  }
  look_at_disk();
  return saved;
}

// What cannot be read is passed over: there may be another way.
Result<FetchedState> IslandDisk::kept_state(const HeldState& wanted, const ModelConfig& model) {
  const KeptStates kept = states();
  std::vector<KeptStates::Entry> snapshots;
  if (keeps()) snapshots = kept.entries();
  const ParameterLayout layout = canonical_layout(model);
  while (const auto way = way_to(wanted, snapshots, log_.rounds())) {
    std::erase_if(snapshots, [&](const KeptStates::Entry& entry) { return entry.file == way->snapshot.file; });
    if (way->rounds.empty()) {
      Result<FetchedState> state = kept.load(wanted, layout.numel);
      if (state.ok()) return state;
      spdlog::warn("kept_state error=\"{}\"", state.error().message);
      continue;
    }
    OuterStateStore outer(layout.numel);
    const Status restored = restore(*way, log_, layout, outer);
    if (!restored.ok()) {
      spdlog::warn("kept_state error=\"{}\"", restored.error().message);
      continue;
    }
    if (outer.version() == wanted.outer_step && outer.tree_hash() == wanted.state_hash) return outer.release();
    const MutexLock files(files_);
    log_.remove(outer.version());  // it cannot be taken again, and nobody is to count on it
    look_at_disk();
  }
  return Error{ErrorCode::kNotFound, fmt::format("outer step {} is not on this disk", wanted.outer_step.value)};
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

std::optional<InnerState> IslandDisk::take_work(std::uint64_t numel) const {
  if (!keeps()) return std::nullopt;
  auto work = load_inner_state(inner_state_file(), numel);
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

Status IslandDisk::keep_average(FragmentId fragment, OuterStep round, WireFormat wire, const std::string& digest,
                                ByteView canonical) const {
  if (!keeps()) return ok_status();
  ATOLL_RETURN_IF_ERROR(make_directories(directory_, FileMode::kPrivate));
  return save_average(average_file(fragment), round, wire, digest, canonical);
}

Result<KeptAverage> IslandDisk::kept_average(FragmentId fragment, OuterStep round, const std::string& digest) const {
  Result<KeptAverage> open = load_average(average_file(fragment), round, digest);
  return open.ok() ? std::move(open) : log_.average(round, digest);
}

Status IslandDisk::keep_round(const HubCommit& commit, WireFormat wire, ByteView canonical, const std::string& from,
                              const HeldState& made) {
  const std::shared_ptr<const SignedCommit> record = signed_record(commit);
  if (!keeps() || !record) return ok_status();
  const LoggedRound round{.record = *record, .from = from, .made = made.state_hash, .fragments = fragments_};
  const MutexLock files(files_);
  Status kept = log_.keep(round, average_file(commit.fragment), wire, canonical);
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
