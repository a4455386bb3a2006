// A bounded queue between threads. Producers that would overfill it are told so; consumers wait with a deadline.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>

#include "net/base/deadline.h"

namespace atl {

template <class T>
class Mailbox {
 public:
  explicit Mailbox(std::size_t capacity) : capacity_(capacity) {}

  // False when full or closed; the value is then dropped.
  [[nodiscard]] bool push(T value) {
    {
      std::lock_guard lock(mutex_);
      if (closed_ || queue_.size() >= capacity_) return false;
      queue_.push_back(std::move(value));
    }
    ready_.notify_one();
    return true;
  }

  // Empty when the deadline passes, the mailbox is closed and drained, or wake() was called.
  std::optional<T> pop(Deadline deadline) {
    std::unique_lock lock(mutex_);
    ready_.wait_until(lock, deadline.when(), [&] { return closed_ || woken_ || !queue_.empty(); });
    woken_ = false;
    return take_front();
  }

  // Empty when there is nothing now.
  std::optional<T> try_pop() {
    std::lock_guard lock(mutex_);
    return take_front();
  }

  // Whoever waits, or waits next, comes back at once: there is something to do that is not in here.
  void wake() {
    {
      std::lock_guard lock(mutex_);
      woken_ = true;
    }
    ready_.notify_all();
  }

  void close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    ready_.notify_all();
  }
  bool closed() const {
    std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  std::optional<T> take_front() {
    if (queue_.empty()) return std::nullopt;
    std::optional<T> value(std::move(queue_.front()));
    queue_.pop_front();
    return value;
  }

  mutable std::mutex mutex_;
  std::condition_variable ready_;
  const std::size_t capacity_;
  std::deque<T> queue_;  // guarded by mutex_
  bool closed_ = false;  // guarded by mutex_
  bool woken_ = false;   // guarded by mutex_
};

}  // namespace atl
