// Mutexes of which the compiler knows what they guard: clang checks (-Wthread-safety, target `thread-safety`) that a
// member said to be ATOLL_GUARDED_BY a mutex is touched only by who holds it. Nothing but this file uses std::mutex.
// GCC sees plain mutexes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <stop_token>
#include <utility>

#include "net/base/deadline.h"

#ifdef __clang__
#define ATOLL_THREAD_ANNOTATION_(...) __attribute__((__VA_ARGS__))
#else
#define ATOLL_THREAD_ANNOTATION_(...)
#endif

// Of a member: who touches it holds `mutex`.
#define ATOLL_GUARDED_BY(mutex) ATOLL_THREAD_ANNOTATION_(guarded_by(mutex))
// Of a function, or a lambda behind its parentheses: its caller holds them.
#define ATOLL_REQUIRES(...) ATOLL_THREAD_ANNOTATION_(requires_capability(__VA_ARGS__))
// Of a function that returns a reference to that mutex.
#define ATOLL_RETURNS_MUTEX(mutex) ATOLL_THREAD_ANNOTATION_(lock_returned(mutex))
// Of the types below.
#define ATOLL_CAPABILITY_(name) ATOLL_THREAD_ANNOTATION_(capability(name))
#define ATOLL_SCOPED_CAPABILITY_ ATOLL_THREAD_ANNOTATION_(scoped_lockable)
#define ATOLL_ACQUIRE_(...) ATOLL_THREAD_ANNOTATION_(acquire_capability(__VA_ARGS__))
#define ATOLL_ACQUIRE_SHARED_(...) ATOLL_THREAD_ANNOTATION_(acquire_shared_capability(__VA_ARGS__))
#define ATOLL_RELEASE_(...) ATOLL_THREAD_ANNOTATION_(release_capability(__VA_ARGS__))
#define ATOLL_UNCHECKED_ ATOLL_THREAD_ANNOTATION_(no_thread_safety_analysis)

namespace atl {

class ATOLL_CAPABILITY_("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() ATOLL_ACQUIRE_() { mutex_.lock(); }
  void unlock() ATOLL_RELEASE_() { mutex_.unlock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a mutex while it lives, but between unlock() and lock().
class ATOLL_SCOPED_CAPABILITY_ MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ATOLL_ACQUIRE_(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() ATOLL_RELEASE_() {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() ATOLL_ACQUIRE_() { lock_.lock(); }
  void unlock() ATOLL_RELEASE_() { lock_.unlock(); }

 private:
  friend class CondVar;
  friend class StoppableCondVar;
  std::unique_lock<std::mutex> lock_;
};

// Each wait gives the lock away meanwhile, and ends when `done` says so, which is asked with the lock held:
//   changed_.wait(lock, [&]() ATOLL_REQUIRES(mutex_) { return ready_; });
class CondVar {
 public:
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

  template <class Done>
  void wait(MutexLock& lock, Done done) ATOLL_UNCHECKED_ {
    condition_.wait(lock.lock_, std::move(done));
  }
  // What `done` said last: false when the deadline passed before.
  template <class Done>
  bool wait(MutexLock& lock, Deadline deadline, Done done) ATOLL_UNCHECKED_ {
    return condition_.wait_until(lock.lock_, deadline.when(), std::move(done));
  }

 private:
  std::condition_variable condition_;
};

// The same for who waits until it is told to stop, too. It has a second mutex inside, which each notice locks: CondVar
// is for all else.
class StoppableCondVar {
 public:
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

  // What `done` said last: false when stop was requested, or the deadline passed, before.
  template <class Done>
  bool wait(MutexLock& lock, const std::stop_token& stop, Done done) ATOLL_UNCHECKED_ {
    return condition_.wait(lock.lock_, stop, std::move(done));
  }
  template <class Done>
  bool wait(MutexLock& lock, const std::stop_token& stop, Deadline deadline, Done done) ATOLL_UNCHECKED_ {
    return condition_.wait_until(lock.lock_, stop, deadline.when(), std::move(done));
  }

 private:
  std::condition_variable_any condition_;
};

// Held by one writer, or by any number of readers.
class ATOLL_CAPABILITY_("shared_mutex") SharedMutex {
 public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

 private:
  friend class ReaderLock;
  friend class WriterLock;
  std::shared_mutex mutex_;
};

class ATOLL_SCOPED_CAPABILITY_ ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) ATOLL_ACQUIRE_SHARED_(mutex) : lock_(mutex.mutex_) {}
  ~ReaderLock() ATOLL_RELEASE_() {}
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

 private:
  std::shared_lock<std::shared_mutex> lock_;
};

class ATOLL_SCOPED_CAPABILITY_ WriterLock {
 public:
  explicit WriterLock(SharedMutex& mutex) ATOLL_ACQUIRE_(mutex) : lock_(mutex.mutex_) {}
  ~WriterLock() ATOLL_RELEASE_() {}
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  std::unique_lock<std::shared_mutex> lock_;
};

}  // namespace atl
