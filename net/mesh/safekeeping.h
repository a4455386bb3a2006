// What would outlive the islands' processes: up to which outer step the run is safe on their disks, which is told to
// everybody, and which outer states are written to the run's object store, by whom. An island's word is taken for what
// it keeps: nothing that is committed depends on it. One thread; owned by the RoundCoordinator.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "net/mesh/committed_state.h"
#include "net/mesh/membership.h"
#include "net/mesh/mesh_trust.h"

namespace atl {

class Safekeeping {
 public:
  Safekeeping(CoordinatorTurn& turn, Membership& members, const MeshTrust& trust, const CommittedState& state,
              const CoordinatorMemory& memory);

  // The newest outer step that RunConfig::safe_copies islands (all of them, where there are fewer), here or away, have
  // on their disks: it, or a newer one, which came of it. Nothing while one of so few has none. Who held the last
  // round's average is one of them, also when this hub has not met it yet.
  std::optional<OuterStep> safe_step() const;
  // How many islands, here or away, have the newest committed state on their disks.
  std::uint32_t disks_with_committed() const;
  // The newest that is in the store, as islands said who wrote it.
  std::optional<OuterStep> uploaded() const;
  bool is_uploaded(const HeldState& state) const;
  // The newest of the run's states, none newer than `at_most`, that an island which is here keeps, that is in the
  // store, or with which the run began.
  std::optional<OuterStep> newest_kept(OuterStep at_most) const;
  // The newest that so many islands which are here keep, or with which the run began.
  std::optional<OuterStep> newest_kept_by(std::size_t islands) const;

  // Whether the run, whose last round is done, is to stay open until what it came to is in the store: for minutes, as
  // long as an island is here that can write it, and for what is being written.
  bool awaits_last_upload();

  void settle();  // tells what changed, and asks for an upload when one is due
  void said(const MeshIsland& island, const IslandUploaded& message);
  void go_back_to(OuterStep step);  // later states are undone

 private:
  // The newest committed state that it keeps.
  std::optional<HeldState> newest_kept(const MeshIsland& island) const;
  struct Upload {
    IslandId by;
    HeldState state;
    std::optional<std::uint64_t> bytes = {};  // the most that it said the store to have
    Clock::time_point moved_at{};             // when it first said so
    Clock::time_point began{};
  };
  bool upload_is_due(OuterStep step) const;
  std::optional<Upload> best_upload(bool of_failed) const;
  void ask_for_upload();
  void watch_upload();
  void upload_failed(const std::string& why);

  CoordinatorTurn& turn_;
  Membership& members_;
  const MeshTrust& trust_;
  const CommittedState& state_;

  std::map<OuterStep, std::string> uploaded_;  // to the tree hash
  std::optional<Upload> under_way_;
  std::set<IslandId> failed_;  // since an upload ended well: the others are asked first
  int failures_ = 0;           // since then
  // When one that has not failed is asked, and when one that has.
  Clock::time_point another_at_{}, again_at_{};
  std::optional<Clock::time_point> last_by_;  // what the run came to; from its last round on
};

}  // namespace atl
