// What an island says of itself: one board, written by the loop, read by the mesh's heartbeats and the control socket.
// Thread-safe.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "net/base/deadline.h"
#include "net/base/mutex.h"
#include "net/control/island_state.h"
#include "net/wire/mesh.h"

namespace atl {

// Why the state is told: each is an event that carries it (net/control/events.h).
enum class StateNews { kChanged, kRoundBegin, kStep, kSyncing, kSyncDone, kCheckpointSaved, kError };

// What may be amiss while the island goes on.
enum class Trouble { kHub, kData, kState, kCheckpoint, kRounds, kUpload, kMemory, kDevice, kRun };

class IslandStatus {
 public:
  explicit IslandStatus(IslandState initial) : state_(std::move(initial)) {}

  // Changes the board under its lock: status.update([&](IslandState& s) { s.round = 3; }).
  template <class Change>
  void update(Change&& change) {
    MutexLock lock(mutex_);
    change(state_);
  }
  // Shown as the state's error while it has none of its own. Empty: all is well. False: it was said before.
  bool set_trouble(Trouble of, std::string text) {
    MutexLock lock(mutex_);
    std::string& known = troubles_[static_cast<std::size_t>(of)];
    if (known == text) return false;
    known = std::move(text);
    return true;
  }
  IslandState snapshot() const {
    MutexLock lock(mutex_);
    IslandState state = state_;
    for (const std::string& trouble : troubles_) {
      if (state.error.empty()) state.error = trouble;
    }
    return state;
  }
  IslandHeartbeat heartbeat() const {
    MutexLock lock(mutex_);
    return IslandHeartbeat{.round = OuterStep{state_.round},
                           .phase = std::string(word_of(state_.state)),
                           .inner_step = state_.inner_step,
                           .loss_nats = state_.loss_nats,
                           .tokens_per_second = state_.tokens_per_second,
                           .tokens = state_.tokens,
                           .bytes_sent = state_.bytes_sent,
                           .inner_seconds = state_.inner_seconds,
                           .sync_seconds = state_.sync_seconds,
                           .uploaded_bytes = uploaded_bytes_};
  }
  // For heartbeats alone, as they say.
  void set_uploaded_bytes(std::optional<std::uint64_t> bytes) {
    MutexLock lock(mutex_);
    uploaded_bytes_ = bytes;
  }

 private:
  mutable Mutex mutex_;
  IslandState state_ ATOLL_GUARDED_BY(mutex_);
  std::array<std::string, static_cast<std::size_t>(Trouble::kRun) + 1> troubles_ ATOLL_GUARDED_BY(mutex_){};  // by Trouble
  std::optional<std::uint64_t> uploaded_bytes_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace atl
