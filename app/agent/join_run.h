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
};

// On what it would have the island compute, of no GPU on the processor. None: it leaves that as it is.
std::optional<DeviceChoice> device_of(const JoinRequest& request);

struct JoinOutcome {
  JoinFile join;
  std::string text;  // for a person: what happened
};

// The stages kKey and kEnrol are running, then done, unless the joining ends in one.
using JoinObserver = std::function<void(JoinStage stage, StageStatus status)>;

// `consent` is asked before the invite is used; its error ends the joining. The run that was left with `atoll leave`
// counts as joined before; one whose hub says that it has removed this island is joined anew, with a new key and by an
// invite alone: kPermissionDenied without one.
// `interrupt` costs no use of the invite: see enrol().
Result<JoinOutcome> join_run(const JoinRequest& request, const IslandHome& home, const AbortSignal* interrupt,
                             const std::function<Status(const Invite&)>& consent, const JoinObserver& observer = {});

}  // namespace atl
