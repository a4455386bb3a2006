// A TCP way to a listener that breaks where a test wants it to: cut, reset or silent after so many bytes of one
// direction, of one connection; all other connections pass as they are. For tests; the set-up aborts the program when
// it fails. Owns its thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <thread>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/mutex.h"
#include "net/base/unique_fd.h"

namespace atl {

enum class FaultWay { kToListener, kToDialler };
enum class FaultKind {
  kCut,    // both ends are closed in order
  kReset,  // both ends are reset
  kStall,  // both stay open, and nothing passes either way until an end closes
};

struct Fault {
  FaultKind kind = FaultKind::kCut;
  FaultWay way = FaultWay::kToListener;
  std::uint64_t after_bytes = 0;  // that pass this way
};

class FaultProxy {
 public:
  explicit FaultProxy(Address target);
  ~FaultProxy();

  Address address() const { return address_; }

  // Any thread:
  // For the next connection that is dialled, and that one alone; called again: for the one after it.
  void break_next(Fault fault);
  std::size_t pending() const;  // faults for connections that were not dialled yet
  // For the connections that are dialled while another stands, the first `times` of them.
  void break_beside_another(Fault fault, int times);
  int broken() const { return broken_; }  // connections, so far
  int dialled() const { return dialled_; }
  // Of the connection that carried the last byte.
  struct Passed {
    std::uint64_t to_listener = 0, to_dialler = 0;
  };
  Passed passed() const;

 private:
  struct Way {
    int from = -1, to = -1;
    std::uint64_t passed = 0;
    std::optional<std::uint64_t> break_after;
    bool ended = false;
  };
  struct Pair {
    UniqueFd dialler, listener;
    Way to_listener, to_dialler;
    FaultKind kind = FaultKind::kCut;
    bool stalled = false;
  };
  void run();
  void accept();
  std::optional<Fault> fault_of_next();
  bool serve(Pair& pair);              // false: it is over
  bool forward(Pair& pair, Way& way);  // false: it is over
  bool break_now(Pair& pair);          // false: it is over
  static bool has_ended(const Pair& pair);

  const Address target_;
  const UniqueFd socket_;
  const Address address_;
  std::atomic<int> broken_{0}, dialled_{0};
  mutable Mutex mutex_;
  std::deque<Fault> next_ ATOLL_GUARDED_BY(mutex_);
  std::optional<Fault> beside_ ATOLL_GUARDED_BY(mutex_);
  int beside_times_ ATOLL_GUARDED_BY(mutex_) = 0;
  Passed passed_ ATOLL_GUARDED_BY(mutex_);
  std::list<Pair> pairs_;  // the thread's
  AbortSignal stop_;
  std::jthread thread_;  // last
};

}  // namespace atl
