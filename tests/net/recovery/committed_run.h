// A run in which a round is committed whenever a test says so: its outer state, which moves on, and the log of its
// rounds, signed by its hub. For tests.
#pragma once

#include <filesystem>
#include <map>
#include <random>
#include <vector>

#include "net/base/mutex.h"
#include "net/disk/round_log.h"
#include "net/model/fragments.h"
#include "net/recovery/fetch_plan.h"
#include "net/recovery/outer_state.h"
#include "tests/fakes/test_run.h"

namespace atl {

class CommittedRun final : public OuterStateSource {
 public:
  // Averages are int8-block. The log: in this directory.
  CommittedRun(TestRun& run, std::uint64_t numel, std::uint32_t fragments, const std::filesystem::path& directory);

  // Any thread may read meanwhile.
  void commit(int rounds = 1);
  void go_back_to(const FetchedState& state);  // a rollback: an epoch begins

  FetchModel model() const { return {.numel = numel_, .fragments = fragments_}; }
  HeldState held() const;
  FetchedState copy() const;
  bool is(const FetchedState& state) const;
  const RoundLog& log() const { return log_; }
  // Of an average of round `round`, or of all of `count` rounds from `from` on.
  std::uint64_t average_bytes(std::uint32_t round) const;
  std::uint64_t average_bytes(std::uint32_t from, std::uint32_t count) const;

  Result<StateManifest> manifest() const override;
  Result<Bytes> copy_chunk(OuterStep version, std::uint64_t index) const override;

 private:
  void take(OuterStep step) ATOLL_REQUIRES(mutex_);

  TestRun& run_;
  const std::uint64_t numel_;
  std::vector<Fragment> fragments_;
  const RoundLog log_;
  const std::filesystem::path unkept_;  // where no average lies yet
  std::mt19937 random_{7};
  std::uint64_t epoch_ = 5;
  mutable Mutex mutex_;
  FetchedState state_ ATOLL_GUARDED_BY(mutex_);
  StateManifest manifest_ ATOLL_GUARDED_BY(mutex_);
};

// A state that stays, as an island holds it.
class HeldStateSource final : public OuterStateSource {
 public:
  explicit HeldStateSource(FetchedState state);

  OuterStep version() const { return manifest_.version; }
  void flip_bit(std::uint64_t parameter);  // its manifest does not hear of it
  Result<StateManifest> manifest() const override { return manifest_; }
  Result<Bytes> copy_chunk(OuterStep version, std::uint64_t index) const override;

 private:
  FetchedState state_;
  const StateManifest manifest_;
};

}  // namespace atl
