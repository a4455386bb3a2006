// check.run {full?}: see CheckTask.
#include "app/agent/methods/methods.h"
#include "net/control/methods.h"

namespace atl {

void add_check_method(MethodTable& table, CheckTask& check) {
  table.add(method::CheckRun::kName, [&check](const nlohmann::json& json) -> Result<nlohmann::json> {
    ATOLL_ASSIGN_OR_RETURN(const auto params, decode_message<method::CheckRun>(json));
    ATOLL_RETURN_IF_ERROR(check.run(params.full));
    return encode_message(method::Started{});
  });
}

}  // namespace atl
