#include "net/mesh/safekeeping.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace atl {
namespace {

// After one that failed, until another island is asked, or the same one: as long again with each failure in a row.
constexpr std::chrono::seconds kUploadPause{5};
constexpr std::chrono::seconds kLongestUploadPause{320};
constexpr int kMostDoublings = 6;  // to the longest
// Without a byte more in the store. Before the first an island reads through the state, which may be tens of gigabytes,
// and the rounds since; then a part of 16 MiB after the other lets the ring go first.
constexpr std::chrono::hours kUploadPatience{1};
// For all of it, whatever the island says of the store: ten billion parameters in a day are 7.4 Mbit/s. What is in the
// store by then is not written again by the next.
constexpr std::chrono::hours kUploadLimit{24};

constexpr std::chrono::minutes kLastUploadTime{10};  // for what a run comes to, to begin; some tries

}  // namespace

Safekeeping::Safekeeping(CoordinatorTurn& turn, Membership& members, const MeshTrust& trust,
                         const CommittedState& state, const CoordinatorMemory& memory)
    : turn_(turn), members_(members), trust_(trust), state_(state) {
  for (const HeldState& held : memory.uploaded) uploaded_.emplace(held.outer_step, held.state_hash);
}

std::optional<OuterStep> Safekeeping::uploaded() const {
  return uploaded_.empty() ? std::nullopt : std::optional(uploaded_.rbegin()->first);
}

bool Safekeeping::is_uploaded(const HeldState& state) const {
  const auto there = uploaded_.find(state.outer_step);
  return there != uploaded_.end() && there->second == state.state_hash;
}

std::optional<OuterStep> Safekeeping::newest_kept(OuterStep at_most) const {
  std::optional<OuterStep> newest;
  const auto look_at = [&](const HeldState& held) {
    if (held.outer_step > at_most || trust_.state_hash(held.outer_step) != held.state_hash) return;
    newest = std::max(newest, std::optional(held.outer_step));
  };
  for (const auto& [id, island] : members_.islands()) {
    if (island.connected) std::ranges::for_each(island.durable, look_at);
  }
  for (const auto& [step, hash] : uploaded_) look_at({step, hash});
  // What the run began with can be made again; but before anybody is here nobody knows what there is.
  if (!newest && members_.is_anybody_here() && trust_.state_hash(OuterStep{0})) return OuterStep{0};
  return newest;
}

std::optional<OuterStep> Safekeeping::newest_kept_by(std::size_t islands) const {
  std::map<OuterStep, std::set<IslandId>> keepers;
  for (const auto& [id, island] : members_.islands()) {
    if (!island.connected) continue;
    for (const HeldState& held : island.durable) {
      if (trust_.state_hash(held.outer_step) == held.state_hash) keepers[held.outer_step].insert(id);
    }
  }
  const auto is_kept = [&](const auto& entry) { return entry.second.size() >= islands; };
  const auto newest = std::ranges::find_if(keepers.rbegin(), keepers.rend(), is_kept);
  if (newest != keepers.rend()) return newest->first;
  return trust_.state_hash(OuterStep{0}) ? std::optional(OuterStep{0}) : std::nullopt;
}

std::optional<HeldState> Safekeeping::newest_kept(const MeshIsland& island) const {
  std::optional<HeldState> newest;
  for (const HeldState& held : island.durable) {
    const bool is_the_runs =
        held.outer_step <= state_.committed() && trust_.state_hash(held.outer_step) == held.state_hash;
    if (is_the_runs && (!newest || held.outer_step > newest->outer_step)) newest = held;
  }
  return newest;
}

std::optional<OuterStep> Safekeeping::safe_step() const {
  std::vector<OuterStep> kept;
  for (const auto& [id, island] : members_.islands()) {
    if (const auto newest = newest_kept(island)) kept.push_back(newest->outer_step);
  }
  const std::size_t known = std::max(members_.islands().size(), state_.last_holders().size());
  const std::size_t copies = std::min<std::size_t>(turn_.run().safe_copies, known);
  if (copies == 0 || kept.size() < copies) return std::nullopt;
  std::ranges::sort(kept, std::greater{});
  return kept[copies - 1];
}

std::uint32_t Safekeeping::disks_with_committed() const {
  const auto has_it = [&](const auto& entry) {
    const auto newest = newest_kept(entry.second);
    return newest && newest->outer_step == state_.committed();
  };
  return static_cast<std::uint32_t>(std::ranges::count_if(members_.islands(), has_it));
}

