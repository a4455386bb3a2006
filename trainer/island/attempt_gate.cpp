#include "trainer/island/attempt_gate.h"

#include "net/base/mutex.h"

namespace atl {

std::shared_ptr<AbortSignal> AttemptGate::begin(OuterStep round, Attempt attempt) {
  MutexLock lock(mutex_);
  current_ = {round, attempt};
  signal_ = std::make_shared<AbortSignal>();
  if (closed_ || current_ <= aborted_ || passed_ < welcomes_) signal_->raise(abort_reason_);
  return signal_;
}

void AttemptGate::welcome() {
  MutexLock lock(mutex_);
  ++welcomes_;
  if (closed_) return;
  aborted_ = {};
  abort_reason_ = "the hub was met again";
  if (signal_) signal_->raise(abort_reason_);
}

void AttemptGate::pass_welcome() {
  MutexLock lock(mutex_);
  ++passed_;
}

void AttemptGate::abort_through(OuterStep round, Attempt attempt, const std::string& reason) {
  MutexLock lock(mutex_);
  const Position position{round, attempt};
  if (closed_ || position <= aborted_) return;
  aborted_ = position;
  abort_reason_ = reason;
  if (signal_ && current_ <= aborted_) signal_->raise(reason);
}

void AttemptGate::close(const std::string& reason) {
  MutexLock lock(mutex_);
  if (closed_) return;
  closed_ = true;
  abort_reason_ = reason;
  if (signal_) signal_->raise(reason);
}

}  // namespace atl
