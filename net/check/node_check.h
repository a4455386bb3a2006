// The node check: asks probes for facts, group by group, and tells each row as soon as its facts are there. What
// measures is behind an interface, so that tests bring facts of their own. Blocks; one thread.
#pragma once

#include <functional>
#include <string>

#include "net/base/abort_signal.h"
#include "net/check/judge.h"

namespace atl {

class CheckProbes {
 public:
  virtual ~CheckProbes() = default;
  // What the run asks for: sets facts.run and the policy where a run is known and its hub answers.
  virtual void learn_run(NodeFacts& facts, CheckPolicy& policy) = 0;
  virtual void look_at_host(HostFacts& host) = 0;
  virtual void measure_disk(DiskFacts& disk) = 0;
  virtual void list_gpus(GpuFacts& gpu) = 0;
  virtual void measure_network(NetFacts& net) = 0;
  virtual void measure_gpus(GpuFacts& gpu) = 0;
};

struct CheckPlan {
  bool full = false;
  CheckPolicy policy;  // what learn_run finds takes its place
};

// kAborted when `abort` was raised before the end. `on_row` is called as rows come.
Result<CheckReport> check_node(CheckProbes& probes, const CheckPlan& plan, const AbortSignal& abort,
                               const std::function<void(const CheckRow&)>& on_row);

}  // namespace atl
