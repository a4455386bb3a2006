// How an island gets the outer state that the hub names, from what it holds, what a process before it had fetched, and
// the others (net/recovery/state_fetch.h). One for as long as it recovers: the hub may name newer ones meanwhile. The
// island's thread; blocks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "net/recovery/catch_up_pace.h"
#include "net/recovery/incoming_state.h"
#include "net/recovery/state_fetch.h"
#include "trainer/island/island_disk.h"
#include "trainer/island/outer_state_store.h"
#include "trainer/island/transfer_news.h"

namespace atl {

class CatchUp {
 public:
  struct Surroundings {  // outlive it
    const Identity& self;
    const OuterStateStore& own;
    IslandDisk& disk;
    std::function<void(const std::string&)> trouble;       // of the fetch, for a person; empty: all is well
    std::function<void(const std::string&)> disk_trouble;  // on any thread
    TransferNews::Publish on_event;                        // may be empty
  };

  CatchUp(Surroundings around, FetchModel model);
  ~CatchUp();  // what was fetched stays on the disk

  // kNotFound when the hub names another, or will: again with that one. After a success it holds nothing.
  Result<FetchedState> fetch(const HeldState& target, const std::vector<StateSourceAddress>& sources,
                             const AbortSignal& abort, const std::function<bool()>& superseded);

 private:
  Status begin();
  FetchedState take(const HeldState& target);
  std::string wrong_chunks() const;
  std::uint64_t round_bytes() const;

  const Surroundings around_;
  const FetchModel model_;
  TransferNews news_;
  CatchUpPace pace_;
  std::set<std::uint64_t> wrong_;            // of all targets
  std::unique_ptr<IncomingState> incoming_;  // null: nothing is kept on a disk
  std::optional<StateFetch> fetch_;
};

}  // namespace atl
