// One island of the demo: an `atoll join` process, with its `atoll-trainer`, in a home of its own. Main thread.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "net/base/child_process.h"
#include "net/control/home.h"
#include "net/control/island_state.h"

namespace atl {

class DemoIsland {
 public:
  static Result<DemoIsland> start(const std::string& name, const std::filesystem::path& home,
                                  const std::filesystem::path& invite_file);

  const std::string& name() const { return name_; }
  bool running() { return process_.poll() == std::nullopt; }
  // It came to its end as it should: the run is over.
  bool done() { return process_.poll() == 0; }
  std::filesystem::path log() const { return home_.trainer_log(); }

  // Asks its trainer; kNotRunning while it has not started yet.
  Result<IslandState> state() const;
  // The outer parameters that it holds, as a HuggingFace directory.
  // Which outer step that was.
  Result<std::uint32_t> export_model(const std::filesystem::path& directory) const;
  // The same once it has ended, from its checkpoint.
  Result<std::uint32_t> export_checkpoint(const std::filesystem::path& directory) const;

  void ask_to_end() { process_.send_signal(15); }
  void wait_for_end(Deadline deadline) { process_.terminate(deadline); }
  // As when the power goes: trainer and all, without a word.
  Status kill();
  // The shards that it fetched are large and can be fetched again.
  void remove_data();

 private:
  DemoIsland(std::string name, IslandHome home, ChildProcess process)
      : name_(std::move(name)), home_(std::move(home)), process_(std::move(process)) {}

  std::string name_;
  IslandHome home_;
  ChildProcess process_;
};

}  // namespace atl
