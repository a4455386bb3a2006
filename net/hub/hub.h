// The hub of one run: what `atoll hub init | serve | invite` do. A hub is a directory (0700): the run's certificate
// authority, the hub's own identity, run.json and hub.db. HubServer owns its thread; hub_init and create_invite block
// on the disk.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "net/base/address.h"
#include "net/base/id.h"
#include "net/base/network_address.h"
#include "net/base/result.h"
#include "net/hub/evaluation_files.h"
#include "net/hub/hub_data.h"
#include "net/tls/identity.h"
#include "net/wire/run_config.h"

namespace atl {

class BaseModel;  // net/hub/base_model.h
struct HubState;  // net/control/hub_state.h

struct HubInitOptions {
  std::filesystem::path directory;       // made; an error when it holds a hub already
  std::vector<HubDataSource> data;       // at least one
  RunConfig run;                         // run_id and dataset_json are filled in
  std::string operator_name = {};        // told to whoever holds an invite; may be empty
  std::vector<NamedShare> weights = {};  // of `data`; none: by their tokens
  OnIndexing on_indexing = {};           // may be empty
  std::string initial_hash = {};         // tree hash of outer step 0, hex, with run.initial_state; else empty
  // With which the run begins, of run.model_json's shape; null: with what `run` says. Outlives the call.
  const BaseModel* base_model = nullptr;
  // What is asked of its outer states, every so many rounds; without tasks nothing is.
  std::vector<EvaluationFile> evaluation = {};
  std::uint32_t evaluate_every = 0;
};
inline constexpr std::size_t kMaxOperatorName = 64;  // bytes

// Makes authority, identity and store. The run's configuration as it now stands in run.json. kInvalidArgument: no
// island could train it.
Result<RunConfig> hub_init(const HubInitOptions& options);

struct InviteOptions {
  std::vector<Address> addresses;  // where islands reach the hub; empty: where it last served
  std::uint32_t uses = 1;
  std::chrono::seconds valid_for{std::chrono::hours(24)};
};

struct InviteReport {
  std::string text;  // "atoll1...": a secret, shown once
  std::string id;    // public
  std::vector<Address> addresses;
  std::int64_t expires_at = 0;  // seconds since 1970
};

// Any process that may write the directory, also while the hub serves.
Result<InviteReport> create_invite(const std::filesystem::path& hub_directory, const InviteOptions& options);

struct GivenInvite {
  std::string id;
  std::uint32_t uses_left = 0;
  std::int64_t expires_at = 0;  // seconds since 1970
  bool revoked = false;
};
// As create_invite: those that were ever made, the newest first; and one taken back, which kNotFound does not know.
Result<std::vector<GivenInvite>> given_invites(const std::filesystem::path& hub_directory);
Status revoke_invite(const std::filesystem::path& hub_directory, const std::string& id);

struct HubServeOptions {
  std::filesystem::path directory;
  Address listen{"0.0.0.0", 0};     // port 0: any free one
  std::vector<Address> advertised;  // for invites; empty: the listen address. A port 0 becomes the real one
  std::vector<NetworkRange> trusted_proxies = {};  // they say where connections come from (HubPortLimits)
  std::chrono::seconds certificate_lifetime = kIslandCertificateLifetime;  // of islands
  int joins_at_once = 30;                                                  // of a member, which is then held to a rate
};

struct EnrolledIslandReport {
  std::string id, name;
  std::int64_t enrolled_at = 0;  // seconds since 1970
  bool removed = false;
};
// As create_invite, also while the hub serves.
Result<std::vector<EnrolledIslandReport>> enrolled_islands(const std::filesystem::path& hub_directory);
Status remove_enrolled_island(const std::filesystem::path& hub_directory, const std::string& island);
// From now on (after a restart of the hub) that source of its data is read there: the same dataset, moved. `source` may
// be empty where there is one.
Status move_dataset(const std::filesystem::path& hub_directory, const std::string& source,
                    const std::filesystem::path& dataset);

// What an organiser asks for; what is left out: from the next round on, to the configuration's final rate.
struct DecayWish {
  std::optional<std::uint32_t> from_round = {};
  std::uint32_t rounds = 1;
  std::optional<double> final_learning_rate = {};
  DecayShape shape = DecayShape::kOneMinusSqrt;
};

// What an organiser asks for: other shares of the run's sources, by their names (net/wire/mixture.h).
struct MixtureWish {
  std::optional<std::uint32_t> from_round = {};  // empty: the next
  std::string weights;                           // "web=0.55,code=0.2"; a source that is not named has none
};

class HubServer {
 public:
  // round.begin, round.commit, island.joined, island.dead, island.left, attempt.failed, validation, run.finished; with
  // what they are about. On the hub's thread; must not block. May be empty.
  using OnEvent = std::function<void(std::string_view event, const nlohmann::json& data)>;

  // kNotFound when the directory holds no hub; kPermissionDenied when another process serves it or the port is taken.
  static Result<std::unique_ptr<HubServer>> start(const HubServeOptions& options, OnEvent on_event);
  ~HubServer();  // closes (at most 1 s), joins. The islands look for the next hub

  // Any thread.
  std::uint16_t port() const;
  HubState state() const;
  // Sends a member away: its connection is closed, the others forget it. Its certificate is no longer admitted once
  // remove_enrolled_island() has returned; call that first.
  void send_away(const std::string& island);
  // Undoes all rounds from `to` on: islands go back to that outer state, their leases are given out again. By the
  // operator's decision; recorded, in a new epoch. kNotFound for a state that was never agreed on, and without `force`
  // for one that no island which is here keeps and no store: the run would stand still. kInvalidArgument for one that
  // is not committed.
  Status roll_back(OuterStep to, const std::string& reason, bool force = false);
  // The learning rate falls from a round on that has not begun, instead of as the run's configuration says. Recorded,
  // and told with each round. kInvalidArgument says what is wrong with the wish; a decay that began stays.
  Result<DecidedDecay> decide_decay(const DecayWish& wish);
  Status cancel_decay();  // one that has not begun; kNotFound where none was decided
  // Data that is leased from a round on that has not begun is taken from the run's sources in these shares. Recorded,
  // signed with each commit, and told with each round; one that was decided before and has not begun is replaced. As it
  // was decided, with each source named. kInvalidArgument says what is wrong with the wish.
  Result<MixtureWish> decide_mixture(const MixtureWish& wish);
  Status cancel_mixture();  // one that has not begun; kNotFound where none was decided
  Status health() const;    // the error with which it stopped serving (its disk is full), ok until then

 private:
  class Impl;
  explicit HubServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace atl
