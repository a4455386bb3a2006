#include "trainer/island/work_keeper.h"

#include <algorithm>
#include <utility>

namespace atl {
namespace {

constexpr int kShare = 20;

}  // namespace

WorkKeeper::WorkKeeper(const IslandDisk& disk, std::chrono::seconds every)
    : disk_(disk), every_(every), not_before_(Clock::now() + every), thread_([this] { run(); }) {}

WorkKeeper::~WorkKeeper() {
  MutexLock lock(mutex_);
  ends_ = true;
  changed_.notify_all();
}

bool WorkKeeper::is_due(Clock::time_point now) {
  if (every_ <= every_.zero() || !disk_.keeps()) return false;
  MutexLock lock(mutex_);
  return !work_ && now >= not_before_;
}

void WorkKeeper::keep(InnerState work, Clock::time_point began) {
  MutexLock lock(mutex_);
  work_ = std::move(work);
  began_ = began;
  changed_.notify_all();
}

void WorkKeeper::run() {
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&]() ATOLL_REQUIRES(mutex_) { return work_ || ends_; });
    if (!work_) return;
    const InnerState& work = *work_;
    lock.unlock();
    disk_.keep_work(work);
    lock.lock();
    work_.reset();
    const auto now = Clock::now();
    not_before_ = now + std::max<Clock::duration>(every_, kShare * (now - began_));
  }
}

}  // namespace atl
