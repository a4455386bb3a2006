// A bounded queue between threads. Producers that would overfill it are told so; consumers wait with a deadline.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include "net/base/deadline.h"
#include "net/base/mutex.h"

namespace atl {

template <class T>
class Mailbox {
 public:
  explicit Mailbox(std::size_t capacity) : capacity_(capacity) {}

  // False when full or closed; the value is then dropped.
  [[nodiscard]] bool push(T value) {
    {
      MutexLock lock(mutex_);
      if (closed_ || queue_.size() >= capacity_) return false;
      queue_.push_back(std::move(value));
    }
    ready_.notify_one();
    return true;
  }

  // Empty when the deadline passes, the mailbox is closed and drained, or wake() was called.
  std::optional<T> pop(Deadline deadline) {
    MutexLock lock(mutex_);
    ready_.wait(lock, deadline, [&]() ATOLL_REQUIRES(mutex_) { return closed_ || woken_ || !queue_.empty(); });
    woken_ = false;
    return take_front();
  }

  // Empty when there is nothing now.
  std::optional<T> try_pop() {
    MutexLock lock(mutex_);
    return take_front();
  }

  // Whoever waits, or waits next, comes back at once: there is something to do that is not in here.
  void wake() {
    {
      MutexLock lock(mutex_);
      woken_ = true;
    }
    ready_.notify_all();
  }

  void close() {
    {
      MutexLock lock(mutex_);
      closed_ = true;
    }
    ready_.notify_all();
  }
  bool closed() const {
    MutexLock lock(mutex_);
    return closed_;
  }

 private:
  std::optional<T> take_front() ATOLL_REQUIRES(mutex_) {
    if (queue_.empty()) return std::nullopt;
    std::optional<T> value(std::move(queue_.front()));
    queue_.pop_front();
    return value;
  }

  mutable Mutex mutex_;
  CondVar ready_;
  const std::size_t capacity_;
  std::deque<T> queue_ ATOLL_GUARDED_BY(mutex_);
  bool closed_ ATOLL_GUARDED_BY(mutex_) = false;
  bool woken_ ATOLL_GUARDED_BY(mutex_) = false;
};

}  // namespace atl
