// The longest time for which the event loop of this thread did not turn, but for the time in which other processes had
// the processors: that is not ours to answer for. Owned by a test; its thread.
#pragma once

#include <QElapsedTimer>
#include <QTimer>
#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace atl::test {

class LoopWatch {
 public:
  LoopWatch() {
    QObject::connect(&timer_, &QTimer::timeout, &timer_, [this] { look(); });
    timer_.start(1);
    since_.start();
    waited_ = waited_nanoseconds();
  }
  qint64 longest_ms() {
    look();
    return longest_;
  }

 private:
  void look() {
    const std::int64_t waited = waited_nanoseconds();
    longest_ = std::max(longest_, (since_.nsecsElapsed() - (waited - waited_)) / 1'000'000);
    waited_ = waited;
    since_.restart();
  }
  // That this thread was ready to run and did not; 0 where the system does not say.
  static std::int64_t waited_nanoseconds() {
    long long ran = 0, waited = 0;
    std::FILE* file = std::fopen("/proc/thread-self/schedstat", "r");
    if (file == nullptr) return 0;
    const int read = std::fscanf(file, "%lld %lld", &ran, &waited);
    std::fclose(file);
    return read == 2 ? waited : 0;
  }

  QTimer timer_;
  QElapsedTimer since_;
  std::int64_t waited_ = 0;
  qint64 longest_ = 0;
};

}  // namespace atl::test
