// What a sync lane of a real island stands on: the mesh, the ring that lanes share, the disk, and the news of how its
// rounds go. Calls on the lane's thread, but for what says another; what it refers to outlives it and may be called
// from there.
#pragma once

#include <functional>
#include <optional>

#include "net/collective/all_reduce.h"
#include "net/recovery/serving_pace.h"
#include "trainer/island/island_disk.h"
#include "trainer/island/island_news.h"
#include "trainer/island/roster.h"
#include "trainer/island/round_keeper.h"
#include "trainer/island/sync_lane.h"

namespace atl {

struct LaneSurroundings {
  IslandId self;
  RingAllReduce& ring;  // of all lanes, each with its fragment
  const Roster& roster;
  IslandDisk& disk;
  RoundKeeper& keeper;
  ServingPace& serving_pace;  // told of attempts; says what is left of the upload to all lanes together
  DownloadPace& download;     // likewise of what the island receives
  std::function<void(const IslandMessage&)> send;
  std::function<void(StateNews)> publish;
  IslandNews::Publish on_event;  // may be empty
};

class LaneLink final : public LaneNetwork {
 public:
  LaneLink(FragmentId fragment, LaneSurroundings around)
      : fragment_(fragment), around_(std::move(around)), news_(around_.self, around_.on_event, fragment) {}

  void send(const IslandMessage& message) override;
  std::variant<AllReduceReport, AllReduceFailure> all_reduce(const AllReduceSpec& spec, std::span<const float> input,
                                                             const SharedBytes& canonical,
                                                             const AbortSignal& abort) override;
  void publish(StateNews news) override { around_.publish(news); }
  void attempt_begins(const HubAttempt& attempt) override { news_.attempt_begins(attempt, around_.roster); }
  void committed(OuterStep round) override { news_.committed(round, Clock::now()); }
  void forget(const IslandId& peer) override { around_.ring.forget(peer); }
  bool gave_to(const HubCommit& commit) override;
  void keep_average(OuterStep round, WireFormat wire, const std::string& digest, const SharedBytes& canonical) override;
  Result<KeptAverage> kept_average(OuterStep round, const std::string& digest) override;
  void keep_commit(const HubCommit& commit) override { around_.disk.keep_commit(commit); }
  void keep_round(const HubCommit& commit, WireFormat wire, const SharedBytes& canonical, const std::string& from,
                  const HeldState& made) override {
    around_.keeper.keep_round(commit, wire, canonical, from, made);
  }

  // The island's thread, while the lane has no round: before it gives it one, and when it has heard what became of it.
  void round_begins(IslandState state);
  void inner_phase_ends(const IslandState& state);
  void round_done(IslandState state);

 private:
  const FragmentId fragment_;
  const LaneSurroundings around_;
  IslandNews news_;
  std::unique_ptr<RoundKeeper::Average> average_;  // of the newest attempt, until it is kept
  std::uint64_t bytes_sent_ = 0;                   // by this lane: others send at the same time
  // When the inner phase ended: the next one goes on from there.
  std::uint64_t tokens_ = 0;
  double inner_seconds_ = 0;
};

}  // namespace atl
