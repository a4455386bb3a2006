// Runs a short-lived child that measures something which may hang for good, and reads its lines. A child that does not
// end by the deadline is killed; one that cannot even be killed (asleep in a driver) is left behind: this process goes
// on. Blocks; any thread that lives as long as the call.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/deadline.h"
#include "net/base/result.h"

namespace atl {

struct ProbeChild {
  std::filesystem::path program;
  std::vector<std::string> arguments;
  Deadline deadline;
  std::size_t max_bytes = 1u << 20;  // of all it writes
};

// Each line of its standard output. Ok when it exits with 0; kTimeout, kAborted, kCorrupt when it writes too much,
// kInternal when it exits otherwise, with its last words (standard error) or the signal; kNotFound without a program.
Status run_probe_child(const ProbeChild& child, const AbortSignal& abort,
                       const std::function<void(std::string_view line)>& on_line);

}  // namespace atl
