// The table of methods as the control server wants it.
#pragma once

#include "app/agent/method_table.h"
#include "net/control/control_server.h"

namespace atl {

class AgentService final : public ControlService {
 public:
  // The table outlives it.
  explicit AgentService(const MethodTable& methods) : methods_(methods) {}
  Result<nlohmann::json> call(std::string_view method, const nlohmann::json& params) override;

 private:
  const MethodTable& methods_;
};

}  // namespace atl
