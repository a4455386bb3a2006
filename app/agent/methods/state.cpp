#include "net/control/methods.h"

#include <nlohmann/json.hpp>

#include "app/agent/methods/methods.h"

namespace atl {

void add_state_methods(MethodTable& table, AgentControl& control) {
  table.add(method::StateGet::kName,
            [&control](const nlohmann::json&) -> Result<nlohmann::json> { return to_json(control.board().state()); });
}

}  // namespace atl
