// What control methods may do with the agent. Any thread; each call returns at once.
#pragma once

#include <functional>
#include <string>

#include "app/agent/agent_board.h"
#include "app/agent/join_stages.h"
#include "app/agent/wish.h"
#include "net/base/abort_signal.h"
#include "net/base/result.h"
#include "net/check/facts.h"
#include "net/control/events.h"
#include "net/control/home.h"

namespace atl {

class AgentControl {
 public:
  virtual ~AgentControl() = default;

  virtual const AgentHome& home() const = 0;
  virtual AgentBoard& board() = 0;
  // Followed from now on, also if it cannot be written down (the error says why). `at_once`: the trainer is killed.
  virtual Status wish(const WishFile& wish, bool at_once) = 0;
  // What the driver says of this machine's GPUs; waits for it, 20 s at most.
  virtual GpuFacts list_gpus() = 0;
  // After the home's join file came, went or was changed.
  virtual void look_at_home() = 0;
  // After a setting was changed: what may change while the agent runs is read anew.
  virtual void look_at_settings() = 0;
  // To whoever subscribed to events.
  virtual void publish(const ControlEvent& event) = 0;
  // Work that takes long, one at a time, on a thread of its own; ends when `stop` is raised. kPermissionDenied while
  // another one runs.
  using Job = std::function<void(const AbortSignal& stop)>;
  virtual Status start_job(std::string what, Job job) = 0;
  virtual void stop_job(const std::string& why) = 0;  // raises `stop` of the one that runs
  // Of a joining: to be told in the order in which it comes.
  virtual void tell_join(JoinNews news) = 0;
};

}  // namespace atl
