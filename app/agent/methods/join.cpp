// join {invite?, name?, listen?, advertise?, local_ranks?, threads?, micro_batch?, device?, precision?, gpus?}: answers {started: true} once
// the invite is read offline; "join.progress" tells each stage, "join.done" {ok, text} or {ok: false, code, message}
// what came of the enrolment. join.cancel {}: JoinTask::cancel. invite.look {invite}: InviteLook. An invite travels in
// the message alone: never in argv, an event or a log.
#include "app/agent/methods/methods.h"
#include "net/control/methods.h"

namespace atl {

void add_join_methods(MethodTable& table, JoinTask& join, InviteLook& look) {
  table.add(method::Join::kName, [&join](const nlohmann::json& params) { return join.join(params); });
  table.add(method::JoinCancel::kName, [&join](const nlohmann::json&) { return join.cancel(); });
  table.add(method::InviteLook::kName, [&look](const nlohmann::json& params) { return look.look(params); });
}

}  // namespace atl
