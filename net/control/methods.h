// The methods of the control protocol that do something (docs/control.md, "Methods"): one struct of parameters each,
// named by kName, and what they answer. Made by who calls, read by who serves. Plain values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <nlohmann/json_fwd.hpp>

#include "net/base/result.h"
#include "net/control/transfer_caps.h"
#include "net/control/words.h"

namespace atl {
namespace method {

struct StateGet {  // of all: the answer is the server's state
  static constexpr std::string_view kName = "state.get";
};

// ---- what the owner of a machine wants, of its agent: answered with a WishTaken

struct Pause {
  static constexpr std::string_view kName = "pause";
  std::optional<double> for_seconds = {};  // empty: until it is resumed
};
struct Resume {
  static constexpr std::string_view kName = "resume";
};
struct Finish {
  static constexpr std::string_view kName = "finish";
};
struct Stop {  // of a trainer and a hub, too: there it is answered with a Stopping
  static constexpr std::string_view kName = "stop";
  bool now = false;  // without a goodbye
};
struct Leave {
  static constexpr std::string_view kName = "leave";
  bool force = false;
};

// One of the island's GPUs is left to others; a trainer that runs goes on with its work on those that are left.
// Answered with a GpusTaken.
struct GpuPause {
  static constexpr std::string_view kName = "gpu.pause";
  std::uint32_t gpu = 0;                   // as nvidia-smi counts
  std::optional<double> for_seconds = {};  // empty: until it is resumed
};
struct GpuResume {
  static constexpr std::string_view kName = "gpu.resume";
  std::uint32_t gpu = 0;
};
struct GpusTaken {
  std::string gpus = {};  // that the island trains on now: "0,2-7"
  bool kept = false;      // on the disk
  std::string warning = {};
};

struct Stake {  // what a pause loses that outlives the open round
  std::uint32_t round = 0, inner_steps = 0, of = 0;
  std::optional<double> round_ends_in_seconds = {};
};
struct WishTaken {
  Wish wish = Wish::kUnknown;
  bool kept = false;  // on the disk
  std::optional<std::int64_t> paused_until_unix_seconds = {};
  std::string warning = {};  // a restart of the machine forgets it
  std::optional<Stake> at_stake = {};
};
struct Stopping {};

// ---- joining and checks, of an agent: answered with a Started; then events tell

struct Join {
  static constexpr std::string_view kName = "join";
  std::string invite = {};  // secret; empty: back to the run joined before
  std::string name = {}, listen = {}, advertise = {}, gpus = {}, device = {}, precision = {};
  std::optional<std::uint32_t> local_ranks = {}, threads = {}, micro_batch = {};
  bool leave = false;  // another run, which this machine has joined
};
struct JoinCancel {  // answered with a Cancelled
  static constexpr std::string_view kName = "join.cancel";
};
struct InviteLook {
  static constexpr std::string_view kName = "invite.look";
  std::string invite = {};
};
struct CheckRun {
  static constexpr std::string_view kName = "check.run";
  bool full = false;
  std::string invite = {};  // text or link of the run to be joined; empty: the one that was, if any
};
struct Started {};
struct Cancelled {
  bool cancelled = false;
  std::string warning = {};
};

// ---- of a trainer

struct AgentAlive {  // its agent lives; answered with the state
  static constexpr std::string_view kName = "agent.alive";
  std::optional<TransferCaps> caps = {};  // from now on; empty: as before, by an agent that does not say it
};
struct ModelExport {
  static constexpr std::string_view kName = "model.export";
  std::string directory = {};         // absolute
  std::string dtype = {};             // "float32", "bfloat16"; empty: the first
  std::uint64_t max_shard_bytes = 0;  // 0: 5 GB
};
struct ModelExported {
  std::string directory = {};
  std::uint32_t outer_step = 0;
};

// ---- of a hub

struct IslandSendAway {
  static constexpr std::string_view kName = "island.send_away";
  std::string island = {};
};
struct RunRollback {
  static constexpr std::string_view kName = "run.rollback";
  std::uint32_t to = 0;
  std::string reason = {};  // empty: by its operator
  bool force = false;       // also to a state that nobody is known to have
};
struct RolledBackTo {
  std::uint32_t outer_step = 0;
};
struct RunDecay {  // answered with a DecayDecided; what is left out: from the next round on, to the run's final rate
  static constexpr std::string_view kName = "run.decay";
  std::optional<std::uint32_t> from_round = {};
  std::uint32_t rounds = 0;
  std::optional<double> final_learning_rate = {};
  std::string shape = {};  // "1-sqrt", "linear", "cosine"; empty: the first
};
struct DecayDecided {
  std::uint32_t from_round = 0, rounds = 0;
  double final_learning_rate = 0;
  std::string shape = {};
};
struct RunDecayCancel {
  static constexpr std::string_view kName = "run.decay_cancel";
};
struct RunMixture {  // answered with a MixtureDecided; what is left out: from the next round on
  static constexpr std::string_view kName = "run.mixture";
  std::optional<std::uint32_t> from_round = {};
  std::string weights = {};  // "web=0.55,code=0.2": shares of the run's sources, of any sum
};
struct MixtureDecided {
  std::uint32_t from_round = 0;
  std::string weights = {};  // of all sources, of the sum 1
};
struct RunMixtureCancel {
  static constexpr std::string_view kName = "run.mixture_cancel";
};

}  // namespace method

// All that can be asked for.
template <class... Each>
struct Methods {
  template <class Message>
  static constexpr bool kHas = (std::is_same_v<Message, Each> || ...);
};
using AllMethods =
    Methods<method::StateGet, method::Pause, method::Resume, method::Finish, method::Stop, method::Leave,
            method::GpuPause, method::GpuResume, method::Join, method::JoinCancel, method::InviteLook, method::CheckRun,
            method::AgentAlive, method::ModelExport, method::IslandSendAway, method::RunRollback, method::RunDecay,
            method::RunDecayCancel, method::RunMixture, method::RunMixtureCancel>;

// For the types above.
template <class Message>
nlohmann::json encode_message(const Message& message);
// kInvalidArgument names the field.
template <class Message>
Result<Message> decode_message(const nlohmann::json& json);

}  // namespace atl
