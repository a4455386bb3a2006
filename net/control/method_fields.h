// The fields of methods' parameters and answers, for both directions (control_archive.h). For .cpp files of
// net/control, and their tests.
#pragma once

#include "net/control/control_archive.h"
#include "net/control/methods.h"
#include "net/wire/invite.h"

namespace atl {

inline constexpr std::size_t kMaxParamText = 512;     // bytes
inline constexpr std::size_t kMaxWeightsText = 8192;  // of 64 sources

template <class Archive>
void fields(Archive&, method::StateGet&) {}
template <class Archive>
void fields(Archive&, method::RunDecayCancel&) {}
template <class Archive>
void fields(Archive&, method::RunMixtureCancel&) {}
template <class Archive>
void fields(Archive& archive, method::Pause& m) {
  archive.known("for_seconds", m.for_seconds);
}
template <class Archive>
void fields(Archive&, method::Resume&) {}
template <class Archive>
void fields(Archive&, method::Finish&) {}
template <class Archive>
void fields(Archive& archive, method::Stop& m) {
  archive.told("now", m.now);
}
template <class Archive>
void fields(Archive& archive, method::Leave& m) {
  archive.told("force", m.force);
}
template <class Archive>
void fields(Archive& archive, method::GpuPause& m) {
  archive.field("gpu", m.gpu);
  archive.known("for_seconds", m.for_seconds);
}
template <class Archive>
void fields(Archive& archive, method::GpuResume& m) {
  archive.field("gpu", m.gpu);
}
template <class Archive>
void fields(Archive& archive, method::GpusTaken& m) {
  archive.told_if_any("gpus", m.gpus);
  archive.field("kept", m.kept);
  archive.told_if_any("warning", m.warning);
}
template <class Archive>
void fields(Archive& archive, method::Stake& m) {
  archive.field("round", m.round);
  archive.field("inner_steps", m.inner_steps);
  archive.field("of", m.of);
  archive.or_null("round_ends_in_seconds", m.round_ends_in_seconds);
}
template <class Archive>
void fields(Archive& archive, method::WishTaken& m) {
  archive.field("wish", m.wish);
  archive.field("kept", m.kept);
  archive.known("paused_until_unix_seconds", m.paused_until_unix_seconds);
  archive.told_if_any("warning", m.warning);
  archive.part_or_null("at_stake", m.at_stake);
}
template <class Archive>
void fields(Archive& archive, method::Stopping&) {
  archive.always("stopping");
}

template <class Archive>
void fields(Archive& archive, method::Join& m) {
  archive.raw_if_any("invite", m.invite, kMaxInviteText);
  archive.raw_if_any("name", m.name, kMaxParamText);
  archive.raw_if_any("listen", m.listen, kMaxParamText);
  archive.raw_if_any("advertise", m.advertise, kMaxParamText);
  archive.raw_if_any("gpus", m.gpus, kMaxParamText);
  archive.raw_if_any("device", m.device, kMaxParamText);
  archive.raw_if_any("precision", m.precision, kMaxParamText);
  archive.known("local_ranks", m.local_ranks);
  archive.known("threads", m.threads);
  archive.known("micro_batch", m.micro_batch);
  archive.told_if("leave", m.leave);
}
template <class Archive>
void fields(Archive&, method::JoinCancel&) {}
template <class Archive>
void fields(Archive& archive, method::InviteLook& m) {
  archive.bounded("invite", m.invite, kMaxInviteText);
}
template <class Archive>
void fields(Archive& archive, method::CheckRun& m) {
  archive.told("full", m.full);
  archive.raw_if_any("invite", m.invite, kMaxInviteText);
}
template <class Archive>
void fields(Archive& archive, method::Started&) {
  archive.always("started");
}
template <class Archive>
void fields(Archive& archive, method::Cancelled& m) {
  archive.field("cancelled", m.cancelled);
  archive.told_if_any("warning", m.warning);
}

template <class Archive>
void fields(Archive& archive, TransferCaps& caps) {
  archive.or_null("upload_bytes_per_second", caps.upload);
  archive.or_null("download_bytes_per_second", caps.download);
  archive.require(!caps.upload || *caps.upload > 0, "field 'upload_bytes_per_second' is no rate");
  archive.require(!caps.download || *caps.download > 0, "field 'download_bytes_per_second' is no rate");
}
template <class Archive>
void fields(Archive& archive, method::AgentAlive& m) {
  archive.part_if_any("caps", m.caps);
}
template <class Archive>
void fields(Archive& archive, method::ModelExport& m) {
  archive.bounded("directory", m.directory, kMaxControlText);
  archive.told_if_any("dtype", m.dtype);
  archive.told("max_shard_bytes", m.max_shard_bytes);
}
template <class Archive>
void fields(Archive& archive, method::ModelExported& m) {
  archive.bounded("directory", m.directory, kMaxControlText);
  archive.field("outer_step", m.outer_step);
}

template <class Archive>
void fields(Archive& archive, method::IslandSendAway& m) {
  archive.bounded("island", m.island, kMaxParamText);
}
template <class Archive>
void fields(Archive& archive, method::RunRollback& m) {
  archive.field("to", m.to);
  archive.told_if_any("reason", m.reason);
  archive.told("force", m.force);
}
template <class Archive>
void fields(Archive& archive, method::RolledBackTo& m) {
  archive.field("outer_step", m.outer_step);
}
template <class Archive>
void fields(Archive& archive, method::RunDecay& m) {
  archive.known("from_round", m.from_round);
  archive.field("rounds", m.rounds);
  archive.known("final_learning_rate", m.final_learning_rate);
  archive.told_if_any("shape", m.shape);
}
template <class Archive>
void fields(Archive& archive, method::DecayDecided& m) {
  archive.field("from_round", m.from_round);
  archive.field("rounds", m.rounds);
  archive.field("final_learning_rate", m.final_learning_rate);
  archive.told_if_any("shape", m.shape);
}
template <class Archive>
void fields(Archive& archive, method::RunMixture& m) {
  archive.known("from_round", m.from_round);
  archive.bounded("weights", m.weights, kMaxWeightsText);
}
template <class Archive>
void fields(Archive& archive, method::MixtureDecided& m) {
  archive.field("from_round", m.from_round);
  archive.bounded("weights", m.weights, kMaxWeightsText);
}

}  // namespace atl
