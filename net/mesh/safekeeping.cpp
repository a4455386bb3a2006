#include "net/mesh/safekeeping.h"

#include <algorithm>
#include <vector>

namespace atl {
namespace {

constexpr std::chrono::seconds kUploadPause{60};  // after one that failed

}  // namespace

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
  const std::size_t copies = std::min<std::size_t>(turn_.run().safe_copies, members_.islands().size());
  if (copies == 0 || kept.size() < copies) return std::nullopt;
  std::ranges::sort(kept, std::greater{});
  return kept[copies - 1];
}

void Safekeeping::settle() {
  const std::optional<OuterStep> safe = safe_step();
  for (auto& [id, island] : members_.islands()) {
    if (!island.connected || !safe || island.told_safe == safe) continue;
    island.told_safe = safe;
    turn_.send(id, HubSafe{*safe});
  }
  ask_for_upload();
}

// ---- uploads

bool Safekeeping::upload_is_due(OuterStep step) const {
  const std::uint32_t every = turn_.run().upload_every;
  return step.value >= every && (!uploaded_ || step.value / every > uploaded_->value / every);
}

void Safekeeping::ask_for_upload() {
  if (turn_.run().upload_every == 0) return;
  if (under_way_ && !members_.is_here(under_way_->by)) under_way_.reset();  // another goes on with what is there
  if (under_way_ || turn_.now() < not_before_) return;
  std::optional<Upload> best;
  for (const bool again : {false, true}) {
    for (const auto& [id, island] : members_.islands()) {
      if (!island.connected || !island.can_upload || failed_.contains(id) != again) continue;
      const auto kept = newest_kept(island);
      if (!kept || !upload_is_due(kept->outer_step)) continue;
      if (!best || kept->outer_step > best->state.outer_step) best = Upload{id, *kept};
    }
    if (best) break;
  }
  if (!best) return;
  turn_.send(best->by, HubUpload{best->state.outer_step, best->state.state_hash});
  under_way_ = std::move(best);
}

void Safekeeping::said(const MeshIsland& island, const IslandUploaded& message) {
  const HeldState state{message.outer_step, message.state_hash};
  if (!under_way_ || under_way_->by != island.id() || under_way_->state != state) return;
  under_way_.reset();
  turn_.publish(StateUploaded{island.id(), message.outer_step, message.error});
  if (message.error.empty()) {
    failed_.clear();
    uploaded_ = message.outer_step;
  } else {
    failed_.insert(island.id());
    not_before_ = turn_.now() + kUploadPause;
  }
}

void Safekeeping::go_back_to(OuterStep step) {
  under_way_.reset();
  if (uploaded_ && *uploaded_ > step) uploaded_.reset();
}

}  // namespace atl
