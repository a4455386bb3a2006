// Islands that hold an outer state and serve it on 127.0.0.1, well or badly. For tests.
#pragma once

#include <memory>
#include <vector>

#include "net/recovery/outer_state.h"
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
  // `state` outlives it.
  StatePeer(const Identity& identity, const FakeState& state, Behaviour behaviour = Behaviour::kGood,
            const HttpsPaceLimits& pace = {});

  StateSourceAddress address() const { return {name_, {"127.0.0.1", listener_->port()}}; }
  int chunks_asked() const { return chunks_asked_; }
  int serving() const { return serving_; }  // connections

 private:
  void serve(TlsConnection connection, HttpSession& session);
  void serve_badly(TlsConnection& connection, const AbortSignal& abort);

  const IslandId name_;
  const FakeState& state_;
  const Behaviour behaviour_;
  const HttpsPaceLimits pace_;
  std::atomic<int> chunks_asked_{0}, serving_{0};
  RingInbox inbox_;
  std::unique_ptr<PeerListener> listener_;  // last: its threads use those above
};

// A request's head, without its last empty line; empty when the peer closed.
std::string read_request_head(TlsConnection& connection, const AbortSignal& abort);

}  // namespace atl
