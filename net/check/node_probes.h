// The probes of a real node: this machine, its GPUs through the child program, and the run's hub. Blocks; one thread.
#pragma once

#include <filesystem>
#include <string>

#include "net/check/gpu_probe.h"
#include "net/check/node_check.h"
#include "net/check/probe_network.h"
#include "net/check/run_needs.h"

namespace atl {

struct NodeProbeOptions {
  std::filesystem::path home;  // where the island keeps, or will keep, its files
  bool full = false;
  GpuProbe gpu;
  std::string gpu_program_missing;  // why there is no program to ask the GPUs; empty: there is
  std::string gpus_in_use;          // by what; empty: they may be measured
  std::string no_network;           // why the hub cannot be asked; empty: as `network` says
  NetworkProbe network;
  std::optional<RunNeeds> run;                // of one that was not joined, as far as its hub tells who holds an invite
  IslandShape shape;                          // how it would compute
  DeviceChoice device = DeviceChoice::kAuto;  // on what
};

class NodeProbes : public CheckProbes {
 public:
  // `abort` outlives it.
  NodeProbes(NodeProbeOptions options, const AbortSignal& abort) : options_(std::move(options)), abort_(abort) {}

  void learn_run(NodeFacts& facts, CheckPolicy& policy) override;
  void look_at_host(HostFacts& host) override;
  void measure_disk(DiskFacts& disk) override;
  void list_gpus(GpuFacts& gpu) override;
  void measure_network(NetFacts& net) override;
  void measure_gpus(GpuFacts& gpu) override;

 private:
  const NodeProbeOptions options_;
  const AbortSignal& abort_;
  // What the hub said when it was asked what the run asks, or why it did not.
  Result<CheckAbout> about_ = Error{ErrorCode::kNotFound, "the hub was not asked"};
  Address reached_;
};

}  // namespace atl
