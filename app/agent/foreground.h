// The part of an agent that runs before a person's eyes (`atoll join`): when nothing is left for it to do, and how that
// ended. Pure; the agent's loop.
#pragma once

#include "app/agent/supervisor.h"
#include "net/base/result.h"

namespace atl {

class Foreground {
 public:
  void trainer_starts() { ever_started_ = true; }
  void look(const Supervisor& supervisor) { ever_trained_ = ever_trained_ || supervisor.has_trained(); }

  // While no trainer runs.
  bool has_nothing_left(const Supervisor& supervisor) const;
  // The error of a trainer that did not end as it was meant to.
  static Status outcome(const Supervisor& supervisor);

 private:
  bool ever_started_ = false;
  bool ever_trained_ = false;
};

}  // namespace atl
