// The island's outer state: parameters and Nesterov momentum, fp32, canonical order, with its version and tree hash.
// Served to joiners by HTTPS threads while it changes.
//
// The inner loop replaces it whole, while no sync lane has a round. A lane takes the outer step of its fragment, one
// lane at a time; until the inner loop has heard of it, the fragment's values are that lane's, then the inner loop's
// until it gives the lane the next round of the fragment.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/wire_format.h"
#include "net/base/mutex.h"
#include "net/model/fragments.h"
#include "net/recovery/outer_state.h"
#include "net/wire/mesh.h"

namespace atl {

// Of the state as it was when the chunk was copied. Chunks of one generation are of one history: no other state took
// the place of the one before by anything but an outer step.
struct CopiedChunk {
  HeldState state;
  Digest sha256{};
  std::uint64_t generation = 0;
};

class OuterStateStore final : public OuterStateSource {
 public:
  explicit OuterStateStore(std::int64_t numel) : numel_(numel) {}

  // ---- whoever may change it now, or holds it still ----
  bool holds_state() const { return !parameters_.empty(); }
  OuterStep version() const { return version_; }
  const std::string& tree_hash() const { return tree_hash_; }  // hex; empty while it holds no state
  // [numel]; valid until the next change.
  std::span<const float> parameters() const { return parameters_; }

  // Version 0: fresh parameters, zero momentum.
  void initialise(std::vector<float> parameters);
  // What was fetched from another island, or loaded from disk. The manifest was verified against it by the caller.
  void replace(FetchedState state);
  // It holds none from then on: for who makes another state in the same memory, of which there is not twice as much.
  FetchedState release();
  // The outer step of one fragment on its canonical average (net/recovery/outer_step.h): version + 1; the others stay.
  // Chunks are not served while it lasts, and then those of the new version. Returns what is held now.
  HeldState apply(std::span<const ParameterRange> ranges, WireFormat wire, ByteView canonical, float learning_rate,
                  float momentum);

  // ---- any thread ----
  // Nobody changes it while this is held: a lane's outer step waits.
  Mutex& changing() const ATOLL_RETURNS_MUTEX(changing_) { return changing_; }
  OuterStep current_version() const;
  Result<HeldState> held() const;            // kNotFound while it holds no state
  Result<std::uint64_t> held_numel() const;  // of the state's parameters, the same
  // Copies a chunk as it is now into `bytes`, for who writes them down one after the other: an outer step waits
  // meanwhile, as this waits for one that is being taken; nobody else does. kNotFound while it holds no state.
  Result<CopiedChunk> copy_chunk(std::uint64_t index, Bytes& bytes) const;
  Result<StateManifest> manifest() const override;
  Result<Bytes> copy_chunk(OuterStep version, std::uint64_t index) const override;
  // A copy of the parameters and their version, for exports. kNotFound while it holds no state.
  Result<std::pair<OuterStep, std::vector<float>>> snapshot() const;

 private:
  void hold(FetchedState state) ATOLL_REQUIRES(changing_);
  class Reading;
  void await_readers(MutexLock& lock) ATOLL_REQUIRES(mutex_);
  void copy_values(std::uint64_t index, Bytes& bytes) const;

  const std::int64_t numel_;
  // Written under both, taken in this order; read with either, or by those who may change it. An outer step changes the
  // values under `changing_` alone, and is said by `steps_`: nobody who serves waits for it. Nor does anybody wait for
  // who copies values: that is said by `readers_`, for whom a change waits.
  mutable Mutex changing_;
  mutable Mutex mutex_;
  mutable CondVar stepped_, unread_;
  bool steps_ ATOLL_GUARDED_BY(mutex_) = false;  // or is replaced: from when it waits for readers on
  mutable int readers_ ATOLL_GUARDED_BY(mutex_) = 0;
  std::uint64_t generation_ ATOLL_GUARDED_BY(mutex_) = 0;  // changes with each state that another took the place of
  OuterStep version_;
  std::vector<float> parameters_;
  std::vector<float> momentum_;
  StateManifest manifest_;
  std::string tree_hash_;
};

// What an island serves: the state that it has when it is asked, for a connection may be older than that one is. Any
// thread.
class ServedOuterState final : public OuterStateSource {
 public:
  // `newest` may return null: there is none yet.
  explicit ServedOuterState(std::function<std::shared_ptr<const OuterStateStore>()> newest)
      : newest_(std::move(newest)) {}

  Result<StateManifest> manifest() const override;
  Result<Bytes> copy_chunk(OuterStep version, std::uint64_t index) const override;

 private:
  const std::function<std::shared_ptr<const OuterStateStore>()> newest_;
};

}  // namespace atl
