// A node whose agent and commands are a test's. Owned by a test; its thread.
#pragma once

#include <QTemporaryDir>
#include <QtTest>

#include "app/core/node.h"
#include "tests/app/core/fake_agent.h"
#include "tests/app/core/fake_commands.h"

namespace atl::test {

struct GuiNode {
  GuiNode() {
    node.start();
    if (!QTest::qWaitFor([this] { return node.link().state() == LinkState::kConnected && node.state(); })) {
      qFatal("the agent in memory does not answer");
    }
  }
  AgentHome home() const { return agent_home_in(directory.path().toStdString()); }

  QTemporaryDir directory;
  FakeAgent agent;
  FakeCommands commands;
  Node node{LocalNode{home()},
            agent.open(),
            commands.run(),
            {.first_retry = std::chrono::milliseconds(20), .longest_retry = std::chrono::milliseconds(50)}};
};

inline nlohmann::json check_row(const char* id, const char* verdict, const char* text, const char* fix = "") {
  return {{"id", id},     {"verdict", verdict}, {"value", nullptr}, {"unit", ""},
          {"text", text}, {"fix", fix},         {"seconds", 0.1}};
}

// The agent tells the rows of a check and its end, by default of one for the run that a FakeAgent is in.
inline void tell_check(FakeAgent& agent, const std::vector<nlohmann::json>& rows, const std::string& run_id = "run-1") {
  for (const nlohmann::json& row : rows) agent.tell("check.result", {{"row", row}});
  agent.tell(
      "check.result",
      {{"done", true},
       {"report",
        {{"version", 1}, {"software", "atoll"}, {"run_id", run_id}, {"time", 0}, {"full", false}, {"rows", rows}}}});
}

}  // namespace atl::test
