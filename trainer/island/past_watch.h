// Asks the hub for the run's past (net/wire/told_past.h), so that the owner of an island that came late sees the run
// from its first round on: when the hub has welcomed the island, and again when rounds were committed since, less often
// the more there is to tell. What no hub tells is refused, and said in the log; a hub of before knows of no past. Owned
// by the island; a thread of its own, on which `told` is called.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/mutex.h"
#include "net/control/events.h"
#include "net/tls/identity.h"
#include "net/wire/mesh.h"

namespace atl {

class PastWatch {
 public:
  struct Surroundings {
    Identity self;
    std::vector<Address> hub;
    std::function<void(const ControlEvent&)> publish;
  };

  explicit PastWatch(Surroundings around);
  ~PastWatch();  // cuts a request under way short

  // What the hub says to the island. Any thread; returns at once.
  void hear(const HubMessage& message);
  // The run is over: asks once more, and waits until that was answered, a few seconds at most.
  void ask_at_the_end();

 private:
  void run(const std::stop_token& stop);
  void look(std::uint32_t inner_steps);
  Result<ToldPast> ask();
  void wait_turn(MutexLock& lock, const std::stop_token& stop) ATOLL_REQUIRES(mutex_);

  const Surroundings around_;
  AbortSignal abort_;
  std::string refusal_;  // said last; the thread's
  Mutex mutex_;
  StoppableCondVar changed_;
  std::uint32_t inner_steps_ ATOLL_GUARDED_BY(mutex_) = 0;  // of the run's rounds; 0: not welcomed yet
  OuterStep newest_ ATOLL_GUARDED_BY(mutex_);               // of which the hub has said that it is committed
  bool news_ ATOLL_GUARDED_BY(mutex_) = false;              // there is more to be told than was
  bool at_once_ ATOLL_GUARDED_BY(mutex_) = false;           // and nobody waits for its turn
  Clock::time_point turn_ ATOLL_GUARDED_BY(mutex_) = {};
  std::uint64_t begun_ ATOLL_GUARDED_BY(mutex_) = 0, over_ ATOLL_GUARDED_BY(mutex_) = 0;  // looks
  std::jthread thread_;                                                                   // last
};

}  // namespace atl
