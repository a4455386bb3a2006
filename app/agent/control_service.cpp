#include "app/agent/control_service.h"

#include <fmt/format.h>

namespace atl {

Result<nlohmann::json> AgentService::call(std::string_view method, const nlohmann::json& params) {
  const AgentMethod* found = methods_.find(method);
  if (found == nullptr) return Error{ErrorCode::kNotFound, fmt::format("no method '{}' here", method.substr(0, 64))};
  return (*found)(params);
}

}  // namespace atl
