#include "tests/fakes/fake_stream.h"

#include <algorithm>
#include <utility>

namespace atl::test {

FakeStream::FakeStream(std::uint64_t seed, std::chrono::microseconds most_delay)
    : random_(seed), thread_([this, most_delay] { run(most_delay); }) {}

FakeStream::~FakeStream() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

void FakeStream::enqueue(std::function<void()> work) {
  {
    const MutexLock lock(mutex_);
    queue_.push_back(std::move(work));
    ++enqueued_;
  }
  changed_.notify_all();
}

void FakeStream::synchronize() {
  MutexLock lock(mutex_);
  const std::uint64_t mine = enqueued_;
  changed_.wait(lock, [&]() ATOLL_REQUIRES(mutex_) { return done_ >= mine; });
}

void FakeStream::run(std::chrono::microseconds most_delay) {
  for (;;) {
    MutexLock lock(mutex_);
    changed_.wait(lock, [&]() ATOLL_REQUIRES(mutex_) { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    const auto most = static_cast<std::uint64_t>(most_delay.count());
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % (most + 1)));
    work();
    lock.lock();
    ++done_;
    changed_.notify_all();
  }
}

void FakeEvent::record(FakeStream& stream) {
  std::uint64_t mine = 0;
  {
    const MutexLock lock(mutex_);
    mine = ++recorded_;
  }
  stream.enqueue([this, mine] {
    const MutexLock lock(mutex_);
    passed_ = std::max(passed_, mine);
    changed_.notify_all();
  });
}

void FakeEvent::hold_back(FakeStream& stream) {
  std::uint64_t mine = 0;
  {
    const MutexLock lock(mutex_);
    mine = recorded_;
  }
  stream.enqueue([this, mine] {
    MutexLock lock(mutex_);
    changed_.wait(lock, [&]() ATOLL_REQUIRES(mutex_) { return passed_ >= mine; });
  });
}

}  // namespace atl::test
