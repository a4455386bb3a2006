#include "app/cli/agent_client.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "net/control/methods.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kAnswerTime{5};

bool has_own_home(const std::string& given) { return !given.empty() || std::getenv("ATOLL_HOME") != nullptr; }

}  // namespace

Deadline answer_deadline() { return Deadline::after(kAnswerTime); }

Result<AgentHome> home_of_agent(const std::string& given) {
  ATOLL_ASSIGN_OR_RETURN(AgentHome home, find_agent_home(given));
  if (has_own_home(given)) return home;
  std::error_code ignored;
  const AgentHome system = system_agent_home();
  const bool own =
      std::filesystem::exists(home.socket, ignored) || std::filesystem::exists(home.island.join_file(), ignored);
  return !own && std::filesystem::exists(system.socket, ignored) ? system : home;
}

Result<std::unique_ptr<ControlClient>> connect_agent(const std::string& given) {
  ATOLL_ASSIGN_OR_RETURN(const AgentHome home, home_of_agent(given));
  auto agent = ControlClient::connect(home.socket, answer_deadline());
  if (agent.ok() || agent.error().code != ErrorCode::kNotRunning) return agent;
  return Error{ErrorCode::kNotRunning,
               "no agent is running; start one with 'atoll join' or 'atoll agent', or as a service with 'atoll service "
               "install'"};
}

Result<nlohmann::json> ask_agent(ControlClient& agent, std::string_view method, const nlohmann::json& params) {
  return agent.call(method, params, answer_deadline());
}

Result<NodeState> ask_node_state(ControlClient& agent) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json json,
                         ask_agent(agent, method::StateGet::kName, nlohmann::json::object()));
  return node_state_from_json(json);
}

std::optional<ControlEvent> read_event(const nlohmann::json& event) {
  const auto name = event.find("event"), data = event.find("data");
  if (name == event.end() || !name->is_string() || data == event.end()) return std::nullopt;
  auto told = decode_event(name->get_ref<const std::string&>(), *data);
  return told.ok() ? std::optional(std::move(*told)) : std::nullopt;
}

}  // namespace atl
