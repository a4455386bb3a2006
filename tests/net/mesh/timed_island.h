// One island of a TimedMesh: messages of the hub go in, its own come out, as the trainer's do, after the time that its
// work takes. What it may do otherwise than an honest one is virtual. One fragment. One thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/base/deadline.h"
#include "net/mesh/coordinator_types.h"
#include "tests/net/mesh/timed_ring.h"

namespace atl {

class TimedMesh;

class TimedIsland {
 public:
  TimedIsland(TimedMesh& mesh, IslandId id) : mesh_(mesh), id_(std::move(id)) {}
  virtual ~TimedIsland() = default;
  TimedIsland(const TimedIsland&) = delete;
  TimedIsland& operator=(const TimedIsland&) = delete;

  const IslandId& id() const { return id_; }
  virtual bool honest() const { return true; }
  bool linked() const { return linked_; }
  const std::optional<OuterStep>& outer_step() const { return outer_step_; }
  const std::string& state_hash() const { return state_hash_; }

  void link();    // (re)connects
  void unlink();  // its connection breaks
  // The hub's, which take their time to come.
  void is_sent(const HubMessage& message) {
    later_by_a_message([this, message] { hears(message); });
  }
  void is_closed() {
    later_by_a_message([this] { closed(); });
  }
  virtual void ticks() {}               // four times a second
  void say_now(IslandMessage message);  // as it is

  // ---- in an attempt
  virtual Port port(bool /*for_hub*/) const { return Port::kOpen; }
  virtual RingConduct conduct(const HubAttempt&) { return RingConduct::kTakesPart; }
  virtual TimedValues gradient() const { return gradient_; }  // that it gives
  void averaged(const HubAttempt& attempt, const TimedValues& average, const std::string& digest);
  void average_failed(const HubAttempt& attempt, IslandAttemptFailed report);
  bool holds(const std::string& digest) const { return average_ && average_->digest == digest; }
  struct Average {
    Attempt attempt;
    TimedValues values{};
    std::string digest;  // empty: it was aborted, or is not whole
    bool whole = false;
  };
  const std::optional<Average>& average() const { return average_; }
  const std::optional<HubRoundBegin>& round() const { return round_; }

 protected:
  // ---- what a liar does otherwise. False: that was all.
  virtual bool takes(const HubMessage&) { return true; }  // a message of the hub
  virtual bool says(IslandMessage&) { return true; }      // a message to the hub, which it may alter
  virtual Clock::duration inner_phase();                  // how long it takes
  virtual Clock::duration fetch();                        // the model
  virtual void was_closed() {}                            // by the hub, with or without a goodbye
  virtual IslandHello hello();

  void hold(OuterStep step, const std::string& hash);  // as if it did
  void adopt(OuterStep step, const std::string& hash);
  void say(IslandMessage message);
  void later(Clock::duration time, std::function<void()> act);  // while this connection lasts
  void enter_attempt(const HubAttempt& attempt);

  TimedMesh& mesh_;

 private:
  void take(const HubWelcome&) {}
  void take(const HubInitialise&);
  void take(const HubRecover& recover);
  void take(const HubRoundBegin& begin);
  void take(const HubAttempt& attempt);
  void take(const HubAbort& abort);
  void take(const HubCommit& commit);
  void take(const HubShowChunks& show);
  void take(const HubGoodbye&) { said_goodbye_ = true; }
  void take(const HubProbe& probe);
  template <class Other>
  void take(const Other&) {}
  void later_by_a_message(std::function<void()> act);
  void hears(const HubMessage& message);
  void closed();
  void drop_round();
  void try_to_recover();
  void finish_training();
  void say_ready();
  void refuse(OuterStep round, Attempt attempt, const std::string& why, bool whole = false);
  void beat();

  const IslandId id_;
  bool linked_ = false, said_goodbye_ = false;
  unsigned connection_ = 0;  // counts them
  std::optional<OuterStep> outer_step_;
  std::string state_hash_;
  std::vector<HeldState> durable_;
  std::optional<HubRecover> recover_;
  unsigned recovery_ = 0, phase_ = 0;  // count them
  std::optional<HubRoundBegin> round_;
  std::optional<IslandReady> ready_;  // as said
  TimedValues gradient_{};
  std::shared_ptr<TimedRing> ring_;  // in which it is, or was last
  std::optional<Average> average_;
};

}  // namespace atl
