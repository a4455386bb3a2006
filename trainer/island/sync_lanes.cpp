#include "trainer/island/sync_lanes.h"

#include <utility>

namespace atl {

template <class Act>
void SyncLanes::with_lanes(Act&& act) {
  MutexLock lock(mutex_);
  for (const auto& lane : lanes_) act(*lane);
}

void SyncLanes::start(const RunConfig& run, const std::vector<Fragment>& fragments, OuterStateStore& outer,
                      IslandStatus& status) {
  std::vector<std::unique_ptr<LaneThread>> lanes;
  for (std::uint32_t i = 0; i < run.fragments; ++i) {
    links_.push_back(std::make_unique<LaneLink>(FragmentId{i}, around_));
    lanes.push_back(std::make_unique<LaneThread>(FragmentId{i}, fragments[i], run, outer, status, *links_[i],
                                                 [this](LaneNews news) {
                                                   (void)news_.push(std::move(news));
                                                   wake_();
                                                 }));
  }
  MutexLock lock(mutex_);
  lanes_ = std::move(lanes);
  connections_per_edge_ = static_cast<int>(run.connections_per_edge);
  silence_timeout_ = run.dead_after;
  if (!ended_) return;
  for (const auto& lane : lanes_) lane->end_attempts(*ended_);
}

void SyncLanes::post(FragmentId lane, LaneCommand command) {
  MutexLock lock(mutex_);
  lanes_[lane.value]->post(std::move(command));
}

void SyncLanes::round_begins(const IslandState& state) { link_of(state.round).round_begins(state); }
void SyncLanes::round_done(const IslandState& state) { link_of(state.outer_step - 1).round_done(state); }

// The mesh's thread finds no lane any more while they end.
std::vector<std::vector<float>> SyncLanes::end() {
  std::vector<std::unique_ptr<LaneThread>> lanes;
  {
    MutexLock lock(mutex_);
    lanes = std::exchange(lanes_, {});
  }
  constexpr const char* kWhy = "the island ends";
  for (const auto& lane : lanes) lane->end_attempts(kWhy);
  std::vector<std::vector<float>> owed;
  for (const auto& lane : lanes) {
    lane->stop(kWhy);
    owed.push_back(lane->residual());
  }
  return owed;
}

void SyncLanes::end_attempts(const std::string& reason) {
  {
    MutexLock lock(mutex_);
    if (!ended_) ended_ = reason;
  }
  with_lanes([&](LaneThread& lane) { lane.end_attempts(reason); });
}

// As SyncLane and LaneLink have it for the attempts themselves.
void SyncLanes::prepare(const HubNeighbours& told) {
  NextAttempts next;
  {
    MutexLock lock(mutex_);
    if (lanes_.empty() || ended_) return;
    next.fragments = static_cast<int>(lanes_.size());
    next.connections_per_edge = connections_per_edge_;
    next.silence_timeout = silence_timeout_;
  }
  for (const AttemptMember& member : told.order) {
    next.order.push_back({member.id, member.address, 0, member.dials_previous});
  }
  next.schedule = told.schedule;
  next.bytes_to_each = told.bytes_to_each;
  next.most_bytes_per_second = [&pace = around_.serving_pace] { return pace.left_to_ring(); };
  next.download = &around_.download;
  around_.ring.prepare(std::move(next));
}

void SyncLanes::take(const HubMessage& message) {
  const auto lane_of = [this](OuterStep round, auto&& act) {
    MutexLock lock(mutex_);
    if (!lanes_.empty()) act(*lanes_[round.value % lanes_.size()]);
  };
  if (std::holds_alternative<HubWelcome>(message)) with_lanes([](LaneThread& lane) { lane.welcome(); });
  if (const auto* roster = std::get_if<HubRoster>(&message)) {
    for (const IslandId& removed : roster->removed) {
      with_lanes([&](LaneThread& lane) { lane.post(LaneForget{removed}); });
    }
  }
  if (const auto* told = std::get_if<HubNeighbours>(&message)) prepare(*told);
  if (const auto* abort = std::get_if<HubAbort>(&message)) {
    lane_of(abort->round, [&](LaneThread& lane) { lane.take(*abort); });
  }
  if (const auto* next = std::get_if<HubAttempt>(&message)) {
    lane_of(next->round, [&](LaneThread& lane) { lane.take(*next); });
  }
  if (const auto* show = std::get_if<HubShowChunks>(&message)) {
    lane_of(show->round, [&](LaneThread& lane) { lane.post(*show); });
  }
  if (const auto* goodbye = std::get_if<HubGoodbye>(&message)) end_attempts(goodbye->message);
}

}  // namespace atl
