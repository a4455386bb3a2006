#include "net/check/node_probes.h"

#include "net/check/probe_disk.h"
#include "net/check/probe_host.h"

namespace atl {
namespace {

constexpr double kQuickMatmulSeconds = 2;  // where a run insists on it

}  // namespace

void NodeProbes::learn_run(NodeFacts&, CheckPolicy&) {}

void NodeProbes::look_at_host(HostFacts& host) { host = probe_host(); }

void NodeProbes::measure_disk(DiskFacts& disk) {
  DiskProbe probe;
  if (!options_.full) probe = {64u << 20, Deadline::after(std::chrono::seconds(5))};
  disk = probe_disk(options_.home, probe, abort_);
}

void NodeProbes::list_gpus(GpuFacts& gpu) {
  if (!options_.gpu_program_missing.empty()) {
    gpu.problem = options_.gpu_program_missing;
    return;
  }
  gpu = atl::list_gpus(options_.gpu, abort_);
}

void NodeProbes::measure_network(NetFacts& net) { net.not_measured = options_.no_network; }

void NodeProbes::measure_gpus(GpuFacts& gpu) {
  gpu.not_measured = options_.gpus_in_use;
  if (!gpu.not_measured.empty()) return;
  GpuProbe probe = options_.gpu;
  if (!options_.full) probe.matmul_seconds = kQuickMatmulSeconds;
  atl::measure_gpus(probe, abort_, gpu);
}

}  // namespace atl
