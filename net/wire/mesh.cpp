#include "net/wire/mesh.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "net/base/printable.h"
#include "net/wire/decay_fields.h"
#include "net/wire/json_archive.h"
#include "net/wire/mixture_fields.h"
#include "net/wire/wire_format_field.h"

namespace atl {

namespace {

constexpr std::size_t kMaxSignature = 256;
constexpr std::size_t kMaxCertificate = 8u << 10;

// Said only where it is so.
template <class Archive>
void if_so(Archive& archive, const char* name, bool& value) {
  std::optional<bool> said;
  if (value) said = true;
  archive.field(name, said);
  value = said.value_or(false);
}

// The ring's is not written.
template <class Archive>
void schedule(Archive& archive, Schedule& value) {
  std::string name(schedule_name(value));
  if constexpr (Archive::kReads) {
    if (!archive.has_value("schedule")) return;
  } else {
    if (value == Schedule::kRing) return;
  }
  archive.bounded("schedule", name, 32);
  if (const auto known = schedule_named(name)) {
    value = *known;
  } else {
    archive.fail(fmt::format("schedule '{}' is not known here ({}); update atoll", printable(name),
                             fmt::join(kScheduleNames, ", ")));
  }
}

// What is none is found out by who reads it.
template <class Archive>
void sketch(Archive& archive, const char* name, std::string& value) {
  if constexpr (Archive::kReads) {
    if (!archive.has_value(name)) return;
  } else {
    if (value.empty()) return;
  }
  archive.bounded(name, value, kSketchText);
}

}  // namespace

// Entries of lists: not in the unnamed namespace, for the archive finds them by their argument.
template <class Archive>
void fields(Archive& archive, RosterEntry& m) {
  archive.field("id", m.id);
  archive.text("display_name", m.display_name);
  if constexpr (Archive::kReads) m.display_name = printable(m.display_name, kMaxPersonName);
  archive.field("address", m.address);
  archive.hash("key_sha256", m.key_sha256);
  archive.text_if_any("software", m.software);
  archive.text_if_any("region", m.region);
}

template <class Archive>
void fields(Archive& archive, AttemptMember& m) {
  archive.field("id", m.id);
  archive.field("address", m.address);
  archive.field("tokens", m.tokens);
  if_so(archive, "dials_previous", m.dials_previous);
}

template <class Archive>
void fields(Archive& archive, CheckedRow& m) {
  archive.text("row", m.row, kMaxPersonName);
  archive.text("verdict", m.verdict, kMaxPersonName);
}

template <class Archive>
void fields(Archive& archive, LinkReportEntry& m) {
  archive.field("peer", m.peer);
  archive.field("outgoing", m.outgoing);
  archive.field("bytes_per_second", m.bytes_per_second);
  archive.field("rtt_seconds", m.rtt_seconds);
  archive.field("at_least", m.at_least);
  archive.field("loss", m.loss);
}

template <class Archive>
void fields(Archive& archive, HeldState& m) {
  archive.field("outer_step", m.outer_step);
  archive.hash("state_hash", m.state_hash);
}

template <class Archive>
void fields(Archive& archive, HeldWork& m) {
  archive.field("round", m.round);
  archive.field("lease_first_sequence", m.lease_first_sequence);
  archive.field("lease_sequences", m.lease_sequences);
}

template <class Archive>
bool says(Archive& archive, const char* name) {
  if constexpr (Archive::kReads) return archive.has(name);
  return true;
}

template <class Archive>
void fields(Archive& archive, SignedEpoch& m) {
  archive.field("epoch", m.epoch);
  archive.bounded("signature", m.signature, kMaxSignature);
  archive.bounded("hub_certificate", m.hub_certificate, kMaxCertificate);
}

template <class Archive>
void fields(Archive& archive, HubCommit& m) {
  archive.field("round", m.round);
  archive.field("attempt", m.attempt);
  archive.hash("digest", m.digest);
  archive.field("outer_learning_rate", m.outer_learning_rate);
  archive.field("outer_momentum", m.outer_momentum);
  archive.field("members", m.members);
  archive.bounded("signature", m.signature, kMaxSignature);
  if (!Archive::kReads || says(archive, "fragment")) archive.field("fragment", m.fragment);  // not in older records
  if (!says(archive, "epoch")) return;  // a hub's own record of an older version
  archive.field("epoch", m.epoch);
  archive.field("holders", m.holders);
  archive.field("lease_cursor", m.lease_cursor);
  mixture_eras(archive, "mixture", m.mixture);
}

// An object within an object.
template <class Archive, class T>
void object(Archive& archive, const char* name, T& value) {
  if constexpr (Archive::kReads) {
    const nlohmann::json* found = archive.find(name);
    if (found == nullptr) return;
    JsonReader reader(*found);
    fields(reader, value);
    if (!reader.status().ok()) archive.fail(std::string(name) + ": " + reader.status().error().message);
  } else {
    JsonWriter writer;
    fields(writer, value);
    archive.object[name] = std::move(writer.object);
  }
}
template <class Archive>
void fields(Archive& archive, SignedCommit& m) {
  object(archive, "commit", m.commit);
  archive.bounded("hub_certificate", m.hub_certificate, kMaxCertificate);
}

namespace {

constexpr int kMaxDepth = 8;  // the welcome's run is the deepest

// ---- the fields of each message, once for both directions

template <class Archive>
void held_states(Archive& archive, const char* name, std::vector<HeldState>& states) {
  archive.field(name, states);
  if (states.size() > kMaxHeldStates) archive.fail("field '" + std::string(name) + "' holds more than 16 entries");
}

template <class Archive>
void fields(Archive& archive, IslandHello& m) {
  archive.field("version", m.version);
  archive.text("software", m.software, kMaxPersonName);
  archive.text("display_name", m.display_name, kMaxPersonName);
  archive.field("listen_port", m.listen_port);
  archive.host("advertised_host", m.advertised_host);
  archive.field("outer_step", m.outer_step);
  if (m.outer_step) archive.hash("state_hash", m.state_hash);
  archive.field("checked", m.checked);
  archive.text_if_any("region", m.region, kMaxPersonName);
  if (m.checked && m.checked->size() > kMaxCheckedRows) archive.fail("field 'checked' holds more than 64 entries");
  if (Archive::kReads ? says(archive, "durable") : !m.durable.empty()) held_states(archive, "durable", m.durable);
  if (Archive::kReads ? says(archive, "last_commit") : m.last_commit != nullptr) {
    SignedCommit commit = m.last_commit ? *m.last_commit : SignedCommit{};
    object(archive, "last_commit", commit);
    if constexpr (Archive::kReads) m.last_commit = std::make_shared<const SignedCommit>(std::move(commit));
  }
  if (Archive::kReads ? says(archive, "epoch") : m.epoch.has_value()) {
    if (!m.epoch) m.epoch.emplace();
    object(archive, "epoch", *m.epoch);
  }
  if (Archive::kReads ? says(archive, "work") : m.work.has_value()) {
    if (!m.work) m.work.emplace();
    object(archive, "work", *m.work);
  }
  if_so(archive, "can_upload", m.can_upload);
  if_so(archive, "credited", m.credited);
  if_so(archive, "dials_ahead", m.dials_ahead);
}

template <class Archive>
void fields(Archive& archive, IslandHeartbeat& m) {
  archive.field("round", m.round);
  archive.text("phase", m.phase);
  archive.field("inner_step", m.inner_step);
  archive.field("loss_nats", m.loss_nats);
  archive.field("tokens_per_second", m.tokens_per_second);
  archive.field("tokens", m.tokens);
  archive.field("bytes_sent", m.bytes_sent);
  archive.field("inner_seconds", m.inner_seconds);
  archive.field("sync_seconds", m.sync_seconds);
  archive.field("uploaded_bytes", m.uploaded_bytes);
}

template <class Archive>
void fields(Archive& archive, IslandReady& m) {
  archive.field("round", m.round);
  archive.field("fragment", m.fragment);
  archive.field("tokens", m.tokens);
  archive.field("norm_over_steps", m.norm_over_steps);
  archive.field("mean_loss_nats", m.mean_loss_nats);
  archive.field("lease_first_sequence", m.lease_first_sequence);
}

template <class Archive>
void fields(Archive& archive, IslandHave& m) {
  archive.field("round", m.round);
  archive.field("fragment", m.fragment);
  archive.field("attempt", m.attempt);
  archive.hash("digest", m.digest);
  archive.field("seconds", m.seconds);
  sketch(archive, "gave_sketch", m.gave_sketch);
  sketch(archive, "average_sketch", m.average_sketch);
}

template <class Archive>
void fields(Archive& archive, IslandAttemptFailed& m) {
  archive.field("round", m.round);
  archive.field("fragment", m.fragment);
  archive.field("attempt", m.attempt);
  archive.field("peer", m.peer);
  archive.text("reason", m.reason);
  archive.flags("whole_buckets", m.whole_buckets);
  if_so(archive, "silent", m.silent);
  archive.field("stalled_after", m.stalled_after);
  if_so(archive, "too_large", m.too_large);
  if_so(archive, "never_met", m.never_met);
}

template <class Archive>
void fields(Archive& archive, IslandChunks& m) {
  archive.field("round", m.round);
  archive.field("fragment", m.fragment);
  archive.field("attempt", m.attempt);
  archive.hashes("digests", m.digests);
}

template <class Archive>
void fields(Archive& archive, IslandDurable& m) {
  held_states(archive, "states", m.states);
}

template <class Archive>
void fields(Archive& archive, IslandApplied& m) {
  archive.field("outer_step", m.outer_step);
  archive.hash("state_hash", m.state_hash);
}

template <class Archive>
void fields(Archive& archive, IslandRecovered& m) {
  archive.field("outer_step", m.outer_step);
  archive.hash("state_hash", m.state_hash);
}

template <class Archive>
void fields(Archive& archive, IslandValidation& m) {
  archive.field("outer_step", m.outer_step);
  archive.field("loss_nats", m.loss_nats);
}

template <class Archive>
void fields(Archive& archive, IslandEvaluation& m) {
  archive.field("outer_step", m.outer_step);
  archive.field("task", m.task);
  archive.figures("figures", m.figures);
}

template <class Archive>
void fields(Archive& archive, IslandLeaving& m) {
  archive.text("reason", m.reason);
  if_so(archive, "keeps_place", m.keeps_place);
}

template <class Archive>
void fields(Archive& archive, IslandUploaded& m) {
  archive.field("outer_step", m.outer_step);
  archive.hash("state_hash", m.state_hash);
  archive.text("error", m.error);
}

template <class Archive>
void fields(Archive& archive, IslandLeaseReturned& m) {
  archive.field("round", m.round);
  archive.field("fragment", m.fragment);
  archive.field("lease_first_sequence", m.lease_first_sequence);
  archive.text("reason", m.reason);
}

template <class Archive>
void fields(Archive& archive, IslandLinkReport& m) {
  archive.field("links", m.links);
  if (m.links.size() > kMaxReportedLinks) archive.fail("field 'links' holds more than 64 entries");
}

template <class Archive>
void fields(Archive& archive, HubProbe& m) {
  archive.field("from", m.from);
  archive.field("bytes", m.bytes);
}

template <class Archive>
void fields(Archive& archive, HubWelcome& m) {
  archive.field("version", m.version);
  archive.field("outer_step", m.outer_step);
  if constexpr (Archive::kReads) {
    const nlohmann::json* run = archive.find("run");
    if (run == nullptr) return;
    Result<RunConfig> config = RunConfig::from_json(dump_json(*run));
    if (!config.ok()) return archive.fail(config.error());  // of another version: its code says so
    m.run = std::move(config).value();
  } else {
    archive.object["run"] = m.run.to_json();
  }
  object(archive, "epoch", m.epoch);
}

template <class Archive>
void fields(Archive& archive, HubRoster& m) {
  archive.field("islands", m.islands);
  std::optional<std::vector<IslandId>> removed;
  if (!m.removed.empty()) removed = m.removed;
  archive.field("removed", removed);
  m.removed = removed.value_or(std::vector<IslandId>());
}

template <class Archive>
void fields(Archive& archive, HubRecover& m) {
  archive.field("outer_step", m.outer_step);
  archive.hash("state_hash", m.state_hash);
  archive.field("sources", m.sources);
}

template <class Archive>
void fields(Archive&, HubInitialise&) {}

template <class Archive>
void fields(Archive& archive, HubRoundBegin& m) {
  archive.field("round", m.round);
  archive.field("fragment", m.fragment);
  archive.field("inner_steps", m.inner_steps);
  archive.field("lease_first_sequence", m.lease_first_sequence);
  archive.field("lease_sequences", m.lease_sequences);
  archive.field("validate", m.validate);
  if (Archive::kReads ? says(archive, "decay") : m.decay.has_value()) {
    if (!m.decay) m.decay.emplace();
    object(archive, "decay", *m.decay);
  }
  mixture_eras(archive, "mixture", m.mixture);
  archive.field("expected_sequence", m.expected_sequence);
  if_so(archive, "evaluate", m.evaluate);
}

template <class Archive>
void fields(Archive& archive, HubAttempt& m) {
  archive.field("round", m.round);
  archive.field("fragment", m.fragment);
  archive.field("attempt", m.attempt);
  archive.field("order", m.order);
  archive.flags("final_buckets", m.final_buckets);
  wire_format(archive, m.wire);
  archive.figures("edge_bytes_per_second", m.edge_bytes_per_second);
  if (!m.edge_bytes_per_second.empty() && m.edge_bytes_per_second.size() != m.order.size()) {
    archive.fail("field 'edge_bytes_per_second' is not as long as the order");
  }
  std::optional<double> norm_limit;
  if (m.norm_limit > 0) norm_limit = m.norm_limit;
  archive.field("norm_limit", norm_limit);
  m.norm_limit = norm_limit.value_or(0);
  schedule(archive, m.schedule);
}

template <class Archive>
void fields(Archive& archive, HubAbort& m) {
  archive.field("round", m.round);
  archive.field("fragment", m.fragment);
  archive.field("attempt", m.attempt);
  archive.text("reason", m.reason);
}

template <class Archive>
void fields(Archive& archive, HubGoodbye& m) {
  if constexpr (Archive::kReads) {
    std::string name;
    archive.bounded("code", name, 64);
    // A code of a newer hub: the message still says it in words.
    m.code = parse_error_code(name).value_or(ErrorCode::kAborted);
  } else {
    archive.object["code"] = to_string(m.code);
  }
  archive.text("message", m.message);
  archive.field("finished", m.finished);
}

template <class Archive>
void fields(Archive& archive, HubShowChunks& m) {
  archive.field("round", m.round);
  archive.field("fragment", m.fragment);
  archive.field("attempt", m.attempt);
}

template <class Archive>
void fields(Archive& archive, HubNotice& m) {
  archive.text("text", m.text);
}

template <class Archive>
void fields(Archive& archive, HubSafe& m) {
  archive.field("outer_step", m.outer_step);
}

template <class Archive>
void fields(Archive& archive, HubUpload& m) {
  archive.field("outer_step", m.outer_step);
  archive.hash("state_hash", m.state_hash);
}

template <class Archive>
void fields(Archive& archive, HubNeighbours& m) {
  archive.field("order", m.order);
  schedule(archive, m.schedule);
  archive.field("bytes_to_each", m.bytes_to_each);
}

// ---- types by name, in the order of the variants

constexpr std::array<const char*, 15> kIslandTypes = {
    "hello",   "heartbeat",   "ready",  "have",    "attempt_failed", "applied",        "recovered", "validation",
    "leaving", "link_report", "chunks", "durable", "uploaded",       "lease_returned", "evaluation"};
constexpr std::array<const char*, 15> kHubTypes = {"welcome",     "roster", "recover", "initialise", "round_begin",
                                                   "attempt",     "abort",  "commit",  "goodbye",    "probe",
                                                   "show_chunks", "notice", "safe",    "upload",     "neighbours"};
static_assert(kIslandTypes.size() == std::variant_size_v<IslandMessage>);
static_assert(kHubTypes.size() == std::variant_size_v<HubMessage>);

template <class Variant, class Names>
std::string encode_as(const Variant& message, const Names& names) {
  JsonWriter writer;
  std::visit([&](const auto& m) { fields(writer, const_cast<std::remove_cvref_t<decltype(m)>&>(m)); }, message);
  writer.object["type"] = names[message.index()];
  return dump_json(writer.object);
}

template <class Variant, std::size_t kIndex = 0>
Variant make_alternative(std::size_t index) {
  if constexpr (kIndex < std::variant_size_v<Variant>) {
    if (index != kIndex) return make_alternative<Variant, kIndex + 1>(index);
    return Variant(std::in_place_index<kIndex>);
  } else {
    return Variant{};
  }
}

template <class Variant, class Names>
Result<Variant> decode_as(std::string_view text, const Names& names, std::string_view who) {
  auto parsed = parse_bounded_json(text, kMaxMeshMessageBytes, kMaxDepth);
  if (!parsed.ok()) return parsed.error().with_context(fmt::format("message of {}", who));
  JsonReader reader(*parsed);
  std::string type;
  reader.bounded("type", type, 64);
  if (!reader.status().ok()) return reader.status().error().with_context(fmt::format("message of {}", who));
  std::size_t index = 0;
  while (index < names.size() && type != names[index]) ++index;
  if (index == names.size()) {
    return Error{ErrorCode::kProtocol, fmt::format("message of {}: unknown type '{}'", who, printable(type))};
  }
  Variant message = make_alternative<Variant>(index);
  std::visit([&](auto& m) { fields(reader, m); }, message);
  if (!reader.status().ok()) return reader.status().error().with_context(fmt::format("message '{}' of {}", type, who));
  return message;
}

}  // namespace

std::string encode(const IslandMessage& message) { return encode_as(message, kIslandTypes); }
std::string encode(const HubMessage& message) { return encode_as(message, kHubTypes); }

Result<IslandMessage> decode_island_message(std::string_view text) {
  return decode_as<IslandMessage>(text, kIslandTypes, "an island");
}
Result<HubMessage> decode_hub_message(std::string_view text) {
  return decode_as<HubMessage>(text, kHubTypes, "the hub");
}

std::string commit_record(const HubCommit& commit) {
  nlohmann::json members = nlohmann::json::array(), holders = nlohmann::json::array();
  for (const AttemptMember& member : commit.members)
    members.push_back({{"id", member.id.value}, {"tokens", member.tokens}});
  for (const IslandId& holder : commit.holders) holders.push_back(holder.value);
  nlohmann::json record = {{"round", commit.round.value},
                           {"attempt", commit.attempt.value},
                           {"digest", commit.digest},
                           {"outer_learning_rate", commit.outer_learning_rate},
                           {"outer_momentum", commit.outer_momentum},
                           {"members", std::move(members)},
                           {"epoch", commit.epoch},
                           {"holders", std::move(holders)},
                           {"lease_cursor", commit.lease_cursor}};
  // Records of before, which islands keep, do not name it.
  if (commit.fragment != FragmentId{}) record["fragment"] = commit.fragment.value;
  for (const MixtureEra& era : commit.mixture) {
    record["mixture"].push_back({{"from_position", era.from_position}, {"weights", era.weights}});
  }
  return dump_json(record);
}

std::string epoch_record(const std::string& run_id, std::uint64_t epoch) {
  return dump_json({{"run_id", run_id}, {"epoch", epoch}});
}

namespace {

template <class T>
std::string encode_alone(const T& value) {
  JsonWriter writer;
  fields(writer, const_cast<T&>(value));
  return dump_json(writer.object);
}

template <class T>
Result<T> decode_alone(std::string_view text, std::string_view what) {
  auto parsed = parse_bounded_json(text, kMaxMeshMessageBytes, kMaxDepth);
  if (!parsed.ok()) return parsed.error().with_context(std::string(what));
  JsonReader reader(*parsed);
  T value;
  fields(reader, value);
  if (!reader.status().ok()) return reader.status().error().with_context(std::string(what));
  return value;
}

}  // namespace

std::string encode(const SignedCommit& commit) { return encode_alone(commit); }
Result<SignedCommit> decode_signed_commit(std::string_view text) {
  return decode_alone<SignedCommit>(text, "a kept commit");
}
std::string encode(const SignedEpoch& epoch) { return encode_alone(epoch); }
Result<SignedEpoch> decode_signed_epoch(std::string_view text) {
  return decode_alone<SignedEpoch>(text, "a hub's epoch");
}

}  // namespace atl
