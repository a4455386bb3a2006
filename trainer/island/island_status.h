// What an island says of itself: one board, written by the loop, read by the mesh's heartbeats and the control socket.
// Thread-safe.
#pragma once

#include <mutex>
#include <string>

#include "net/base/deadline.h"
#include "net/control/island_state.h"
#include "net/wire/mesh.h"

namespace atl {

class IslandStatus {
 public:
  explicit IslandStatus(IslandState initial) : state_(std::move(initial)) {}

  // Changes the board under its lock: status.update([&](IslandState& s) { s.round = 3; }).
  template <class Change>
  void update(Change&& change) {
    std::lock_guard lock(mutex_);
    change(state_);
  }
  IslandState snapshot() const {
    std::lock_guard lock(mutex_);
    return state_;
  }
  IslandHeartbeat heartbeat() const {
    std::lock_guard lock(mutex_);
    return IslandHeartbeat{.round = OuterStep{state_.round},
                           .phase = state_.state,
                           .inner_step = state_.inner_step,
                           .loss_nats = state_.loss_nats,
                           .tokens_per_second = state_.tokens_per_second,
                           .tokens = state_.tokens,
                           .bytes_sent = state_.bytes_sent,
                           .inner_seconds = state_.inner_seconds,
                           .sync_seconds = state_.sync_seconds};
  }

 private:
  mutable std::mutex mutex_;
  IslandState state_;  // guarded by mutex_
};

}  // namespace atl
