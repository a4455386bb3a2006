// Joining is consent, however the invite comes: what a run is, what it costs this machine and what leaves it, in one
// summary before the invite is used; then the question. Main thread.
#pragma once

#include <string>

#include "app/cli/command.h"
#include "net/control/home.h"
#include "net/wire/invite.h"

namespace atl {

// The invite's text as it is pasted: from a pipe all that comes; at a terminal, which does not show it, until the
// invite is whole (mail programs wrap it over lines), or until an empty line.
Result<std::string> read_pasted_invite(Console& console, const AbortSignal& interrupt);

class JoinConsent {
 public:
  // `yes`: was said on the command line, to whatever would be asked.
  JoinConsent(AgentHome home, bool yes, CommandContext& context)
      : home_(std::move(home)), yes_(yes), context_(context) {}

  // Whether a person can be asked, and is to be.
  bool asks() const;

  // Asks the hub of the invite which run it is, which takes no secret, shows it, and asks. kAborted: no. Errors of the
  // hub's as describe_hub() has them. Where nobody reads along, as in a script, all is consent but to leave another
  // run; kInvalidArgument where somebody reads and cannot be asked. Once: the second time it is ok.
  Status ask(const Invite& invite);
  // Whether this machine is to leave the run that it has joined for that of the invite.
  bool leaves() const { return leaves_; }

 private:
  const AgentHome home_;
  const bool yes_;
  CommandContext& context_;
  bool asked_ = false;
  bool leaves_ = false;
};

}  // namespace atl
