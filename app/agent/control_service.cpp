#include "app/agent/control_service.h"

#include <fmt/format.h>

#include "net/base/mutex.h"

namespace atl {

Result<nlohmann::json> AgentService::call(std::string_view method, const nlohmann::json& params) {
  const ReaderLock call(calls_);
  if (ended_) return Error{ErrorCode::kNotRunning, "the agent ends"};
  const AgentMethod* found = methods_.find(method);
  if (found == nullptr) return Error{ErrorCode::kNotFound, fmt::format("no method '{}' here", method.substr(0, 64))};
  return (*found)(params);
}

void AgentService::end() {
  const WriterLock none(calls_);
  ended_ = true;
}

}  // namespace atl
