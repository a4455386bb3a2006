// How a command finds the agent whose island it is about, and talks with it. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "net/control/control_client.h"
#include "net/control/events.h"
#include "net/control/home.h"
#include "net/control/node_state.h"

namespace atl {

// Where the agent that commands are about keeps its files: `given` (--home, or empty), else this user's, else the
// system's, where its service runs and this user has no island of its own.
Result<AgentHome> home_of_agent(const std::string& given);

// The agent of this home (`given`: --home, or empty), else the system's where no home was asked for. kNotRunning, with
// what to do, when neither answers.
Result<std::unique_ptr<ControlClient>> connect_agent(const std::string& given);

// The time that an answer on a control socket may take.
Deadline answer_deadline();
// One call, within it.
Result<nlohmann::json> ask_agent(ControlClient& agent, std::string_view method, const nlohmann::json& params);
Result<NodeState> ask_node_state(ControlClient& agent);
// As ControlClient::next_event has it; empty: it cannot be read.
std::optional<ControlEvent> read_event(const nlohmann::json& event);

}  // namespace atl
