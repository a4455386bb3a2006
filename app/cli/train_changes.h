// What `atoll train` changes of a run that its directory holds: how long it is, and what only the steps to come depend
// on. Blocks on the disk; main thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli/run_init.h"
#include "net/control/home.h"

namespace atl {

struct RunChange {
  std::vector<std::string> options;               // that were given for the run: "--rounds", "--seed"
  const NewRun* run = nullptr;                    // what they say
  std::optional<std::uint32_t> more_rounds = {};  // beyond those that are done, instead of a number of all
};

struct ChangedRun {
  RunConfig run;
  std::vector<std::string> lines;  // what changes, for a person; empty: nothing does
};

// As it would be. Nothing is written. kInvalidArgument names what cannot change.
Result<ChangedRun> change_trained_run(const HubHome& hub, const RunChange& change);

}  // namespace atl