void Safekeeping::settle() {
  const OuterStep safe = safe_step().value_or(OuterStep{0});
  for (auto& [id, island] : members_.islands()) {
    if (!island.connected || island.told_safe == safe) continue;
    island.told_safe = safe;
    turn_.send(id, HubSafe{safe});
  }
  watch_upload();
  ask_for_upload();
}

// ---- uploads

// Every so many rounds, and what the run comes to.
bool Safekeeping::upload_is_due(OuterStep step) const {
  const std::uint32_t every = turn_.run().upload_every;
  const auto newest = uploaded();
  if (state_.is_last_round_done() && step == state_.committed()) return newest != step;
  return step.value >= every && (!newest || step.value / every > newest->value / every);
}

// Of those who can write one that is due: who has the newest.
std::optional<Safekeeping::Upload> Safekeeping::best_upload(bool of_failed) const {
  std::optional<Upload> best;
  for (const auto& [id, island] : members_.islands()) {
    if (!island.connected || !island.can_upload || failed_.contains(id) != of_failed) continue;
    const auto kept = newest_kept(island);
    if (!kept || !upload_is_due(kept->outer_step)) continue;
    if (best && kept->outer_step <= best->state.outer_step) continue;
    const auto now = turn_.now();
    best = Upload{id, *kept, island.heartbeat ? island.heartbeat->uploaded_bytes : std::nullopt, now, now};
  }
  return best;
}

bool Safekeeping::awaits_last_upload() {
  if (turn_.run().upload_every == 0 || uploaded() == state_.committed()) return false;
  const auto can_write = [](const auto& entry) { return entry.second.connected && entry.second.can_upload; };
  if (std::ranges::none_of(members_.islands(), can_write)) return false;
  if (!last_by_) last_by_ = turn_.now() + kLastUploadTime;
  return under_way_ || turn_.now() < *last_by_;
}

void Safekeeping::ask_for_upload() {
  if (turn_.run().upload_every == 0 || under_way_) return;
  if (turn_.now() >= another_at_) under_way_ = best_upload(/*of_failed=*/false);
  if (!under_way_ && turn_.now() >= again_at_) under_way_ = best_upload(/*of_failed=*/true);
  if (under_way_) turn_.send(under_way_->by, HubUpload{under_way_->state.outer_step, under_way_->state.state_hash});
}

void Safekeeping::said(const MeshIsland& island, const IslandUploaded& message) {
  const HeldState state{message.outer_step, message.state_hash};
  if (!under_way_ || under_way_->by != island.id() || under_way_->state != state) return;
  if (!message.error.empty()) return upload_failed(message.error);
  under_way_.reset();
  turn_.publish(StateUploaded{island.id(), message.outer_step, {}});
  failed_.clear();
  failures_ = 0;
  uploaded_[state.outer_step] = state.state_hash;
  turn_.act(PersistUploaded{state});
}

// Who is gone, or gets no further, holds up nobody's: another goes on with what is in the store.
void Safekeeping::watch_upload() {
  if (!under_way_) return;
  const MeshIsland* island = members_.find(under_way_->by);
  if (island == nullptr || !island->connected) return under_way_.reset();
  const auto bytes = island->heartbeat ? island->heartbeat->uploaded_bytes : std::nullopt;
  if (bytes > under_way_->bytes) {
    under_way_->bytes = bytes;
    under_way_->moved_at = turn_.now();
  }
  if (turn_.now() - under_way_->began >= kUploadLimit) {
    upload_failed("it was not all in the store after a day");
  } else if (turn_.now() - under_way_->moved_at >= kUploadPatience) {
    upload_failed("nothing more of it came to the store for an hour");
  }
}

void Safekeeping::upload_failed(const std::string& why) {
  const Upload failed = *std::exchange(under_way_, std::nullopt);
  failed_.insert(failed.by);
  another_at_ = turn_.now() + kUploadPause;
  const auto pause = std::min(kUploadPause * (1 << std::min(failures_++, kMostDoublings)), kLongestUploadPause);
  again_at_ = turn_.now() + pause;
  turn_.publish(
      StateUploaded{failed.by, failed.state.outer_step, fmt::format("{}; tried again in {} s", why, pause.count())});
}

void Safekeeping::go_back_to(OuterStep step) {
  under_way_.reset();
  uploaded_.erase(uploaded_.upper_bound(step), uploaded_.end());
}

}  // namespace atl
