#include "net/wire/mesh.h"

#include <fmt/format.h>

#include <array>

#include "net/wire/json_archive.h"
#include "net/wire/wire_format_field.h"

namespace atl {

namespace {

// Said only where it is so.
template <class Archive>
void if_so(Archive& archive, const char* name, bool& value) {
  std::optional<bool> said;
  if (value) said = true;
  archive.field(name, said);
  value = said.value_or(false);
}

}  // namespace

// Entries of lists: not in the unnamed namespace, for the archive finds them by their argument.
template <class Archive>
void fields(Archive& archive, RosterEntry& m) {
  archive.field("id", m.id);
  archive.text("display_name", m.display_name);
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
  archive.bounded("row", m.row, 64);
  archive.bounded("verdict", m.verdict, 64);
}

template <class Archive>
void fields(Archive& archive, LinkReportEntry& m) {
  archive.field("peer", m.peer);
  archive.field("outgoing", m.outgoing);
  archive.field("bytes_per_second", m.bytes_per_second);
  archive.field("rtt_seconds", m.rtt_seconds);
  archive.field("at_least", m.at_least);
}

namespace {

constexpr int kMaxDepth = 8;  // the welcome's run is the deepest
constexpr std::size_t kMaxSignature = 256;
constexpr std::size_t kMaxHostText = 255;

// ---- the fields of each message, once for both directions

template <class Archive>
void fields(Archive& archive, IslandHello& m) {
  archive.field("version", m.version);
  archive.text("software", m.software);
  archive.text("display_name", m.display_name);
  archive.field("listen_port", m.listen_port);
  archive.bounded("advertised_host", m.advertised_host, kMaxHostText);
  archive.field("outer_step", m.outer_step);
  if (m.outer_step) archive.hash("state_hash", m.state_hash);
  archive.field("checked", m.checked);
  archive.text_if_any("region", m.region);
  if (m.checked && m.checked->size() > kMaxCheckedRows) archive.fail("field 'checked' holds more than 64 entries");
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
}

template <class Archive>
void fields(Archive& archive, IslandReady& m) {
  archive.field("round", m.round);
  archive.field("tokens", m.tokens);
  archive.field("norm_over_steps", m.norm_over_steps);
  archive.field("mean_loss_nats", m.mean_loss_nats);
}

template <class Archive>
void fields(Archive& archive, IslandHave& m) {
  archive.field("round", m.round);
  archive.field("attempt", m.attempt);
  archive.hash("digest", m.digest);
  archive.field("seconds", m.seconds);
}

template <class Archive>
void fields(Archive& archive, IslandAttemptFailed& m) {
  archive.field("round", m.round);
  archive.field("attempt", m.attempt);
  archive.field("peer", m.peer);
  archive.text("reason", m.reason);
  archive.flags("whole_buckets", m.whole_buckets);
  if_so(archive, "silent", m.silent);
  archive.field("stalled_after", m.stalled_after);
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
void fields(Archive& archive, IslandLeaving& m) {
  archive.text("reason", m.reason);
  if_so(archive, "keeps_place", m.keeps_place);
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
  archive.field("inner_steps", m.inner_steps);
  archive.field("lease_first_sequence", m.lease_first_sequence);
  archive.field("lease_sequences", m.lease_sequences);
  archive.field("validate", m.validate);
}

template <class Archive>
void fields(Archive& archive, HubAttempt& m) {
  archive.field("round", m.round);
  archive.field("attempt", m.attempt);
  archive.field("order", m.order);
  archive.flags("final_buckets", m.final_buckets);
  wire_format(archive, m.wire);
  archive.figures("edge_bytes_per_second", m.edge_bytes_per_second);
  if (!m.edge_bytes_per_second.empty() && m.edge_bytes_per_second.size() != m.order.size()) {
    archive.fail("field 'edge_bytes_per_second' is not as long as the order");
  }
}

template <class Archive>
void fields(Archive& archive, HubAbort& m) {
  archive.field("round", m.round);
  archive.field("attempt", m.attempt);
  archive.text("reason", m.reason);
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

// ---- types by name, in the order of the variants

constexpr std::array<const char*, 10> kIslandTypes = {"hello",   "heartbeat", "ready",      "have",    "attempt_failed",
                                                      "applied", "recovered", "validation", "leaving", "link_report"};
constexpr std::array<const char*, 10> kHubTypes = {"welcome", "roster", "recover", "initialise", "round_begin",
                                                   "attempt", "abort",  "commit",  "goodbye",    "probe"};
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
    return Error{ErrorCode::kProtocol, fmt::format("message of {}: unknown type '{}'", who, type)};
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
  nlohmann::json members = nlohmann::json::array();
  for (const AttemptMember& member : commit.members)
    members.push_back({{"id", member.id.value}, {"tokens", member.tokens}});
  return dump_json({{"round", commit.round.value},
                    {"attempt", commit.attempt.value},
                    {"digest", commit.digest},
                    {"outer_learning_rate", commit.outer_learning_rate},
                    {"outer_momentum", commit.outer_momentum},
                    {"members", std::move(members)}});
}

}  // namespace atl
