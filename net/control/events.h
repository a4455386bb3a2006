// What a trainer and an agent tell whoever subscribed (docs/control.md, "Events"): one struct an event, named by kName.
// Each is made by its owner, read by decode_event alone, and visited. Plain values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "net/base/id.h"
#include "net/base/result.h"
#include "net/check/check_row.h"
#include "net/control/node_state.h"
#include "net/control/run_costs.h"
#include "net/control/words.h"
#include "net/wire/told_past.h"

namespace atl {
namespace event {

// ---- with the state: of the trainer's alone the island's part, until its agent has put its own beside it

struct StateChanged {
  static constexpr std::string_view kName = "state.changed";
  NodeState state = {};
};
struct RoundBegin {
  static constexpr std::string_view kName = "round.begin";
  NodeState state = {};
  FragmentId fragment = {};
};
struct Step {
  static constexpr std::string_view kName = "step";
  NodeState state = {};
};
struct Syncing {  // the inner steps of the round are done
  static constexpr std::string_view kName = "sync.phase";
  NodeState state = {};
};
struct SyncDone {  // the outer step is taken
  static constexpr std::string_view kName = "sync.done";
  NodeState state = {};
  FragmentId fragment = {};
};
struct CheckpointSaved {
  static constexpr std::string_view kName = "checkpoint.saved";
  NodeState state = {};
};
struct TrainerError {
  static constexpr std::string_view kName = "error";
  NodeState state = {};
};

// ---- rounds

// All of a round that is over for this island, before its SyncDone.
struct RoundDone {
  static constexpr std::string_view kName = "round.done";
  std::uint32_t round = 0;
  FragmentId fragment = {};
  std::uint32_t islands = 0;  // that were members at its end
  bool accepted = false;      // this island's work is in the average
  // Of this island in this round; not known where its trainer came in the middle of it.
  std::optional<std::uint64_t> tokens = {}, bytes_sent = {};
  std::optional<double> inner_seconds = {};
  std::optional<double> sync_seconds = {};  // of the all-reduce that went well
  std::optional<double> loss_nats = {};     // of its last inner step
  std::string state_hash = {};              // after it
};

// What an outer state came to, of which the hub asked this island; outer step 0: the one with which the run began.
struct Validated {
  static constexpr std::string_view kName = "state.validated";
  std::uint32_t outer_step = 0;
  double loss_nats = 0;
};
struct TaskFigure {
  std::string metric = {};
  double value = 0;
};
struct Evaluated {  // a task of the run's
  static constexpr std::string_view kName = "state.evaluated";
  std::uint32_t outer_step = 0;
  std::string task = {};
  std::vector<TaskFigure> figures = {};  // the one that is drawn over rounds first
};

// The run's past as its hub tells it, from the first round on: in place of what was told before.
struct PastTold {
  static constexpr std::string_view kName = "run.past";
  std::string run = {};           // its id
  std::uint32_t inner_steps = 0;  // of a round
  ToldPast past = {};
};

struct RingMember {
  std::string island = {}, name = {};
  std::uint64_t tokens = 0;                          // its weight
  std::optional<double> edge_bytes_per_second = {};  // to the next one
};
struct AttemptBegin {
  static constexpr std::string_view kName = "sync.phase";
  std::uint32_t round = 0;
  FragmentId fragment = {};
  std::uint32_t attempt = 1;
  std::vector<RingMember> ring = {};  // in its order
  bool directly = false;              // not round that ring: everybody sends to everybody
};
struct SyncPhase {  // a part that is over
  static constexpr std::string_view kName = "sync.phase";
  std::uint32_t round = 0;
  FragmentId fragment = {};
  std::uint32_t attempt = 1;
  SyncPart part = SyncPart::kUnknown;
  double seconds = 0;
  std::uint64_t bytes = 0;
};
struct SyncProgress {
  static constexpr std::string_view kName = "sync.progress";
  std::uint32_t round = 0;
  FragmentId fragment = {};
  std::uint32_t attempt = 1;
  SyncPart part = SyncPart::kReduceScatter;       // or kAllGather
  std::uint64_t bytes_done = 0, bytes_total = 0;  // received by this island
  std::uint32_t step = 0, steps = 0;              // of the ring: which chunk travels
  double sent_bytes_per_second = 0, received_bytes_per_second = 0;
};

// ---- how the island reaches the others

struct Transfer {
  static constexpr std::string_view kName = "transfer";
  Download what = Download::kUnknown;
  DownloadStatus status = DownloadStatus::kUnknown;
  std::uint64_t done_bytes = 0, total_bytes = 0;
  std::optional<double> bytes_per_second = {}, seconds_left = {};
  std::string text = {};  // why it failed
};
struct HubLink {
  static constexpr std::string_view kName = "hub.link";
  bool up = false;
  std::string text = {};                         // why it does not answer
  std::optional<double> tries_for_seconds = {};  // empty: for ever
};
struct PeerUp {
  static constexpr std::string_view kName = "peer.up";
  std::string island = {}, name = {}, address = {};
  std::string version = {}, region = {};  // as it says
};
struct PeerDown {
  static constexpr std::string_view kName = "peer.down";
  std::string island = {}, name = {}, address = {}, version = {}, region = {};
};
struct PeerLink {
  static constexpr std::string_view kName = "peer.link";
  std::string island = {};
  std::optional<double> rtt_seconds = {};
  std::optional<double> bytes_per_second = {}, down_bytes_per_second = {};  // to it, from it
  bool failed = false;                                                      // an attempt ended at the edge to it
};

// ---- joining

struct InviteLooked {
  static constexpr std::string_view kName = "invite.looked";
  bool ok = false;
  std::string invite = {};  // its public id
  // The hub that answers. What it does not say is empty or 0.
  std::string address = {}, run_id = {}, run_name = {}, operator_name = {}, model = {};
  std::uint64_t parameters = 0;
  std::optional<RunCosts> costs = {};
  std::string pin = {};                 // SHA-256 of the authority's key, hex
  std::string code = {}, message = {};  // unless ok
};
struct JoinProgress {
  static constexpr std::string_view kName = "join.progress";
  JoinStage stage = JoinStage::kUnknown;
  StageStatus status = StageStatus::kUnknown;
  std::optional<std::uint64_t> done_bytes = {}, total_bytes = {};
  std::optional<double> bytes_per_second = {}, seconds_left = {};
  std::string text = {};  // what went wrong
};
struct JoinDone {
  static constexpr std::string_view kName = "join.done";
  bool ok = false;
  std::string text = {}, warning = {};  // of an end that is well
  std::string code = {}, message = {};  // of one that is not
};

// ---- the machine

struct CheckRowDone {
  static constexpr std::string_view kName = "check.result";
  CheckRow row = {};
};
struct CheckDone {
  static constexpr std::string_view kName = "check.result";
  std::optional<CheckReport> report = {};
  std::string error = {};  // why there is no report
};
struct GpuSampled {
  static constexpr std::string_view kName = "gpu.sample";
  std::vector<GpuSample> gpus = {};
};
struct GpuAlert {
  static constexpr std::string_view kName = "gpu.alert";
  GpuAlertKind kind = GpuAlertKind::kUnknown;
  std::optional<std::uint32_t> gpu = {};  // these four: kTemperature
  std::optional<double> celsius = {}, cap_celsius = {};
  std::optional<bool> pauses = {};
  std::optional<double> cap_watts = {};  // these two: kPower
  std::string text = {};
};

// Of another version: passed on as it came.
struct Unknown {
  static constexpr std::string_view kName = "";
  std::string name = {};
  std::string data = {};  // JSON
};

}  // namespace event

// Series of the history that an agent makes of event::PastTold (metrics.query).
inline constexpr const char* kPastLossSeries = "run.mean_loss_nats";
inline constexpr const char* kPastValidationSeries = "run.validation_loss_nats";

using ControlEvent =
    std::variant<event::StateChanged, event::RoundBegin, event::Step, event::Syncing, event::SyncDone,
                 event::CheckpointSaved, event::TrainerError, event::RoundDone, event::Validated, event::Evaluated,
                 event::PastTold, event::AttemptBegin, event::SyncPhase, event::SyncProgress, event::Transfer,
                 event::HubLink, event::PeerUp, event::PeerDown, event::PeerLink, event::InviteLooked,
                 event::JoinProgress, event::JoinDone, event::CheckRowDone, event::CheckDone, event::GpuSampled,
                 event::GpuAlert, event::Unknown>;

// With the envelope that a subscriber gets it in.
struct HeardEvent {
  ControlEvent what = {};
  std::uint64_t seq = 0;  // 0: none
  double time = 0;        // seconds since 1970
  bool kept = false;      // from before somebody listened: no news
};

std::string_view name_of(const ControlEvent& event);
nlohmann::json data_of(const ControlEvent& event);
// kProtocol where the data is not what the event's is; a name that is not known is event::Unknown.
Result<ControlEvent> decode_event(std::string_view name, const nlohmann::json& data);

// Where the event tells the state; else null.
const NodeState* state_in(const ControlEvent& event);
NodeState* state_in(ControlEvent& event);

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

}  // namespace atl
