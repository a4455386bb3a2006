// rounds.list, peers.list, metrics.query: what the island's history holds (app/agent/history/history_queries.h), read
// beside the loop that writes it. The last seconds may not be in it yet.
#include "app/agent/history/history_queries.h"
#include "app/agent/methods/methods.h"

namespace atl {
namespace {

using Query = Result<nlohmann::json> (*)(HistoryStore&, const nlohmann::json&);

}  // namespace

void add_history_methods(MethodTable& table, AgentControl& control) {
  const auto add = [&](const char* name, Query query) {
    table.add(name, [&control, query](const nlohmann::json& params) -> Result<nlohmann::json> {
      ATOLL_ASSIGN_OR_RETURN(const auto store, HistoryStore::open_to_read(control.home().history()));
      return query(*store, params);
    });
  };
  add("rounds.list", list_rounds);
  add("peers.list", list_peers);
  add("metrics.query", query_metrics);
}

}  // namespace atl
