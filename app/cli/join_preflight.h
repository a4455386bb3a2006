// The quick node check of `atoll join`: before the invite is used, of what can be known without the run; after, of what
// its run asks. A failure stops, but not an island that holds a state of the run, for which others may be waiting,
// while something else keeps its machine busy; warnings ask a person at a terminal. Main thread.
#pragma once

#include <set>
#include <string>

#include "app/agent/join_run.h"
#include "app/cli/command.h"
#include "net/control/home.h"

namespace atl {

class JoinPreflight {
 public:
  // `ask`: warnings ask before going on.
  JoinPreflight(AgentHome home, bool ask, CommandContext& context)
      : home_(std::move(home)), ask_(ask), context_(context) {}

  // For the run that the request joins, and on what that would have it compute. A hub that does not answer is left to
  // what follows, which says whether name, port or TLS is to blame.
  Status run(const JoinRequest& request);
  bool failed() const { return failed_; }  // a row did: exit code 6

 private:
  const AgentHome home_;
  const bool ask_;
  CommandContext& context_;
  std::set<std::string> shown_;  // rows that warned: nobody is asked twice
  bool began_ = false;
  bool failed_ = false;
};

}  // namespace atl
