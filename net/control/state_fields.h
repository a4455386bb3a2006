// The fields of states, for both directions (control_archive.h). For .cpp files of net/control, and their tests.
#pragma once

#include "net/control/control_archive.h"
#include "net/control/node_state.h"

namespace atl {

template <class Archive>
void fields(Archive& archive, StepTimes& times) {
  archive.field("total", times.total);
  archive.field("data", times.data);
  archive.known("matmul", times.matmul);
  archive.known("attention", times.attention);
  archive.known("elementwise", times.elementwise);
  archive.known("loss", times.loss);
  archive.known("optimiser", times.optimiser);
  archive.known("communication", times.communication);
}

template <class Archive>
void fields(Archive& archive, IslandState& s) {
  archive.field("state", s.state);
  archive.field("island", s.island);
  archive.field("name", s.name);
  archive.field("run_id", s.run_id);
  archive.field("run_name", s.run_name);
  archive.field("pid", s.pid);
  archive.field("parameters", s.parameters);
  archive.or_null("micro_batch", s.micro_batch);
  archive.or_null("memory_bytes", s.memory_bytes);
  archive.field("round", s.round);
  archive.field("inner_step", s.inner_step);
  archive.field("inner_steps", s.inner_steps);
  archive.field("loss_nats", s.loss_nats);
  archive.or_null("validation_loss_nats", s.validation_loss_nats);
  archive.field("tokens_per_second", s.tokens_per_second);
  archive.or_null("mfu", s.mfu);
  archive.or_null("learning_rate", s.learning_rate);
  archive.or_null("gradient_norm", s.gradient_norm);
  archive.or_null("flops_per_second", s.flops_per_second);
  archive.part_or_null("step_seconds", s.step_seconds);
  archive.or_null("next_sync_seconds", s.next_sync_seconds);
  archive.field("islands_live", s.islands_live);
  archive.field("islands_total", s.islands_total);
  archive.known("islands_needed", s.islands_needed);
  archive.or_null("last_sync_seconds", s.last_sync_seconds);
  archive.or_null("accepted_round", s.accepted_round);
  archive.told("passes", s.passes);
  archive.field("tokens", s.tokens);
  archive.field("bytes_sent", s.bytes_sent);
  archive.field("inner_seconds", s.inner_seconds);
  archive.field("sync_seconds", s.sync_seconds);
  archive.known("rounds_accepted", s.rounds_accepted);
  archive.field("outer_step", s.outer_step);
  archive.known("safe_outer_step", s.safe_outer_step);
  archive.field("state_hash", s.state_hash);
  archive.field("error", s.error);
}

template <class Archive>
void fields(Archive& archive, GpuSample& gpu) {
  if constexpr (Archive::kReads) gpu.index = GpuSample::kNotSaid;
  archive.told("index", gpu.index);
  archive.told("name", gpu.name);
  archive.known("utilisation", gpu.utilisation);
  archive.known("memory_bytes", gpu.memory_bytes);
  archive.known("memory_total_bytes", gpu.memory_total_bytes);
  archive.known("power_watts", gpu.power_watts);
  archive.known("power_limit_watts", gpu.power_limit_watts);
  archive.known("temperature_celsius", gpu.temperature_celsius);
  archive.known("sm_clock_hertz", gpu.sm_clock_hertz);
  archive.told_if_any("throttling", gpu.throttling);
  archive.known("ecc_errors", gpu.ecc_errors);
  archive.known("nvlink_bytes_per_second", gpu.nvlink_bytes_per_second);
}

// After a list of them was read: agents of before say no index.
inline void number_gpus(std::vector<GpuSample>& gpus) {
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (gpus[i].index == GpuSample::kNotSaid) gpus[i].index = static_cast<std::uint32_t>(i);
  }
}

template <class Archive>
void fields(Archive& archive, TrainerExitView& exit) {
  archive.field("cause", exit.cause);
  archive.field("text", exit.text);
  archive.field("unix_seconds", exit.time);
  archive.exit_status("status", exit.status);
}

template <class Archive>
void fields(Archive& archive, Contribution& contribution) {
  archive.field("tokens", contribution.tokens);
  archive.field("rounds_accepted", contribution.rounds_accepted);
  archive.field("bytes_sent", contribution.bytes_sent);
  archive.field("seconds", contribution.seconds);
}

template <class Archive>
void fields(Archive& archive, ContributionView& contributed) {
  archive.part("run", contributed.run);
  archive.part("life", contributed.life);
}

template <class Archive>
void fields(Archive& archive, TransferCapView& cap) {
  archive.or_null("bytes_per_second", cap.bytes_per_second);
  archive.moment("until_unix_seconds", cap.until);
}

template <class Archive>
void fields(Archive& archive, PausedBy& pause) {
  archive.field("rule", pause.rule);
  archive.field("why", pause.why);
  archive.field("until", pause.until);
  archive.moment("until_unix_seconds", pause.until_seconds);
  archive.told_if_any("advice", pause.advice);
}

template <class Archive>
void fields(Archive& archive, GpuPause& pause) {
  archive.field("gpu", pause.gpu);
  archive.moment("until_unix_seconds", pause.until_seconds);
}

template <class Archive>
void fields(Archive& archive, AgentView& agent) {
  archive.or_null("pid", agent.pid);
  archive.told("version", agent.version);
  archive.told("wish", agent.wish);
  archive.told("followed", agent.followed);
  archive.moment("since_unix_seconds", agent.since);
  archive.moment("paused_until_unix_seconds", agent.paused_until);
  archive.told("seconds", agent.seconds);
  archive.told("trainer_pid", agent.trainer_pid);
  archive.told("taken_over", agent.taken_over);
  archive.or_null("heard_seconds_ago", agent.heard_seconds_ago);
  archive.told("restarts", agent.restarts);
  archive.or_null("restart_in_seconds", agent.restart_in_seconds);
  archive.part_or_null("last_exit", agent.last_exit);
  archive.told("warning", agent.warning);
  archive.list_if_any("paused_by", agent.paused_by, kMaxPauses);
  archive.list_if_any("paused_gpus", agent.paused_gpus, kMaxSampledGpus);
  archive.part_if_any("contributed", agent.contributed);
  archive.part_if_any("upload_cap", agent.upload_cap);
  archive.part_if_any("download_cap", agent.download_cap);
}

template <class Archive>
void fields(Archive& archive, NodeState& state) {
  fields(archive, state.island);
  archive.known("disk_free_bytes", state.disk_free_bytes);
  archive.list_if_any("gpus", state.gpus, kMaxSampledGpus);
  archive.part_if("agent", state.has_agent, state.agent);
  if constexpr (Archive::kReads) number_gpus(state.gpus);
}

}  // namespace atl
