// The node check as the commands use it: which probes, for which home, and how rows are shown. One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/console.h"
#include "net/base/abort_signal.h"
#include "net/check/check_task.h"
#include "net/control/home.h"

namespace atl {

struct CheckRequest {
  AgentHome home;
  bool full = false;
  std::optional<Invite> invite = {};        // before joining: of the run that it is for; no use of it
  std::optional<DeviceChoice> device = {};  // of a join under way; none: as it was joined, else as configured
};

// Measures, calls `on_row` as rows come, and keeps the report in the home of an island when its run was known. One of
// before the join says no run, whose members alone may measure all.
Result<CheckReport> check_this_node(const CheckRequest& request, const AbortSignal& interrupt,
                                    const std::function<void(const CheckRow&)>& on_row);

// The quick or full check of this home, for an agent.
CheckTask::Check node_check_of(const AgentHome& home);

// A row in one line, or two where the terminal is narrow.
void print_row(const CheckRow& row, Console& console);
// "1 fail, 2 warn  (exit 6)"
void print_summary(const CheckReport& report, int exit_code, Console& console);

}  // namespace atl
