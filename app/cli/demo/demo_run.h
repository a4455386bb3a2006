// The demo: a hub and its islands, each a process of its own, from the text to the summary. Main thread; blocks until
// the run is over or the context's interrupt is raised. When it is destroyed, nothing that it started is left.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "app/cli/command.h"
#include "app/cli/demo/demo_history.h"
#include "app/cli/demo/demo_island.h"
#include "app/cli/demo/demo_options.h"
#include "app/cli/demo/demo_summary.h"
#include "app/cli/demo/live_display.h"
#include "net/control/control_client.h"

namespace atl {

class DemoRun {
 public:
  DemoRun(DemoOptions options, CommandContext& context);
  ~DemoRun();

  Status run();

 private:
  Status set_up();
  Status make_hub();
  Status start_hub();
  Status start_island();
  Status train();
  // One look at everything. True when the run has come to its end.
  Result<bool> tick();
  Status check_processes();
  Status act_out_kill();
  Status look_at_hub();
  bool limit_reached() const;
  Status wait_for_last_figures();
  // Takes the model of the outer step with which the history ends. True once that is done.
  bool take_model();
  void take_last_figures();
  void wait_a_little() const;
  void show();
  void say(const std::string& event);
  void stop_all();
  Status finish();

  double now() const { return Seconds(Clock::now() - began_).count(); }
  double fraction_done() const;

  DemoOptions options_;
  CommandContext& context_;
  const Clock::time_point began_ = Clock::now();
  std::filesystem::path directory_;
  DemoRunFacts facts_;
  DemoHistory history_;
  std::optional<ChildProcess> hub_;
  std::unique_ptr<ControlClient> hub_client_;
  std::vector<DemoIsland> islands_;
  std::uint32_t started_islands_ = 0;
  std::uint32_t printed_rounds_ = 0;
  std::size_t printed_events_ = 0;
  std::optional<std::uint32_t> killed_in_round_;
  bool replaced_ = false;
  bool ending_ = false;                      // the limit is reached; only the last figures are missing
  std::optional<std::uint32_t> model_step_;  // of the exported model
  std::optional<LiveDisplay> display_;
};

}  // namespace atl
