// The longest time for which the event loop of this thread did not turn, but for the time in which other processes had
// the processors: that is not ours to answer for. Owned by a test; its thread.
#pragma once

#include <QElapsedTimer>
#include <QTimer>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "tests/timing.h"

namespace atl::test {

// Milliseconds for which nobody feels it.
inline constexpr qint64 kLongestHoldUp = 50;

class LoopWatch {
 public:
  // `server`: a process whose answers this thread may have to wait for, as a window does for its X server; 0: none.
  explicit LoopWatch(int server = 0) : server_(server > 0 ? "/proc/" + std::to_string(server) + "/schedstat" : "") {
    QObject::connect(&timer_, &QTimer::timeout, &timer_, [this] { look(); });
    timer_.start(1);
    begin();
  }
  qint64 longest_ms() {
    look();
    return longest_ / 1'000'000;
  }
  bool never_held_up() { return longest_ms() <= kLongestHoldUp * timing_slack(); }
  // The longest until now; from here on it counts anew.
  qint64 restart() {
    look();
    return std::exchange(longest_, 0) / 1'000'000;
  }
  // What the test itself does on this thread is not counted.
  template <class Work>
  auto without(Work work) {
    struct Begin {
      LoopWatch* watch;
      ~Begin() { watch->begin(); }
    };
    look();
    const Begin afterwards{this};
    return work();
  }

 private:
  struct Times {                       // nanoseconds
    std::int64_t ran = 0, waited = 0;  // waited: ready to run, and without a processor
  };

  void begin() {
    own_ = times("/proc/thread-self/schedstat");
    others_ = times(server_.c_str());
    since_.start();
  }
  // It ran, or slept; but not for as long as the server had no processor.
  void look() {
    const Times own = own_, others = others_;
    const std::int64_t elapsed = since_.nsecsElapsed();
    begin();
    const std::int64_t not_waited = elapsed - (own_.waited - own.waited);
    const std::int64_t slept = std::max<std::int64_t>(0, not_waited - (own_.ran - own.ran));
    longest_ = std::max(longest_, not_waited - std::min(slept, others_.waited - others.waited));
  }
  // 0 where the system does not say.
  static Times times(const char* file_name) {
    long long ran = 0, waited = 0;
    std::FILE* file = std::fopen(file_name, "r");
    if (file == nullptr) return {};
    const int read = std::fscanf(file, "%lld %lld", &ran, &waited);
    std::fclose(file);
    return read == 2 ? Times{ran, waited} : Times{};
  }

  const std::string server_;
  QTimer timer_;
  QElapsedTimer since_;
  Times own_, others_;
  std::int64_t longest_ = 0;  // nanoseconds
};

}  // namespace atl::test
