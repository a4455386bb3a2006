// A whole run of processes that die at once and are started again: `atoll hub serve` and an `atoll-trainer`, or an
// `atoll agent` with its trainer, an island. One thread. Methods abort the test program when what the test stands on
// fails.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/control/hub_state.h"
#include "net/disk/checkpoint_directory.h"
#include "tests/process/agent_service.h"
#include "tests/process/run_parts.h"
#include "tests/process/scene.h"

namespace atl::test {

inline constexpr std::chrono::seconds kRunLimit{120};    // for anything; a hang, not a slow machine
inline constexpr std::chrono::seconds kRunLostAfter{5};  // then the hub says what is missing

class WholeRun {
 public:
  enum class Parents { kNone, kAgents };  // of the trainers

  // Hub and homes are there; nobody runs. `base_model`: a directory of a model with which it begins, the run's own
  // shape.
  WholeRun(RunConfig run, std::uint32_t islands, Parents parents = Parents::kNone,
           const std::filesystem::path& base_model = {});
  ~WholeRun() { kill_all(); }

  Scene& scene() { return scene_; }
  const std::vector<IslandHome>& homes() const { return homes_; }
  const std::vector<std::unique_ptr<QProcess>>& trainers() const { return trainers_; }  // without agents
  HubHome hub_home() const { return HubHome{scene_.path("hub")}; }

  void start_all();
  void start_hub();
  void start_island(std::size_t island);
  void kill_all();  // in the same instant, whoever is there
  // The same, of processes that are known already: what an instant is, where looking for them would take longer than
  // the moment that is meant.
  void kill_all(const std::vector<pid_t>& known);
  std::vector<pid_t> processes() const;

  // As `atoll hub status --json` says.
  HubState state() const;
  // False when the run stands still though so many islands are there, or when nothing happens for kRunLimit.
  bool wait_for_step(std::uint32_t step, HubState& last, std::uint32_t islands) const;
  bool wait_for_step(std::uint32_t step, HubState& last) const {
    return wait_for_step(step, last, static_cast<std::uint32_t>(homes_.size()));
  }
  // Gives the command that a run which stands still names; to which outer step it went back. Nothing: no such command
  // was named, or it did not help.
  std::optional<std::uint32_t> go_back_as_told(const HubState& state) const;
  // As the hub's disk has it.
  std::optional<std::string> hash_of(OuterStep step) const;

 private:
  const Parents parents_;
  Scene scene_;
  std::vector<IslandHome> homes_;
  bool hub_serves_ = false;
  std::vector<std::unique_ptr<QProcess>> trainers_;    // as they were started
  std::vector<std::unique_ptr<AgentService>> agents_;  // by home
};

}  // namespace atl::test
