// The agent as the part of a command that a person watches: `atoll join` where none runs, `atoll train`.
#pragma once

#include <string>

#include "app/cli/command.h"
#include "net/control/home.h"

namespace atl {

// What a person is told at last.
struct WaysOn {
  std::string come_back;         // the command that goes on
  std::string more_rounds = {};  // that goes on with a run which is finished; empty: this person cannot
};

// Trains until the context's interrupt, or until nothing is left to be done: prints a line a round, and what is amiss;
// at last what was contributed, and how to go on. The error of a trainer that could not be started, or that failed
// before it trained. Main thread.
struct ForegroundEnd {
  Status status;
  bool has_trained = false;  // an inner step
};
ForegroundEnd train_in_foreground(const AgentHome& home, const WaysOn& ways, CommandContext& context);

}  // namespace atl
