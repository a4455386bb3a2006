// Islands that hold an outer state and serve it on 127.0.0.1, well or badly. For tests.
#pragma once

#include <memory>
#include <vector>

#include "net/disk/round_log.h"
#include "net/recovery/outer_state.h"
#include "net/recovery/served_rounds.h"
#include "net/recovery/serving_pace.h"
#include "net/recovery/state_fetch.h"
#include "net/transport/https_pace.h"
#include "net/transport/peer_listener.h"
#include "tests/fakes/test_run.h"

namespace atl {

// A state in memory, made from a seed; the same seed gives the same bits.
class FakeState : public OuterStateSource {
 public:
  FakeState(OuterStep version, std::uint64_t numel, std::uint32_t seed);

  Result<StateManifest> manifest() const override { return manifest_; }
  Result<Bytes> copy_chunk(OuterStep version, std::uint64_t index) const override;

  const std::vector<float>& parameters() const { return parameters_; }
  const std::vector<float>& momentum() const { return momentum_; }
  std::string tree_hash() const { return to_hex(manifest_.tree_hash()); }

 private:
  std::vector<float> parameters_;
  std::vector<float> momentum_;
  StateManifest manifest_;
};

enum class Behaviour {
  kGood,
  kLies,     // a bit of every chunk is wrong
  kDies,     // closes in the middle of every chunk, and after that serves nothing
  kStalls,   // falls silent in the middle of every chunk
  kMovesOn,  // has the manifest, but when asked for a chunk has another version
};

// One island with its inbound port.
class StatePeer {
 public:
  // `state` and `rounds`, which may be null, outlive it.
  StatePeer(const Identity& identity, const OuterStateSource& state, Behaviour behaviour = Behaviour::kGood,
            const HttpsPaceLimits& pace = {}, const RoundLog* rounds = nullptr,
            std::optional<double> upload_bytes_per_second = {}, std::string host = "127.0.0.1");

  StateSourceAddress address() const { return {name_, {host_, listener_->port()}}; }
  ServingPace& serving_pace() { return serving_pace_; }
  int chunks_asked() const { return chunks_asked_; }
  int serving() const { return serving_; }  // connections

 private:
  void serve(TlsConnection connection, HttpSession& session);
  void serve_badly(TlsConnection& connection, const AbortSignal& abort);

  const IslandId name_;
  const std::string host_;
  const OuterStateSource& state_;
  std::optional<ServedRounds> rounds_;
  const Behaviour behaviour_;
  const HttpsPaceLimits pace_;
  ServingPace serving_pace_;
  std::atomic<int> chunks_asked_{0}, serving_{0};
  RingInbox inbox_;
  std::unique_ptr<PeerListener> listener_;  // last: its threads use those above
};

// All of it by chunks, from nothing, in one go.
Result<FetchedState> fetch_whole_state(const Identity& self, const std::vector<StateSourceAddress>& sources,
                                       OuterStep version, const std::string& tree_hash_hex, std::uint64_t numel,
                                       const AbortSignal& abort, const FetchProgress& progress,
                                       const StateFetchOptions& options = {});

// A request's head, without its last empty line; empty when the peer closed.
std::string read_request_head(TlsConnection& connection, const AbortSignal& abort);

}  // namespace atl
