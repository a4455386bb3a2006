// The fields of events, for both directions (control_archive.h). For .cpp files of net/control, and their tests.
#pragma once

#include "net/control/events.h"
#include "net/control/state_fields.h"

namespace atl {

inline constexpr std::size_t kMaxRingMembers = 1024;
inline constexpr std::size_t kMaxTaskFigures = 16;

template <class Archive>
void fields(Archive& archive, event::StateChanged& e) {
  fields(archive, e.state);
}
template <class Archive>
void fields(Archive& archive, event::RoundBegin& e) {
  fields(archive, e.state);
  archive.told("fragment", e.fragment);
}
template <class Archive>
void fields(Archive& archive, event::Step& e) {
  fields(archive, e.state);
}
template <class Archive>
void fields(Archive& archive, event::Syncing& e) {
  fields(archive, e.state);
}
template <class Archive>
void fields(Archive& archive, event::SyncDone& e) {
  fields(archive, e.state);
  archive.told("fragment", e.fragment);
}
template <class Archive>
void fields(Archive& archive, event::CheckpointSaved& e) {
  fields(archive, e.state);
}
template <class Archive>
void fields(Archive& archive, event::TrainerError& e) {
  fields(archive, e.state);
}

template <class Archive>
void fields(Archive& archive, event::RoundDone& e) {
  archive.field("round", e.round);
  archive.told("fragment", e.fragment);
  archive.told("islands", e.islands);
  archive.field("accepted", e.accepted);
  archive.known("tokens", e.tokens);
  archive.known("bytes_sent", e.bytes_sent);
  archive.known("inner_seconds", e.inner_seconds);
  archive.known("sync_seconds", e.sync_seconds);
  archive.known("loss_nats", e.loss_nats);
  archive.told("state_hash", e.state_hash);
}

template <class Archive>
void fields(Archive& archive, event::Validated& e) {
  archive.field("outer_step", e.outer_step);
  archive.field("loss_nats", e.loss_nats);
}

template <class Archive>
void fields(Archive& archive, event::TaskFigure& figure) {
  archive.field("metric", figure.metric);
  archive.field("value", figure.value);
}
template <class Archive>
void fields(Archive& archive, event::Evaluated& e) {
  archive.field("outer_step", e.outer_step);
  archive.field("task", e.task);
  archive.list("figures", e.figures, kMaxTaskFigures);
}

template <class Archive>
void fields(Archive& archive, event::PastTold& e) {
  archive.field("run", e.run);
  archive.field("inner_steps", e.inner_steps);
  archive.list("rounds", e.past.rounds, kMaxPastRounds);
  archive.list("validations", e.past.validations, kMaxPastValidations);
  archive.require(validate(e.past).ok(), "these are no rounds and validations of a run");
}

template <class Archive>
void fields(Archive& archive, event::RingMember& member) {
  archive.field("island", member.island);
  archive.told("name", member.name);
  archive.told("tokens", member.tokens);
  archive.or_null("edge_bytes_per_second", member.edge_bytes_per_second);
}

// `phase` tells the three events apart that are named sync.phase.
inline constexpr const char* kPhaseField = "phase";
inline constexpr const char* kAttemptBeginsWord = "begin";

template <class Archive>
void fields(Archive& archive, event::AttemptBegin& e) {
  archive.fixed(kPhaseField, kAttemptBeginsWord);
  archive.field("round", e.round);
  archive.told("fragment", e.fragment);
  archive.told("attempt", e.attempt);
  archive.list("ring", e.ring, kMaxRingMembers);
  archive.told_if("directly", e.directly);
}
template <class Archive>
void fields(Archive& archive, event::SyncPhase& e) {
  archive.field("round", e.round);
  archive.told("fragment", e.fragment);
  archive.field("attempt", e.attempt);
  archive.field(kPhaseField, e.part);
  archive.field("seconds", e.seconds);
  archive.field("bytes", e.bytes);
  archive.require(std::isfinite(e.seconds) && e.seconds >= 0, "field 'seconds' is no time");
}
template <class Archive>
void fields(Archive& archive, event::SyncProgress& e) {
  archive.field("round", e.round);
  archive.told("fragment", e.fragment);
  archive.field("attempt", e.attempt);
  archive.field("phase", e.part);
  archive.field("bytes_done", e.bytes_done);
  archive.field("bytes_total", e.bytes_total);
  archive.told("step", e.step);
  archive.told("steps", e.steps);
  archive.told("sent_bytes_per_second", e.sent_bytes_per_second);
  archive.told("received_bytes_per_second", e.received_bytes_per_second);
}

template <class Archive>
void fields(Archive& archive, event::Transfer& e) {
  archive.field("what", e.what);
  archive.field("status", e.status);
  archive.told("done_bytes", e.done_bytes);
  archive.told("total_bytes", e.total_bytes);
  archive.known("bytes_per_second", e.bytes_per_second);
  archive.known("seconds_left", e.seconds_left);
  archive.told_if_any("text", e.text);
}
template <class Archive>
void fields(Archive& archive, event::HubLink& e) {
  archive.field("up", e.up);
  archive.told_if_any("text", e.text);
  archive.known("tries_for_seconds", e.tries_for_seconds);
}
template <class Archive>
void fields(Archive& archive, event::PeerUp& e) {
  archive.field("island", e.island);
  archive.told("name", e.name);
  archive.told("address", e.address);
  archive.told("version", e.version);
  archive.told("region", e.region);
}
template <class Archive>
void fields(Archive& archive, event::PeerDown& e) {
  archive.field("island", e.island);
  archive.told("name", e.name);
  archive.told("address", e.address);
  archive.told("version", e.version);
  archive.told("region", e.region);
}
template <class Archive>
void fields(Archive& archive, event::PeerLink& e) {
  archive.field("island", e.island);
  archive.known("rtt_seconds", e.rtt_seconds);
  archive.known("bytes_per_second", e.bytes_per_second);
  archive.known("down_bytes_per_second", e.down_bytes_per_second);
  archive.told_if("failed", e.failed);
}

template <class Archive>
void fields(Archive& archive, RunCosts& costs) {
  archive.told("round_bytes", costs.round);
  archive.told("join_bytes", costs.join);
  archive.told("disk_bytes", costs.disk);
  archive.told("memory_bytes", costs.memory);
  archive.told("memory_beside_gpus_bytes", costs.memory_beside_gpus);
  archive.told("gpu_memory_bytes", costs.gpu_memory);
}
template <class Archive>
void fields(Archive& archive, event::InviteLooked& e) {
  archive.field("ok", e.ok);
  archive.told("invite", e.invite);
  if (e.ok || !Archive::kWrites) {
    archive.told("address", e.address);
    archive.told("run_id", e.run_id);
    archive.told("run_name", e.run_name);
    archive.told("operator", e.operator_name);
    archive.told("model", e.model);
    archive.told("parameters", e.parameters);
    archive.part_if_any("costs", e.costs);
    archive.told("pin", e.pin);
  }
  archive.told_if_any("code", e.code);
  archive.told_if_any("message", e.message);
}
template <class Archive>
void fields(Archive& archive, event::JoinProgress& e) {
  archive.field("stage", e.stage);
  archive.field("status", e.status);
  archive.known("done_bytes", e.done_bytes);
  archive.known("total_bytes", e.total_bytes);
  archive.known("bytes_per_second", e.bytes_per_second);
  archive.known("seconds_left", e.seconds_left);
  archive.told_if_any("text", e.text);
}
template <class Archive>
void fields(Archive& archive, event::JoinDone& e) {
  archive.field("ok", e.ok);
  archive.told_if_any("text", e.text);
  archive.told_if_any("warning", e.warning);
  archive.told_if_any("code", e.code);
  archive.told_if_any("message", e.message);
}

template <class Archive>
void fields(Archive& archive, event::CheckRowDone& e) {
  archive.check_row("row", e.row);
}
template <class Archive>
void fields(Archive& archive, event::CheckDone& e) {
  archive.always("done");
  archive.check_report("report", e.report);
  archive.told_if_any("error", e.error);
}
template <class Archive>
void fields(Archive& archive, event::GpuSampled& e) {
  archive.list("gpus", e.gpus, kMaxSampledGpus);
  if constexpr (Archive::kReads) number_gpus(e.gpus);
}
template <class Archive>
void fields(Archive& archive, event::GpuAlert& e) {
  archive.field("kind", e.kind);
  archive.known("gpu", e.gpu);
  archive.known("celsius", e.celsius);
  archive.known("cap_celsius", e.cap_celsius);
  archive.known("pauses", e.pauses);
  archive.known("cap_watts", e.cap_watts);
  archive.told_if_any("text", e.text);
}

}  // namespace atl
