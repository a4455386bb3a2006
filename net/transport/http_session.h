// One HTTPS connection while it is served: when it has to end, and what whoever gave it its place wants to know. The
// listener's and the handler's thread.
#pragma once

#include <functional>

#include "net/base/abort_signal.h"

namespace atl {

class HttpSession {
 public:
  // `tell_idle` is called on the handler's thread.
  explicit HttpSession(std::function<void(bool idle)> tell_idle = {}) : tell_idle_(std::move(tell_idle)) {}

  // Raised when the connection has to end: the listener stops, the peer is no member any more, or others need its
  // place.
  AbortSignal& abort() { return abort_; }
  operator const AbortSignal&() const { return abort_; }  // for handlers that only have to end

  // Handler: nothing is under way, or something is. An idle connection's place may be given to another.
  void set_idle(bool idle) {
    if (idle_ == idle) return;
    idle_ = idle;
    if (tell_idle_) tell_idle_(idle);
  }

 private:
  const std::function<void(bool)> tell_idle_;
  AbortSignal abort_;
  bool idle_ = false;  // the handler's thread
};

}  // namespace atl
