// A GPU's stream in host memory: does what is enqueued in order, on a thread of its own, late. Events order streams.
// Any thread enqueues; the test owns streams and events, and they outlive what was enqueued.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <thread>

#include "net/base/mutex.h"

namespace atl::test {

class FakeStream {
 public:
  // Up to `most_delay` before each thing that it does, as the seed has it.
  FakeStream(std::uint64_t seed, std::chrono::microseconds most_delay);
  ~FakeStream();  // when all is done

  void enqueue(std::function<void()> work);
  // Returns when what was enqueued before is done.
  void synchronize();

 private:
  void run(std::chrono::microseconds most_delay);

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> queue_ ATOLL_GUARDED_BY(mutex_);
  std::uint64_t enqueued_ ATOLL_GUARDED_BY(mutex_) = 0;
  std::uint64_t done_ ATOLL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ATOLL_GUARDED_BY(mutex_) = false;
  std::mt19937_64 random_;  // the thread's
  std::jthread thread_;
};

// As a cudaEvent_t: a stream that is held back by it goes on when what had been enqueued before its last record() is
// done.
class FakeEvent {
 public:
  void record(FakeStream& stream);
  void hold_back(FakeStream& stream);

 private:
  Mutex mutex_;
  CondVar changed_;
  std::uint64_t recorded_ ATOLL_GUARDED_BY(mutex_) = 0;
  std::uint64_t passed_ ATOLL_GUARDED_BY(mutex_) = 0;
};

}  // namespace atl::test
