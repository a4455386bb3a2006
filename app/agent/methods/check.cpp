// check.run {full?}: see CheckTask.
#include "app/agent/methods/methods.h"

namespace atl {

void add_check_method(MethodTable& table, CheckTask& check) {
  table.add("check.run", [&check](const nlohmann::json& params) { return check.run(params); });
}

}  // namespace atl
