// Islands (simulated_island.h) around a RoundCoordinator: messages are queues that a test delivers in the order that it
// likes. Checks what must always hold while it does so. One thread.
#pragma once

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "net/mesh/round_coordinator.h"
#include "tests/net/mesh/simulated_disk.h"
#include "tests/net/mesh/simulated_island.h"

namespace atl {

class SimulatedMesh : public SimulatedWorld {
 public:
  using Lies = SimulatedIsland::Lies;
  using Island = SimulatedIsland;

  // `fragment_numels`: as the hub knows them of its model.
  explicit SimulatedMesh(RunConfig its_run, std::vector<std::int64_t> fragment_numels = {});

  Island& island(int number);  // made on first use
  std::map<int, Island>& islands() { return all; }
  RoundCoordinator& hub() { return *hub_; }

  void start(int number);                                // a new process, without state
  void link(int number);                                 // (re)connects
  void cut(int number);                                  // the connection breaks; what was under way is lost
  void kill(int number);                                 // kill -9
  void remove(int number);                               // by the run's operator
  void restart_hub();                                    // with what was persisted
  void roll_back(OuterStep to, bool automatic = false);  // its operator's decision
  void back_up() { backup_ = disk_; }                    // the hub's disk, as it is now
  void restore();                                        // and a hub on that, in a later epoch
  void say(int number, IslandMessage message);           // straight to the hub, now
  void hub_hears(const CoordinatorEvent& event) { carry_out(hub_->next(event, now_)); }
  void pass(Clock::duration time);  // then a tick
  void tick() { pass({}); }

  // One step of one island: takes a message, delivers one, or works. False when it has nothing to do.
  bool act(Island& island);
  // Everybody acts in turn until nobody has anything to do (heartbeats are said at every tick).
  void settle();
  void settle_once();  // everybody acts once
  void settle_randomly(std::mt19937& random, int steps);

  // What was seen to break a rule; empty while all is well.
  const std::string& violation() const { return broken_rule; }
  const std::vector<HubCommit>& commits() const { return commits_; }
  const std::vector<DialIsland>& dials() const { return dials_; }
  const std::vector<CoordinatorNews>& news() const { return news_; }
  std::vector<LeaseRange> committed_leases() const { return disk_.committed_leases(); }
  template <class News>
  int count() const {
    int found = 0;
    for (const CoordinatorNews& news : news_) found += std::holds_alternative<News>(news) ? 1 : 0;
    return found;
  }

  bool stepped_down = false;    // the hub saw that another one serves
  int rollbacks_that_fail = 0;  // of those that the hub asks for: its disk is busy
  std::size_t most_open = 0;    // rounds at once
  int direct_attempts = 0;      // that were sent to somebody

 private:
  void carry_out(const RoundCoordinator::Actions& actions);
  void carry_out(const SendTo& send);
  void carry_out(const CloseConnection& close);
  void carry_out(const DialIsland& dial) { dials_.push_back(dial); }
  void carry_out(const PersistCommit& persist);
  void carry_out(const PersistRollback& back);
  void carry_out(const WantRollback& want) { wants_back_ = want.to; }
  void carry_out(const StepDown&) { stepped_down = true; }
  void carry_out(const Publish& publish) { news_.push_back(publish.news); }
  template <class Persist>
  void carry_out(const Persist& persist) {
    disk_.save(persist);
  }

  const std::vector<std::int64_t> fragment_numels_;
  Clock::time_point now_ = Clock::time_point(std::chrono::hours(1));
  SimulatedDisk disk_;
  std::optional<SimulatedDisk> backup_;
  std::optional<OuterStep> wants_back_;
  bool just_committed_ = false;  // by the actions that are being carried out
  std::vector<HubCommit> commits_;
  std::vector<CoordinatorNews> news_;
  std::vector<DialIsland> dials_;
  std::optional<RoundCoordinator> hub_;
};

}  // namespace atl
