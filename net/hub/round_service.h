// The round coordinator with its clock and its disk: an event goes in, what comes out is written, said, or told to
// people, in its order. What is to be on the disk before it is said is. On the hub's thread, but for state().
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/base/mutex.h"
#include "net/hub/hub.h"
#include "net/hub/hub_store.h"
#include "net/hub/hub_view.h"
#include "net/mesh/round_coordinator.h"
#include "net/tls/identity.h"

namespace atl {

// Where what it does goes that is not for the disk.
class RoundOutlet {
 public:
  virtual ~RoundOutlet() = default;
  virtual void send(const IslandId& island, HubMessage message) = 0;  // to nobody, when it is not here
  virtual void close(const IslandId& island) = 0;                     // after what was sent before it
  virtual void dial(const IslandId& island, const Address& address) = 0;
  virtual void post(std::function<void()> later) = 0;  // on the hub's thread, after this event
  virtual bool is_serving() const = 0;                 // until stop_serving(), and while nobody ends the hub
  virtual bool is_ending() const = 0;
  virtual void stop_serving(const Error& error) = 0;
};

class RoundService {
 public:
  // In a new epoch, from where the store is. `run`, `identity`, `store` and `outlet` outlive it.
  static Result<std::unique_ptr<RoundService>> open(const RunConfig& run, const Identity& identity, HubStore& store,
                                                    RoundOutlet& outlet, HubServer::OnEvent on_event);
  // Before the first event: where islands reach the hub, for people.
  void begin(const std::vector<Address>& addresses);

  // What is thrown in its midst leaves a state that is not whole, and things half said: a hub that starts again from
  // its disk is whole.
  void step(const CoordinatorEvent& event);
  Status roll_back(OuterStep to, const std::string& reason, bool automatic);
  // kNotFound, and what is there: no island that is here keeps it, and no store, so that the run would stand still.
  Status can_go_on_from(OuterStep to) const;
  // As HubServer::decide_decay.
  Result<DecidedDecay> decide_decay(const DecayWish& wish);
  Status cancel_decay();
  // As HubServer::decide_mixture.
  Result<MixtureWish> decide_mixture(const MixtureWish& wish);
  Status cancel_mixture();

  const RoundCoordinator& coordinator() const { return *coordinator_; }
  const SignedEpoch& epoch() const { return epoch_; }  // in which it serves
  HubState state() const;                              // any thread
  const std::string& past();                           // the answer to GET /past: of all rounds that count now

 private:
  RoundService(const RunConfig& run, const Identity& identity, HubStore& store, RoundOutlet& outlet,
               HubServer::OnEvent on_event);
  Status read_store();
  std::vector<std::string> sources_;  // names of the run's sources of data
  EvaluationCurves curves_;           // of before, until begin()
  Status may_decide_decay() const;    // none has begun
  std::string sign(const HubCommit& commit) const;
  Result<SignedEpoch> sign_epoch(std::uint64_t epoch) const;
  void take(const CoordinatorEvent& event);
  Clock::time_point round_time();
  Status carry_out_in_the_end(const CoordinatorAction& action);
  Status carry_out(const SendTo& send);
  Status carry_out(const CloseConnection& close);
  Status carry_out(const DialIsland& dial);
  Status carry_out(const PersistCommit& commit);
  Status carry_out(const PersistRollback& back);
  Status carry_out(const WantRollback& want);
  Status carry_out(const StepDown& down);
  Status carry_out(const Publish& publish);
  template <class Persist>
  Status carry_out(const Persist& persist) {
    return store_.save(persist);
  }
  void announce(const CoordinatorNews& news);
  void count_accepted();
  void read_past();

  const RunConfig& run_;
  const Identity& identity_;
  HubStore& store_;
  RoundOutlet& outlet_;
  const HubServer::OnEvent on_event_;
  SignedEpoch epoch_;
  std::optional<RoundCoordinator> coordinator_;
  std::optional<HubView> view_;
  Clock::time_point last_step_ = Clock::now();
  Clock::duration stood_still_{0};
  std::string past_;  // empty: to be made anew
  mutable Mutex mutex_;
  HubState state_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace atl
