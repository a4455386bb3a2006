#include "trainer/island/island_disk.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "net/base/file.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kQuickWrite{1};
constexpr int kWriteShare = 20;

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
  {
    std::vector<HeldState> kept = states().list();
    MutexLock lock(mutex_);
    durable_ = std::move(kept);
  }
  return load_checkpoint(directory_);
}

void IslandDisk::keep_states(std::uint32_t states, std::uint32_t anchor_every) {
  keep_states_ = states;
  anchor_every_ = anchor_every;
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
  std::vector<HeldState> list = kept.list();
  MutexLock lock(mutex_);
  durable_ = std::move(list);
  return saved;
}

Result<FetchedState> IslandDisk::kept_state(const HeldState& wanted, std::int64_t numel) const {
  if (!keeps()) return Error{ErrorCode::kNotFound, "this island keeps no states"};
  auto state = states().load(wanted, numel);
  if (state.ok()) spdlog::info("recovery round={} from=disk", wanted.outer_step.value);
  return state;
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

// ---- averages of open rounds
// -----------------------------------------------------------------------------------------

std::filesystem::path IslandDisk::average_file(FragmentId fragment) const {
  return directory_ / kept_average_name(fragment);
}

// A disk that does not take it is told of with the checkpoint: training goes on, with less to come back to.
void IslandDisk::keep_average(FragmentId fragment, OuterStep round, WireFormat wire, const std::string& digest,
                              ByteView canonical) {
  WritePace& pace = average_paces_[fragment.value];
  const auto began = Clock::now();
  if (!keeps() || !pace.may_write(began)) return;
  Status kept = make_directories(directory_, FileMode::kPrivate);
  if (kept.ok()) kept = save_average(average_file(fragment), round, wire, digest, canonical);
  pace.wrote(began, Clock::now());
  if (!kept.ok()) spdlog::warn("average round={} error=\"{}\"", round.value, kept.error().message);
}

Result<KeptAverage> IslandDisk::kept_average(FragmentId fragment, OuterStep round, const std::string& digest) const {
  return load_average(average_file(fragment), round, digest);
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

void IslandDisk::keep_commit(const HubCommit& commit) {
  std::shared_ptr<const SignedCommit> signed_commit;
  {
    MutexLock lock(mutex_);
    for (const auto& told : told_) {
      if (told->commit.signature == commit.signature) signed_commit = told;
    }
  }
  if (!signed_commit) return;
  const Status kept = record_.add(signed_commit);
  if (!kept.ok()) spdlog::warn("commit round={} error=\"{}\"", commit.round.value, kept.error().message);
}

}  // namespace atl
