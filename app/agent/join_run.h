// From an invite, or from a membership of before, to a home that belongs to a run: what `atoll join` does, whether an
// agent is asked to or there is none. Blocks while it talks with the hub. Any thread, one at a time for a home.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "net/base/abort_signal.h"
#include "net/base/result.h"
#include "net/control/home.h"
#include "net/control/words.h"
#include "net/wire/invite.h"

namespace atl {

struct JoinRequest {
  std::optional<Invite> invite;         // none: the run joined before
  std::string name, listen, advertise;  // empty: as before, or the default
  // 0: chosen by the trainer, all cores; empty: the same.
  std::optional<int> local_ranks = {}, threads = {};
  std::string gpus = {};                // parse_gpu_list; empty: the same
  std::string region = {};              // empty: the same
  std::string device = {};              // parse_device_choice; empty: the same
  std::string precision = {};           // parse_precision_choice; empty: the same
  std::optional<int> micro_batch = {};  // 0: as many sequences at once as the memory allows; empty: the same
  bool leave_other = false;             // the run that was joined, where the invite is for another one
};

// The run that the home belongs to, if the invite is for another one.
std::optional<JoinFile> other_run(const IslandHome& home, const std::optional<Invite>& invite);
// Whether the home holds a state of the run that the request joins.
bool has_trained_in_run_of(const JoinRequest& request, const IslandHome& home);

// On what it would have the island compute, of no GPU on the processor. None: it leaves that as it is.
std::optional<DeviceChoice> device_of(const JoinRequest& request);

struct JoinOutcome {
  JoinFile join;
  std::string text;     // for a person: what happened
  JoinFile without_it;  // `join` without what the request says of how it computes
};

// What a join was told is not kept where nothing came of it: the next one is as if that had not been said. Whether
// something was forgotten. `home` is the membership's, or that of one which was set aside.
bool forget_what_failed(const IslandHome& home, const JoinOutcome& joined);

// The stages kKey and kEnrol are running, then done, unless the joining ends in one.
using JoinObserver = std::function<void(JoinStage stage, StageStatus status)>;

// `consent` is asked before the invite is used; its error ends the joining. kInviteOtherRun where the home belongs to
// another run, which is not to be left; one that is left keeps its states (IslandHome::checkpoint_of), and the home
// belongs to it until the hub of the other one has granted the enrolment: its trainer is to have ended when `consent`
// returns. The run that was left with `atoll leave` counts as joined before; one whose hub says that it has removed
// this island is joined anew, with a new key and by an invite alone: kPermissionDenied without one. `interrupt` costs
// no use of the invite: see enrol().
Result<JoinOutcome> join_run(const JoinRequest& request, const IslandHome& home, const AbortSignal* interrupt,
                             const std::function<Status(const Invite&)>& consent, const JoinObserver& observer = {});

}  // namespace atl
