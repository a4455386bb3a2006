// For tests of the owner's rules: a directory of files, and an agent that follows rules, whose trainer is a program
// that only waits. Owned by a test; the agent runs on a thread of its own.
#pragma once

#include <QTemporaryDir>
#include <QtTest>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "app/agent/agent.h"

namespace atl::test {

inline constexpr int kRuleMilliseconds = 60'000;  // for anything; a hang, not a slow machine

class Directory {
 public:
  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(directory_.path().toStdString()) / name;
  }
  // As a whole or not at all: others read it meanwhile.
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(path(name).parent_path());
    std::ofstream(path(name + ".new")) << text;
    std::filesystem::rename(path(name + ".new"), path(name));
  }

 private:
  QTemporaryDir directory_;
};

class RuledAgent {
 public:
  // `options` but for the home, the trainer, and the places of the machine that the test does not name.
  // `begins`: what the trainer does first, in the shell's language.
  RuledAgent(const Directory& files, AgentOptions options, DeviceChoice device = DeviceChoice::kProcessor,
             const std::string& gpus = "all", const std::string& begins = {}) {
    files.write("trainer.sh", "#!/bin/sh\n" + begins + "\nexec sleep 600\n");
    std::filesystem::permissions(files.path("trainer.sh"), std::filesystem::perms::owner_all);
    options.home = agent_home_in(files.path("home"));
    std::filesystem::create_directories(files.path("home"));
    JoinFile join;
    join.device = device;
    join.gpus = gpus;
    if (!save_join_file(options.home.island.join_file(), join).ok()) qFatal("no join file");
    options.trainer = files.path("trainer.sh");
    options.machine = {.proc = files.path("proc"),
                       .power_supplies = files.path("power"),
                       .hwmon = files.path("hwmon"),
                       .thermal = files.path("thermal"),
                       .powercap = files.path("powercap"),
                       .period = std::chrono::milliseconds(200)};
    options.gpu_sample_period = std::chrono::milliseconds(50);
    auto agent = Agent::start(std::move(options));
    if (!agent.ok()) qFatal("%s", agent.error().message.c_str());
    agent_ = std::move(*agent);
    loop_ = std::jthread([this] { (void)agent_->run(end_); });
  }
  ~RuledAgent() { end_.raise("the test is over"); }

  NodeState state() { return agent_->control().board().state(); }
  AgentControl& control() { return agent_->control(); }
  bool trains() {
    const AgentView agent = state().agent;
    return agent.trainer_pid > 0 && agent.paused_by.empty();
  }
  // What is said of a rule that pauses; empty: it does not.
  std::string pause_by(OwnersRule rule) {
    const NodeState now = state();
    const auto pause = std::ranges::find(now.agent.paused_by, rule, &PausedBy::rule);
    const bool pauses = now.agent.trainer_pid == 0 && now.island.state == IslandPhase::kPaused &&
                        now.agent.wish == Wish::kRun && pause != now.agent.paused_by.end();
    return pauses ? sentence_of(*pause) : std::string();
  }
  bool pauses_by(OwnersRule rule) { return !pause_by(rule).empty(); }

 private:
  std::unique_ptr<Agent> agent_;
  AbortSignal end_;
  std::jthread loop_;
};

}  // namespace atl::test
