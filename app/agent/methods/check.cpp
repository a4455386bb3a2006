// check.run {full?, invite?}: see CheckTask.
#include <chrono>

#include "app/agent/methods/methods.h"
#include "net/control/methods.h"

namespace atl {

void add_check_method(MethodTable& table, CheckTask& check) {
  table.add(method::CheckRun::kName, [&check](const nlohmann::json& json) -> Result<nlohmann::json> {
    ATOLL_ASSIGN_OR_RETURN(const auto params, decode_message<method::CheckRun>(json));
    CheckTask::Wanted wanted{.full = params.full};
    if (!params.invite.empty()) {
      const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
      ATOLL_ASSIGN_OR_RETURN(Invite invite, decode_invite(params.invite, now));
      invite.secret.clear();  // not needed here, and so not kept
      wanted.invite = std::move(invite);
    }
    ATOLL_RETURN_IF_ERROR(check.run(std::move(wanted)));
    return encode_message(method::Started{});
  });
}

}  // namespace atl
