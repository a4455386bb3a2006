#include "app/agent/foreground.h"

namespace atl {

bool Foreground::has_nothing_left(const Supervisor& supervisor) const {
  const auto phase = supervisor.phase();
  if (phase == Supervisor::Phase::kFailed) return true;
  // Nobody waits in front of a screen for a trainer that has never worked.
  if (phase == Supervisor::Phase::kBackoff) return !ever_trained_;
  return phase == Supervisor::Phase::kIdle && ever_started_ && supervisor.wish() == Wish::kStop;
}

Status Foreground::outcome(const Supervisor& supervisor) {
  const auto& exit = supervisor.last_exit();
  if (!exit || is_success(exit->cause)) return ok_status();
  return Error{error_code_of(*exit), exit->text};
}

}  // namespace atl
