// A hub in a temporary directory, served on 127.0.0.1, and islands that do all that the mesh asks but train: what
// loopback tests of hub and mesh stand on.
#pragma once

#include <QTemporaryDir>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "net/base/mutex.h"
#include "net/control/hub_state.h"
#include "net/hub/hub.h"
#include "net/mesh/mesh_client.h"
#include "net/transport/peer_listener.h"

namespace atl {

class LoopbackHub {
 public:
  explicit LoopbackHub(RunConfig run, std::chrono::seconds certificate_lifetime = kIslandCertificateLifetime,
                       const std::string& operator_name = {}, const BaseModel* base_model = nullptr);

  void start();  // at the same port as before, if there was one
  void stop() { server_.reset(); }
  HubServer& server() { return *server_; }
  Address address() const { return {"127.0.0.1", port_}; }
  std::filesystem::path directory() const;
  std::filesystem::path dataset() const;
  const RunConfig& run() const { return run_; }

  Identity enrol(const std::string& name);  // by a fresh invite
  // True as soon as `holds` does; false after `seconds`.
  bool wait(const std::function<bool(const HubState&)>& holds, double seconds = 8);
  int count(const std::string& event) const;

 private:
  QTemporaryDir directory_;
  RunConfig run_;
  const std::chrono::seconds certificate_lifetime_;
  std::uint16_t port_ = 0;
  mutable Mutex mutex_;
  std::vector<std::string> events_ ATOLL_GUARDED_BY(mutex_);
  std::unique_ptr<HubServer> server_;
};

// A run of small timeouts.
RunConfig loopback_run(std::uint32_t islands, std::uint32_t max_rounds);

// Answers as an island does whose average is a function of round and members. Owns its thread.
class PuppetIsland {
 public:
  // An island that is not reachable announces a port at which nobody listens.
  // `name`: as it calls itself; empty: as it enrolled. `advertised`: the host that it names.
  PuppetIsland(Address hub, const Identity& identity, bool reachable = true, std::string name = {},
               std::string advertised = {});
  ~PuppetIsland();  // as kill -9 does: without a word, as far as the mesh client lets it

  void hold(bool held) { held_ = held; }  // while held it answers nothing
  std::uint32_t outer_step() const { return outer_step_; }
  std::string state_hash() const;
  std::optional<Error> ended() const;  // why the mesh client gave up
  bool finished() const { return finished_; }
  std::vector<AttemptMember> last_order() const;  // of the newest attempt
  bool connected() const { return client_->connected(); }
  // How often the mesh client said that the hub is lost, and that it is back.
  int times_lost() const { return times_lost_; }
  int times_back() const { return times_back_; }
  MeshClient& client() { return *client_; }

 private:
  void run();
  void answer(const HubMessage& message);
  IslandHello hello() const;

  const std::string name_;
  const std::string advertised_;
  std::atomic<bool> stop_{false}, held_{false}, finished_{false};
  std::atomic<std::uint32_t> outer_step_{0};
  std::atomic<int> times_lost_{0}, times_back_{0};
  mutable Mutex mutex_;
  std::string initial_hash_;  // its own thread's
  std::string state_hash_ ATOLL_GUARDED_BY(mutex_);
  std::optional<Error> ended_ ATOLL_GUARDED_BY(mutex_);
  std::vector<AttemptMember> last_order_ ATOLL_GUARDED_BY(mutex_);
  // The island's thread alone:
  std::optional<HubRoundBegin> round_;
  std::optional<IslandReady> ready_;
  std::pair<Attempt, std::string> average_;
  RingInbox inbox_;
  std::unique_ptr<PeerListener> listener_;
  std::unique_ptr<MeshClient> client_;
  std::jthread thread_;
};

}  // namespace atl
