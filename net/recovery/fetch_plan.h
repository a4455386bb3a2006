// What a state lacks on its way to a target, and how each chunk gets there: it is right already, a few rounds' averages
// bring it there, or it is fetched whole, whichever is fewer bytes. Joining, coming back after some rounds, a target
// that moves on meanwhile, and a few wrong chunks are all of this. No sockets, no clock; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "net/model/fragments.h"
#include "net/recovery/fetched_average.h"
#include "net/recovery/fetched_rounds.h"
#include "net/recovery/partial_state.h"
#include "net/tls/identity.h"

namespace atl {

// Of the run.
struct FetchModel {
  std::uint64_t numel;
  std::vector<Fragment> fragments;           // at least one
  WireFormat wire = WireFormat::kInt8Block;  // of most averages, to reckon with
};

class FetchPlan {
 public:
  // `self` outlives this: the hub of its run signs rounds. `came`: a chunk of the target is right, after fetching or
  // stepping; may be empty.
  FetchPlan(const Identity& self, FetchModel model, std::function<void(std::uint64_t chunk)> came);

  // Before anything comes: is told of the rounds that chunks go by, whose states are hashed one by one then. Outlives
  // this, or until it is null.
  void tell_rounds_to(FetchedRounds* rounds) { rounds_taken_ = rounds; }

  PartialState& state() { return state_; }
  const PartialState& state() const { return state_; }

  // ---- the target
  const HeldState& target() const { return target_; }
  void aim(const HeldState& target);  // what is there stays
  bool has_manifest() const { return manifest_.has_value(); }
  // kNotFound where it is of another outer step, kCorrupt where it is not the target's.
  Status take_manifest(ByteView json);
  bool complete() const { return manifest_ && right_ == state_.chunks(); }
  // Chunks that are not what they should be, though all rounds are in them: fetched anew.
  const std::set<std::uint64_t>& wrong() const { return wrong_; }
  std::uint64_t bytes_to_fetch() const;

  // ---- rounds
  const std::set<OuterStep>& rounds_to_ask() const { return unknown_rounds_; }  // whose manifests are needed
  std::int64_t average_numel(OuterStep round) const { return part(round).numel; }
  Status take_round(OuterStep round, ByteView manifest);
  void give_up_round(OuterStep round);  // nobody has it: its chunks come whole
  // The average that is asked next, of those that `may_ask`; null: none.
  FetchedAverage* average_to_ask(const std::function<bool(OuterStep)>& may_ask);
  std::set<OuterStep> rounds_with_open_pieces() const;
  std::uint64_t open_pieces() const;                                    // of all rounds
  FetchedAverage* average(OuterStep round, const std::string& digest);  // null: no longer
  // What came of an average, as FetchedAverage::accept() says.
  FetchedAverage::Accepted take_pieces(FetchedAverage& average, PieceSpan asked, ByteView bytes);

  // ---- whole chunks
  std::optional<std::uint64_t> next_chunk();  // is on its way then
  std::uint64_t chunks_to_fetch() const { return fetching_.size(); }
  bool is_to_fetch(std::uint64_t chunk) const { return fetching_.contains(chunk); }
  StoredChunk wanted(std::uint64_t chunk) const { return {target_.outer_step, manifest_->chunk_sha256[chunk]}; }
  bool is_right(std::uint64_t chunk) const { return manifest_ && ways_[chunk] == Way::kRight; }
  // What was asked for, of whichever target. kCorrupt where these are other bytes. Returns whether they were of use.
  Result<bool> take_chunk(std::uint64_t chunk, const StoredChunk& is, ByteView bytes);
  void give_back_chunk(std::uint64_t chunk) { on_its_way_[chunk] = false; }  // it will not come: asked for again

  // Takes the outer steps for which everything has come, on all processors.
  void step_ready();

 private:
  enum class Way { kUnknown, kRight, kStep, kFetch };
  struct Trust {
    int right = 0, wrong = 0;  // chunks of one outer step that averages led to the target, or elsewhere
  };

  const Fragment& part(OuterStep round) const { return model_.fragments[round.value % model_.fragments.size()]; }
  bool touches(OuterStep round, std::uint64_t chunk) const {
    return touching_bytes_[round.value % model_.fragments.size()][chunk] > 0;
  }
  template <class Act>
  void for_each_round(std::uint64_t chunk, Act act) const;
  std::uint64_t bytes_of_rounds(std::uint64_t chunk, OuterStep from) const;
  void seek_rounds_again();
  Way decide(std::uint64_t chunk);
  void plan(std::uint64_t chunk);
  void leave_way(std::uint64_t chunk);
  bool is_ready(std::uint64_t chunk) const;
  std::vector<Digest> step(std::uint64_t chunk);
  void take_outer_step(std::uint64_t chunk, const FetchedAverage& average);
  void stepped(std::uint64_t chunk, const std::vector<Digest>& digests);
  void distrust(OuterStep from);

  const Identity& self_;
  const FetchModel model_;
  const std::function<void(std::uint64_t)> came_;
  FetchedRounds* rounds_taken_ = nullptr;
  PartialState state_;
  // By fragment and chunk: what an outer step on the chunk reads of an average of the run's format.
  std::vector<std::vector<std::uint64_t>> touching_bytes_;
  HeldState target_;
  std::optional<StateManifest> manifest_;
  std::vector<Way> ways_;
  std::uint64_t right_ = 0;
  std::set<std::uint64_t> stepping_, fetching_;  // chunks, by way
  std::vector<bool> on_its_way_;                 // by chunk
  std::map<OuterStep, FetchedAverage> averages_;
  std::set<OuterStep> unknown_rounds_, lost_rounds_;
  std::map<OuterStep, Trust> trust_;  // by the outer step from which chunks were stepped
  std::set<std::uint64_t> wrong_;
};

}  // namespace atl
