// logs.read {cursor?, since_seconds?, limit?}: what agent and trainer wrote, a page at a time
// (app/agent/files/log_page.h).
#include <fmt/format.h>

#include "app/agent/files/log_page.h"
#include "app/agent/methods/methods.h"
#include "app/agent/methods/params.h"
#include "net/base/unix_time.h"

namespace atl {
namespace {

constexpr int kLongestSeconds = 366 * 24 * 3600;

Result<nlohmann::json> read_logs(const AgentHome& home, const nlohmann::json& params) {
  LogQuery query;
  ATOLL_ASSIGN_OR_RETURN(query.cursor, text_param(params, "cursor"));
  ATOLL_ASSIGN_OR_RETURN(const int since, number_param(params, "since_seconds", kLongestSeconds));
  ATOLL_ASSIGN_OR_RETURN(const int limit, number_param(params, "limit", static_cast<int>(LogPage::kMaxLines)));
  if (since > 0) query.since = log_time(unix_seconds_now() - since);
  if (limit > 0) query.limit = static_cast<std::size_t>(limit);
  ATOLL_ASSIGN_OR_RETURN(const LogPage page,
                         read_log_page({{"agent", home.agent_log()}, {"trainer", home.trainer_log()}}, query));
  return page.to_json();
}

}  // namespace

void add_log_methods(MethodTable& table, AgentControl& control) {
  table.add_slow("logs.read", [&control](const nlohmann::json& params) { return read_logs(control.home(), params); });
}

}  // namespace atl
