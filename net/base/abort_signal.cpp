#include "net/base/abort_signal.h"

#include <sys/eventfd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "net/base/mutex.h"

namespace atl {

AbortSignal::AbortSignal() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) {
    std::perror("atoll: eventfd");
    std::abort();
  }
}

std::shared_ptr<AbortSignal> AbortSignal::try_make() {
  UniqueFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return event ? std::shared_ptr<AbortSignal>(new AbortSignal(std::move(event))) : nullptr;
}

void AbortSignal::raise(std::string reason) {
  {
    MutexLock lock(mutex_);
    if (raised_.load(std::memory_order_relaxed)) return;
    reason_ = std::move(reason);
    raised_.store(true, std::memory_order_release);
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof one);
}

std::string AbortSignal::reason() const {
  MutexLock lock(mutex_);
  return reason_;
}

}  // namespace atl
