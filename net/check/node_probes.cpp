#include "net/check/node_probes.h"

#include "net/check/gpu_compute.h"
#include "net/check/probe_disk.h"
#include "net/check/probe_host.h"
#include "net/control/home.h"

namespace atl {
namespace {

constexpr double kQuickMatmulSeconds = 2;  // where a run insists on it

}  // namespace

void NodeProbes::learn_run(NodeFacts& facts, CheckPolicy& policy) {
  facts.device = options_.device;
  facts.gpu_kernels = gpus_compute();
  facts.run = options_.run;
  if (!options_.no_network.empty() || !options_.network.identity) return;
  about_ = ask_about_run(options_.network, abort_, reached_);
  if (!about_.ok()) return;
  auto needs = needs_of(about_->run, options_.shape);
  if (!needs.ok()) {
    about_ = needs.error();
    return;
  }
  auto own_policy = parse_check_policy(about_->run.check_json);
  if (!own_policy.ok()) {
    about_ = own_policy.error().with_context("update atoll");
    return;
  }
  policy = std::move(*own_policy);
  needs->inner_seconds = about_->inner_seconds;
  facts.run = std::move(*needs);
}

void NodeProbes::look_at_host(HostFacts& host) {
  host = probe_host();
  if (options_.network.trainer_listens) host.ram_available_bytes.reset();  // it holds what it needs already
}

void NodeProbes::measure_disk(DiskFacts& disk) {
  DiskProbe probe;
  if (!options_.full) probe = {64u << 20, Deadline::after(std::chrono::seconds(5))};
  disk = probe_disk(options_.home, probe, abort_);
  const IslandHome home{options_.home};
  disk.held_bytes = bytes_in(home.data()) + bytes_in(home.checkpoint());
}

void NodeProbes::list_gpus(GpuFacts& gpu) {
  if (!options_.gpu_program_missing.empty()) {
    gpu.problem = options_.gpu_program_missing;
    return;
  }
  gpu = atl::list_gpus(options_.gpu, abort_);
  find_gpu_libraries(options_.gpu, abort_, gpu);
}

void NodeProbes::measure_network(NetFacts& net) {
  net.not_measured = options_.no_network;
  if (net.not_measured.empty()) net = probe_network(options_.network, about_, reached_, abort_);
}

void NodeProbes::measure_gpus(GpuFacts& gpu) {
  gpu.not_measured = options_.gpus_in_use;
  if (!gpu.not_measured.empty()) return;
  GpuProbe probe = options_.gpu;
  if (!options_.full) probe.matmul_seconds = kQuickMatmulSeconds;
  atl::measure_gpus(probe, abort_, gpu);
}

}  // namespace atl
