// SIGINT and SIGTERM as a callback on a thread, so that nothing happens inside a signal handler.
#pragma once

#include <functional>
#include <thread>

#include "net/base/abort_signal.h"

namespace atl {

// One a process.
class SignalWatch {
 public:
  // Before any other thread starts, all of which inherit it: the signals wait for the watch, and end nothing by
  // themselves.
  static void block_signals();

  // Called on the watch's thread with the signal's number, each time one arrives.
  explicit SignalWatch(std::function<void(int signal)> on_signal);
  ~SignalWatch();  // joins; the signals stay blocked

 private:
  AbortSignal stop_;
  std::jthread thread_;  // last: it uses stop_
};

}  // namespace atl
