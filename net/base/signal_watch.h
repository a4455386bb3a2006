// SIGINT and SIGTERM as a callback on a thread, so that nothing happens inside a signal handler.
#pragma once

#include <functional>
#include <thread>

#include "net/base/abort_signal.h"

namespace atl {

// Construct in main before any other thread starts: it blocks the two signals in the calling thread, which all threads
// made later inherit. One a process.
class SignalWatch {
 public:
  // Called on the watch's thread with the signal's number, each time one arrives.
  explicit SignalWatch(std::function<void(int signal)> on_signal);
  ~SignalWatch();  // joins; the signals stay blocked

  // For a child between fork and exec: gets its signals again.
  static void unblock_in_child();

 private:
  AbortSignal stop_;
  std::jthread thread_;  // last: it uses stop_
};

}  // namespace atl
