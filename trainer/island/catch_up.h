// How an island gets the outer state that the hub names, from what it holds, what a process before it had fetched, and
// the others (net/recovery/state_fetch.h), or the run's object store where these do not hold it, or outer step 0 from
// the hub. One for as long as it recovers: the hub may name newer ones meanwhile. The island's thread; blocks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "net/recovery/catch_up_pace.h"
#include "net/recovery/fetched_rounds.h"
#include "net/recovery/incoming_state.h"
#include "net/recovery/state_fetch.h"
#include "trainer/island/island_disk.h"
#include "trainer/island/outer_state_store.h"
#include "trainer/island/store_recovery.h"
#include "trainer/island/transfer_news.h"

namespace atl {

class CatchUp {
 public:
  struct Surroundings {  // outlive it
    const Identity& self;
    const OuterStateStore& own;
    IslandDisk& disk;
    StoreRecovery store;                                              // a copy
    DownloadPace& download;                                           // of all that it fetches
    const std::vector<Address>& hub;                                  // its addresses
    std::function<void(const std::string&)> trouble;                  // of the fetch, for a person; empty: all is well
    std::function<void(const std::string&)> disk_trouble;             // on any thread
    std::function<void(std::unique_ptr<FetchedRounds>)> keep_rounds;  // by which it went; of an island with a disk
    TransferNews::Publish on_event;                                   // may be empty
  };

  CatchUp(Surroundings around, FetchModel model);
  ~CatchUp();  // what was fetched stays on the disk

  // kNotFound when the hub names another, or will: again with that one. After a success it holds nothing.
  Result<FetchedState> fetch(const HeldState& target, const std::vector<StateSourceAddress>& sources,
                             const AbortSignal& abort, const std::function<bool()>& superseded);
  // The same from the run's object store.
  Result<FetchedState> fetch_from_store(const HeldState& target, const AbortSignal& abort,
                                        const std::function<bool()>& superseded);
  // Outer step 0 of a run that begins with a model that the hub has (net/recovery/base_model_fetch.h).
  Result<FetchedState> fetch_from_hub(const HeldState& target, const AbortSignal& abort,
                                      const std::function<bool()>& superseded);

 private:
  Status begin();
  Result<FetchedState> end(const HeldState& target, const Status& done, const AbortSignal& abort);
  FetchedState take(const HeldState& target);
  std::string wrong_chunks() const;
  std::uint64_t round_bytes() const;

  const Surroundings around_;
  const FetchModel model_;
  TransferNews news_;
  CatchUpPace pace_;
  std::set<std::uint64_t> wrong_;            // of all targets
  std::unique_ptr<IncomingState> incoming_;  // null: nothing is kept on a disk
  std::unique_ptr<FetchedRounds> rounds_;    // likewise
  std::optional<StateFetch> fetch_;
  Backoff hub_pause_;  // what is wrong with the hub's copy is not mended within a second
  Clock::time_point ask_hub_from_{};
};

}  // namespace atl
