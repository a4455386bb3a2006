// Messages between island and hub: JSON text over one WebSocket (TLS, kAlpnHttp, path /mesh). All of them are here,
// with their direction in the name; {"type": "...", ...}, at most kMaxMeshMessageBytes. An unknown type or version is
// refused.
//
// A round is of one fragment, RunConfig::fragment_of(round), which what is said of a round names, too. With F fragments
// rounds from the committed one to F - 1 later may be open at once: the next is trained while the one before is
// averaged, each with attempts of its own, and they are committed in their order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "net/base/address.h"
#include "net/base/id.h"
#include "net/base/result.h"
#include "net/wire/mixture.h"
#include "net/wire/run_config.h"
#include "net/wire/schedule.h"
#include "net/wire/work_sketch.h"

namespace atl {

inline constexpr int kMeshVersion = 7;
inline constexpr std::size_t kMaxMeshMessageBytes = 1u << 20;

// ---- island -> hub

struct CheckedRow {     // of the island's own node check
  std::string row;      // "gpu.bf16"
  std::string verdict;  // "pass", "warn", "fail", "skip"
};
inline constexpr std::size_t kMaxCheckedRows = 64;

// An outer state that an island keeps on its disk: it is there after a crash, too.
struct HeldState {
  OuterStep outer_step;
  std::string state_hash;  // tree hash, hex
  bool operator==(const HeldState&) const = default;
};
inline constexpr std::size_t kMaxHeldStates = 16;

// That the run's hub serves in this epoch. A hub's epoch rises each time that one is started, from whatever copy of its
// home: of two hubs of one run the older one stops as soon as an island shows it the newer one's.
struct SignedEpoch {
  std::uint64_t epoch = 0;
  std::string signature;        // over epoch_record(run, epoch), base64url
  std::string hub_certificate;  // PEM, of the key that signed
};

// Work on a lease that an island keeps on its disk.
struct HeldWork {
  OuterStep round;
  std::uint64_t lease_first_sequence = 0, lease_sequences = 0;
};

struct SignedCommit;

struct IslandHello {  // first message after the WebSocket opens, also after a reconnect
  int version = kMeshVersion;
  std::string software;                 // "atoll 0.1.0"
  std::string display_name;             // for people; at most 64 bytes
  std::uint16_t listen_port = 0;        // the inbound port; the host is what the hub sees, unless advertised
  std::string advertised_host;          // may be empty
  std::optional<OuterStep> outer_step;  // outer steps applied to the state that it holds; empty: holds none
  std::string state_hash;               // tree hash of it, hex; empty with outer_step
  // Of its last check; at most kMaxCheckedRows. What an island says of itself keeps unfit machines out, not liars.
  std::optional<std::vector<CheckedRow>> checked = {};
  std::string region = {};  // where it stands, for people; may be empty
  std::vector<HeldState> durable = {};
  // The newest record and the newest epoch of the hub that it knows: a hub that was restored from an old backup learns
  // from them.
  std::shared_ptr<const SignedCommit> last_commit = {};
  std::optional<SignedEpoch> epoch = {};
  // Of a process that ended in the middle of it: the hub gives it that lease again where the round and the lease are
  // still open.
  std::optional<HeldWork> work = {};
  bool can_upload = false;  // its owner gave it credentials for RunConfig::upload_store
  bool credited = false;    // its owner agreed that models of the run name it (net/wire/contributors.h)
  // It takes HubNeighbours, and connections that were dialled on its advice: of an older version it does neither, and
  // is neither told nor named to others.
  bool dials_ahead = false;
};

struct IslandHeartbeat {  // every RunConfig::heartbeat; also what people see of an island
  OuterStep round;        // being trained
  std::string phase;      // "recovering", "waiting", "training", "syncing"
  std::uint32_t inner_step = 0;
  double loss_nats = 0;          // mean over a token, of the last inner step; 0 before the first
  double tokens_per_second = 0;  // over the last inner phase
  std::uint64_t tokens = 0;      // trained since it started
  std::uint64_t bytes_sent = 0;  // on the ring since it started
  double inner_seconds = 0;      // computing since it started
  double sync_seconds = 0;       // waiting, ring and outer steps since it started
  // How much the run's store has of the state that it was asked to write there (HubUpload); empty: it writes none.
  std::optional<std::uint64_t> uploaded_bytes = {};
};

struct IslandReady {  // finished the inner phase (or, weight 0, holds the round's outer state and can take part)
  OuterStep round;
  // Its weight: the inputs of the steps that it took, of which the hub knows how many its lease has. Not its labels, of
  // which a mask may leave few: an AdamW step is as long whatever it was made of, and how many there were is its word.
  std::uint64_t tokens = 0;
  double norm_over_steps = 0;  // L2 norm of the pseudo-gradient / inner steps
  double mean_loss_nats = 0;   // of the steps, each a mean over its labels
  FragmentId fragment = {};    // of the round
  // Which part of the data it trained, as round_begin said: one that is told another meanwhile is not ready. Nothing:
  // it trained none.
  std::optional<std::uint64_t> lease_first_sequence = {};
};

struct IslandHave {  // holds the whole average of this attempt
  OuterStep round;
  Attempt attempt;
  std::string digest;  // SHA-256 of the canonical bytes, hex
  double seconds = 0;
  FragmentId fragment = {};  // of the round
  // net/wire/work_sketch.h, as text: of what this island gave, and of the average. Empty: it gave nothing, or is of an
  // older version.
  std::string gave_sketch = {}, average_sketch = {};
};

struct IslandAttemptFailed {  // the answer to an abort too, also of one that holds the whole average
  OuterStep round;
  Attempt attempt;
  std::optional<IslandId> peer;  // at whose edge it failed: an edge, not a verdict on a member
  std::string reason;
  std::vector<bool> whole_buckets = {};  // by bucket: it holds this attempt's average of it; empty: of none
  // Nothing moved at that edge for long, by this island's own clock; in the answer to an abort too.
  bool silent = false;
  // That peer went on saying that it lives and sent no data for long: how many bytes of data had come from it.
  std::optional<std::uint64_t> stalled_after = {};
  // It holds the whole average, and that is larger than HubAttempt::norm_limit: somebody gave more than it said.
  bool too_large = false;
  FragmentId fragment = {};  // of the round
  // No connection to that peer came to stand in this attempt.
  bool never_met = false;
};

// The answer to HubShowChunks: SHA-256, hex, of what it holds of each chunk of the ring, by number, over all buckets
// that travelled in that attempt.
struct IslandChunks {
  OuterStep round;
  Attempt attempt;
  std::vector<std::string> digests;  // as many as the attempt has members; empty: it does not hold them (any more)
  FragmentId fragment = {};          // of the round
};

struct IslandDurable {  // whenever it changes: all that it keeps
  std::vector<HeldState> states;
};

struct IslandApplied {  // took the outer step: holds outer state `outer_step`
  OuterStep outer_step;
  std::string state_hash;  // tree hash over outer parameters and momentum, hex
};

struct IslandRecovered {  // a joiner or a diverged island now holds this state
  OuterStep outer_step;
  std::string state_hash;
};

struct IslandValidation {
  OuterStep outer_step;  // of the outer parameters that were evaluated
  double loss_nats = 0;
};

// What a task came to on the outer parameters that the hub asked about (HubRoundBegin::evaluate); one message a task,
// as each is done.
struct IslandEvaluation {
  OuterStep outer_step;         // of the outer parameters that were evaluated
  std::uint32_t task = 0;       // of RunConfig::evaluation
  std::vector<double> figures;  // of the task's metrics_of(), in their order
};

struct IslandLeaving {  // also the death rattle: sent on a signal or crash
  std::string reason;
  bool keeps_place = false;  // paused: it comes back to its lease, if the round is still open then; nobody waits for it
};

struct IslandUploaded {  // the answer to HubUpload, once it is done or has failed
  OuterStep outer_step;
  std::string state_hash;  // tree hash, hex
  std::string error;       // for a person; empty: it lies in RunConfig::upload_store
};

// The data of its lease cannot be had: the hub gives the lease to another, and this island another one, or none.
struct IslandLeaseReturned {
  OuterStep round;
  std::uint64_t lease_first_sequence = 0;
  std::string reason;        // for a person
  FragmentId fragment = {};  // of the round
};

// One direction of an edge between this island and a peer, as a probe or the last all-reduce measured it.
struct LinkReportEntry {
  IslandId peer;
  bool outgoing = false;  // this island sent
  double bytes_per_second = 0;
  double rtt_seconds = 0;  // 0: not measured
  bool at_least = false;   // the sender waited for more to send: the link may be faster
  // Of what went round a ring, the part that the kernel sent again; empty: not measured.
  std::optional<double> loss = {};
};

struct IslandLinkReport {
  std::vector<LinkReportEntry> links;  // at most kMaxReportedLinks
};
inline constexpr std::size_t kMaxReportedLinks = 64;

using IslandMessage = std::variant<IslandHello, IslandHeartbeat, IslandReady, IslandHave, IslandAttemptFailed,
                                   IslandApplied, IslandRecovered, IslandValidation, IslandLeaving, IslandLinkReport,
                                   IslandChunks, IslandDurable, IslandUploaded, IslandLeaseReturned, IslandEvaluation>;

// ---- hub -> island

struct RosterEntry {
  IslandId id;
  std::string display_name;
  Address address;         // where to dial its inbound port
  std::string key_sha256;  // hex; of the only key with which it is admitted (PeerCertificate)
  // As its hello says; empty: it does not, or the hub is of an older version.
  std::string software = {}, region = {};
};

struct HubWelcome {
  int version = kMeshVersion;
  RunConfig run;
  OuterStep outer_step;  // committed so far
  SignedEpoch epoch = {};
};

struct HubRoster {  // whenever it changes; live members only
  std::vector<RosterEntry> islands;
  std::vector<IslandId> removed = {};  // by the run's operator, of late: what they have open is to be closed
};

// Fetch this state from these islands, or, with none, from the run's store, or outer step 0 from a hub that has it;
// then IslandRecovered.
struct HubRecover {
  OuterStep outer_step;
  std::string state_hash;
  std::vector<IslandId> sources;  // in the roster
};

struct HubInitialise {  // outer step 0: make the initial parameters from the run's seed, then say IslandRecovered
};

struct HubRoundBegin {  // again, of the same round with another lease: what was trained for the one before is given up
  OuterStep round;
  std::uint32_t inner_steps = 0;
  std::uint64_t lease_first_sequence = 0;  // positions in the run's sequence order (net/data/sequence_order.h)
  std::uint64_t lease_sequences = 0;
  bool validate = false;                   // this island evaluates the outer parameters that it holds first
  FragmentId fragment = {};                // of the round
  std::optional<DecidedDecay> decay = {};  // as the run's organiser decided; empty: as its configuration says
  // As the run's organiser decided, all that have begun; before their positions it is as its configuration says.
  std::vector<MixtureEra> mixture = {};
  // Where this island's next lease begins, if all goes on as it does: its data may be fetched ahead. Nothing is
  // promised.
  std::optional<std::uint64_t> expected_sequence = {};
  bool evaluate = false;  // this island tries the run's tasks on the outer parameters that it holds, while it trains
};

struct AttemptMember {
  IslandId id;
  Address address;
  std::uint64_t tokens = 0;
  bool dials_previous = false;  // nobody can dial this island: it dials the rank before it, which else dials it
};

struct HubAttempt {  // average now, in this order
  OuterStep round;
  Attempt attempt;
  std::vector<AttemptMember> order;
  // By bucket: all members said that they hold the average that the attempt before this one made of it, which stays.
  // Empty: all are averaged.
  std::vector<bool> final_buckets = {};
  // The run's, or another one that this attempt's members can do with; final buckets are of the same.
  WireFormat wire = WireFormat::kInt8Block;
  // For people, by rank: what the hub knows of the link from that member to the next, bytes/s; 0: nothing. Empty: of
  // none, or the hub is of an older version.
  std::vector<double> edge_bytes_per_second = {};
  // The L2 norm that the average has at most, if each member gave what it said that it gives (the weighted mean of
  // their norms); whoever holds a larger one refuses it. 0: not known.
  double norm_limit = 0;
  FragmentId fragment = {};  // of the round
  // `order` is the ranks' in either. A hub of an older version says none, and means the ring's.
  Schedule schedule = Schedule::kRing;
};

struct HubAbort {  // this attempt and all before it are over
  OuterStep round;
  Attempt attempt;
  std::string reason;
  FragmentId fragment = {};  // of the round
};

struct HubCommit {  // the round is decided, on the hub's disk; the one that holds `digest` takes the outer step
  OuterStep round;
  Attempt attempt;
  std::string digest;
  double outer_learning_rate = 0;
  double outer_momentum = 0;
  std::vector<AttemptMember> members;
  std::string signature;  // over commit_record(*this), by the hub's key, base64url
  std::uint64_t epoch = 0;
  // Members that held the average when it was committed: the others were lost in the attempt, after giving their part.
  std::vector<IslandId> holders = {};
  std::uint64_t lease_cursor = 0;  // first position of the run's sequence order that was never leased, at that time
  FragmentId fragment = {};        // of the round
  std::vector<MixtureEra> mixture = {};  // as HubRoundBegin::mixture
};

// A commit with what it takes to check its signature: what islands keep, and show to a hub that knows less.
struct SignedCommit {
  HubCommit commit;
  std::string hub_certificate;  // PEM
};

struct HubGoodbye {  // the hub closes: refused, removed, finished
  ErrorCode code = ErrorCode::kAborted;
  std::string message;    // for a person
  bool finished = false;  // the run reached max_rounds
};

// Whom the next attempt would have this island connect with, if it began now: what it has to dial can be dialled
// meanwhile (net/collective/dial_ahead.h). While nothing is averaged, again when it changes, and for each attempt anew.
// It is advice: nothing is promised, and who does not heed it loses nothing but time.
struct HubNeighbours {
  // As HubAttempt::order, tokens aside; round a ring of more than three the member before, this island and the next.
  std::vector<AttemptMember> order;
  Schedule schedule = Schedule::kRing;
  std::uint64_t bytes_to_each = 0;  // that this island would send to each to whom it sends; 0: not known
};

struct HubProbe {  // measure the link from this island to yourself now, then say IslandLinkReport
  IslandId from;   // in the roster
  std::uint64_t bytes = 0;
};

struct HubShowChunks {  // members of this attempt hold different averages: say IslandChunks
  OuterStep round;
  Attempt attempt;
  FragmentId fragment = {};  // of the round
};

struct HubNotice {   // why the run stands still, or what was amiss with this island's work; empty: nothing (any more)
  std::string text;  // for a person
};

// Whenever it changes, also for less, and to each that comes: up to here nothing is lost, whatever
// RunConfig::safe_copies - 1 disks do. Outer step 0, which can be made again: no more than that.
struct HubSafe {
  OuterStep outer_step;
};

// Write this state to RunConfig::upload_store, then say IslandUploaded. One before it that is another is given up.
struct HubUpload {
  OuterStep outer_step;
  std::string state_hash;  // tree hash, hex
};

using HubMessage =
    std::variant<HubWelcome, HubRoster, HubRecover, HubInitialise, HubRoundBegin, HubAttempt, HubAbort, HubCommit,
                 HubGoodbye, HubProbe, HubShowChunks, HubNotice, HubSafe, HubUpload, HubNeighbours>;

std::string encode(const IslandMessage& message);
std::string encode(const HubMessage& message);
Result<IslandMessage> decode_island_message(std::string_view text);
Result<HubMessage> decode_hub_message(std::string_view text);

// The bytes that the hub signs for a commit: canonical JSON of all that it says but addresses.
std::string commit_record(const HubCommit& commit);
// And for its epoch.
std::string epoch_record(const std::string& run_id, std::uint64_t epoch);

// A kept commit as JSON text, and back: one line of an island's record of commits.
std::string encode(const SignedCommit& commit);
Result<SignedCommit> decode_signed_commit(std::string_view text);
std::string encode(const SignedEpoch& epoch);
Result<SignedEpoch> decode_signed_epoch(std::string_view text);

}  // namespace atl
