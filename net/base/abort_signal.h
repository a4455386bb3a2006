// A flag with a reason that wakes poll(2): raised from any thread, seen by the thread that waits.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "net/base/mutex.h"
#include "net/base/unique_fd.h"

namespace atl {

class AbortSignal {
 public:
  AbortSignal();  // ends the process where no descriptor is left
  // Null: none is left.
  static std::shared_ptr<AbortSignal> try_make();

  // Any thread. The first reason stays.
  void raise(std::string reason);
  bool raised() const { return raised_.load(std::memory_order_acquire); }
  std::string reason() const;
  // Readable once raised; for poll(2) only, never read from it.
  int fd() const { return event_.get(); }

 private:
  explicit AbortSignal(UniqueFd event) : event_(std::move(event)) {}

  UniqueFd event_;
  std::atomic<bool> raised_{false};
  mutable Mutex mutex_;
  std::string reason_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace atl
