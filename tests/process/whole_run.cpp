#include "tests/process/whole_run.h"

#include <QtCore/QThread>
#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "net/base/deadline.h"
#include "net/hub/base_model.h"
#include "net/hub/hub.h"
#include "net/hub/hub_store.h"
#include "tests/fakes/processes.h"

namespace atl::test {

WholeRun::WholeRun(RunConfig run, std::uint32_t islands, Parents parents, const std::filesystem::path& base_model)
    : parents_(parents) {
  make_dataset(scene_.path("text.txt"), scene_.path("data"));
  run.name = "test run";
  run.lost_after = kRunLostAfter;
  const AbortSignal never;
  std::optional<BaseModel> begins_with;
  if (!base_model.empty()) begins_with.emplace(require(BaseModel::open(base_model, never)));
  HubInitOptions options{.directory = scene_.path("hub"), .data = {{scene_.path("data")}}, .run = std::move(run)};
  options.base_model = begins_with ? &*begins_with : nullptr;
  run = require(hub_init(options));
  scene_.serve_hub();  // for the invites
  for (std::uint32_t i = 0; i < islands; ++i) {
    const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
    homes_.push_back(make_island_home({.directory = scene_.path("islands"),
                                       .dataset = scene_.path("data"),
                                       .invite = require(decode_invite(scene_.invite(), now)),
                                       .display_name = "island " + std::to_string(i),
                                       .bind = {"127.0.0.1", 0}},
                                      run));
  }
  agents_.resize(islands);
  scene_.kill_hub();
}

void WholeRun::start_all() {
  start_hub();
  for (std::size_t i = 0; i < homes_.size(); ++i) start_island(i);
}

void WholeRun::start_hub() {
  scene_.serve_hub();
  hub_serves_ = true;
}

void WholeRun::start_island(std::size_t island) {
  if (parents_ == Parents::kNone) {
    trainers_.push_back(start_trainer(homes_[island]));
  } else if (agents_[island]) {
    agents_[island]->look();
  } else {
    agents_[island] = std::make_unique<AgentService>(homes_[island]);
  }
}

std::vector<pid_t> WholeRun::processes() const { return processes_of(scene_.path("")); }

void WholeRun::kill_all() { kill_all(processes()); }

void WholeRun::kill_all(const std::vector<pid_t>& known) {
  for (const pid_t pid : known) ::kill(pid, SIGKILL);
  // Whom one of them has started meanwhile.
  for (auto left = processes(); !left.empty(); left = processes()) {
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    QThread::msleep(1);
  }
  if (std::exchange(hub_serves_, false)) scene_.kill_hub();
  for (const auto& agent : agents_) {
    if (agent) agent->kill();
  }
  for (const auto& trainer : trainers_) trainer->waitForFinished();
  trainers_.clear();
}

HubState WholeRun::state() const {
  ProgramOutcome outcome;
  const bool answered = wait_for([&] {
    outcome = scene_.run({"hub", "status", "--home", hub_home().directory.string(), "--json"});
    return outcome.exit_code == 0;
  });
  if (!answered) qFatal("hub status: %s", outcome.err.c_str());
  return require(HubState::from_json(nlohmann::json::parse(outcome.out)));
}

bool WholeRun::wait_for_step(std::uint32_t step, HubState& last, std::uint32_t islands) const {
  const Deadline deadline = Deadline::after(kRunLimit);
  for (;;) {
    last = state();
    if (last.outer_step >= step) return true;
    const auto here = std::ranges::count_if(last.islands, [](const HubState::Island& island) {
      return island.state == HubIslandState::kTraining || island.state == HubIslandState::kRecovering;
    });
    if ((last.standstill && here >= islands) || deadline.expired()) return false;
    QThread::msleep(50);
  }
}

std::optional<std::uint32_t> WholeRun::go_back_as_told(const HubState& state) const {
  if (!state.standstill || !state.standstill->back_to) return std::nullopt;
  const std::string to = std::to_string(*state.standstill->back_to);
  if (state.standstill->text.find("`atoll hub rollback --to " + to + "`") == std::string::npos) return std::nullopt;
  const ProgramOutcome back = scene_.run({"hub", "rollback", "--home", hub_home().directory.string(), "--to", to});
  if (back.exit_code != 0) return std::nullopt;
  return state.standstill->back_to;
}

std::optional<std::string> WholeRun::hash_of(OuterStep step) const {
  const Result<std::string> hash = require(HubStore::open(hub_home().database()))->state_hash(step);
  return hash.ok() ? std::optional(*hash) : std::nullopt;
}

}  // namespace atl::test
