#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/agent/history/history_queries.h"
#include "app/cli/agent_client.h"
#include "app/cli/island/island_commands.h"
#include "app/cli/start_again.h"

namespace atl {
namespace {

Result<nlohmann::json> ask_file(const AgentHome& home, const std::string& method, const nlohmann::json& params) {
  ATOLL_ASSIGN_OR_RETURN(const auto store, HistoryStore::open_to_read(home.history()));
  if (method == "rounds.list") return list_rounds(*store, params);
  if (method == "peers.list") return list_peers(*store, params);
  return query_metrics(*store, params);
}

}  // namespace

void add_home_option(CLI::App& command, std::string& home) {
  command.add_option("--home", home, "Island's home (default: this user's island)")->type_name("DIR");
}

Result<std::unique_ptr<ControlClient>> connect_island(const AgentHome& home) {
  auto agent = ControlClient::connect(home.socket, answer_deadline());
  if (agent.ok() || agent.error().code != ErrorCode::kNotRunning) return agent;
  ATOLL_ASSIGN_OR_RETURN(const JoinFile join, load_join_file(home.island.join_file()));
  auto trainer = ControlClient::connect(home.island.control_socket(), answer_deadline());
  if (trainer.ok() || trainer.error().code != ErrorCode::kNotRunning) return trainer;
  return Error{ErrorCode::kNotRunning, fmt::format("joined to run {}, but nothing is running; start it with: {}",
                                                   join.run_name, how_to_train(home))};
}

Result<nlohmann::json> ask_history(const AgentHome& home, const std::string& method, const nlohmann::json& params) {
  const auto agent = ControlClient::connect(home.socket, answer_deadline());
  if (agent.ok()) return (*agent)->call(method, params, answer_deadline());
  if (agent.error().code != ErrorCode::kNotRunning) return agent.error();
  auto answer = ask_file(home, method, params);
  if (answer.ok() || answer.error().code != ErrorCode::kNotFound) return answer;
  ATOLL_RETURN_IF_ERROR(load_join_file(home.island.join_file()));
  return Error{ErrorCode::kNotRunning,
               "no agent is running, and none has left a history; start one with: " + how_to_train(home)};
}

}  // namespace atl
