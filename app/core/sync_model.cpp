#include "app/core/sync_model.h"

#include <algorithm>
#include <utility>

namespace atl {
namespace {

constexpr double kMuchSlower = 2;

}  // namespace

SyncModel::SyncModel(QObject* parent) : QObject(parent), tell_([this] { Q_EMIT changed(); }) {}

void SyncModel::take(const HeardEvent& event, const std::string& own_island) {
  const bool news =
      std::visit(Overloaded{[&](const event::AttemptBegin& e) { return begin(e, own_island); },
                            [&](const event::SyncPhase& e) { return takePhase(e); },
                            [&](const event::SyncProgress& e) { return takeProgress(e); },
                            [&](const event::PeerLink& e) { return takeLink(e, own_island); },
                            [&](const event::SyncDone& e) { return e.state.island.outer_step > round_ && end(); },
                            [&](const event::Step& e) { return takeState(e.state.island); },
                            [&](const event::RoundBegin& e) { return takeState(e.state.island); },
                            [](const auto&) { return false; }},
                 event.what);
  if (news) tell_.request();
}

bool SyncModel::end() { return std::exchange(active_, false); }

void SyncModel::reset() {
  active_ = false;
  round_.reset();
  ring_.clear();
  directly_ = false;
  progress_.reset();
  phases_.clear();
  tell_.request();
}

// What is trained tells that the average is over, where its end was not heard. With several fragments it may be a later
// round, while this one is averaged.
bool SyncModel::takeState(const IslandState& state) {
  if (!round_ || (state.round > *round_ && state.outer_step <= *round_)) return false;
  if (state.outer_step <= *round_) round_.reset();  // it is begun anew
  return end();
}

// The newest of the averages that are under way is shown: false where this is of an older one.
bool SyncModel::enter(std::uint32_t round) {
  if (round_ && round < *round_ && *round_ - round < kMaxFragments) return false;
  if (round_ == round) return true;
  round_ = round;
  phases_.clear();
  progress_.reset();
  return true;
}

bool SyncModel::begin(const event::AttemptBegin& attempt, const std::string& own_island) {
  if (attempt.ring.size() > kMaxMembers || !enter(attempt.round)) return false;
  std::vector<RingIsland> ring;
  for (const event::RingMember& told : attempt.ring) {
    RingIsland member{.id = told.island,
                      .name = told.name,
                      .self = !own_island.empty() && told.island == own_island,
                      .tokens = told.tokens,
                      .edge_bytes_per_second = told.edge_bytes_per_second};
    if (attempt.directly) member.edge_bytes_per_second.reset();
    // What was measured before is better than nothing.
    const auto before = std::ranges::find(ring_, member.id, &RingIsland::id);
    if (!attempt.directly && !member.edge_bytes_per_second && before != ring_.end() && member.self) {
      member.edge_bytes_per_second = before->edge_bytes_per_second;
    }
    ring.push_back(std::move(member));
  }
  progress_.reset();
  ring_ = std::move(ring);
  directly_ = attempt.directly;
  active_ = true;
  return true;
}

bool SyncModel::takePhase(const event::SyncPhase& phase) {
  if (!enter(phase.round)) return false;
  if (phases_.size() < kMaxPhases) phases_.push_back(phase_time(phase));
  return true;
}

bool SyncModel::takeProgress(const event::SyncProgress& told) {
  if (!enter(told.round)) return false;
  progress_ = {.round = told.round,
               .attempt = told.attempt,
               .part = told.part,
               .bytes_done = std::min(told.bytes_done, told.bytes_total),
               .bytes_total = told.bytes_total,
               .sent_bytes_per_second = told.sent_bytes_per_second,
               .received_bytes_per_second = told.received_bytes_per_second,
               .step = told.step,
               .steps = told.steps};
  active_ = true;
  return true;
}

bool SyncModel::takeLink(const event::PeerLink& link, const std::string& own_island) {
  const auto rate = [](const std::optional<double>& value) { return value.value_or(0) > 0 ? value : std::nullopt; };
  const auto self = std::ranges::find_if(ring_, [&](const RingIsland& m) { return m.self || m.id == own_island; });
  const auto other = std::ranges::find(ring_, link.island, &RingIsland::id);
  if (directly_ || ring_.size() < 2 || self == ring_.end() || other == ring_.end()) return false;
  const auto next = std::next(self) == ring_.end() ? ring_.begin() : std::next(self);
  const auto previous = self == ring_.begin() ? std::prev(ring_.end()) : std::prev(self);
  const auto up = rate(link.bytes_per_second), down = rate(link.down_bytes_per_second);
  if (up && other == next) self->edge_bytes_per_second = up;
  if (down && other == previous) previous->edge_bytes_per_second = down;
  return up || down;
}

std::optional<std::size_t> SyncModel::slowest_edge() const {
  std::optional<std::size_t> slowest;
  double least = 0, next = 0;
  for (std::size_t i = 0; i < ring_.size(); ++i) {
    if (!ring_[i].edge_bytes_per_second) continue;
    const double rate = *ring_[i].edge_bytes_per_second;
    if (!slowest || rate < least) {
      next = slowest ? least : 0;
      least = rate;
      slowest = i;
    } else if (next == 0 || rate < next) {
      next = rate;
    }
  }
  return slowest && next >= kMuchSlower * least ? slowest : std::nullopt;
}

}  // namespace atl
