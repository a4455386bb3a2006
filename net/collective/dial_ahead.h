// Connections for attempts to come, dialled while nobody needs the links, so that an attempt begins with them and at
// full speed: it else waits for them for 2.5 round trips, and for their windows for eight more.
//
// The hub says whom the next attempts would have an island connect with, if they began now. That is advice: an island
// that is gone costs a dial in vain, and an attempt dials what lacks. What a peer has answered is in the fragment's
// pool, as if an attempt had left it there. Until an attempt begins, or the next advice comes, what a look finds to
// lack is dialled again: what was not answered, and what was closed since; ever more rarely, at last every 64 s.
// Connections of edges that the newest advice does not name are closed.
//
// Owned by a RingAllReduce. Thread-safe. A thread of its own, and some that dial, for as long as that takes.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/download_pace.h"
#include "net/base/mutex.h"
#include "net/collective/connection_pool.h"
#include "net/collective/ring_member.h"
#include "net/collective/upload_share.h"
#include "net/collective/window_opener.h"
#include "net/transport/ring_inbox.h"
#include "net/wire/schedule.h"

namespace atl {

// As far as they can be told: as AllReduceSpec has it.
struct NextAttempts {
  // Of a ring its members, or this island alone with those before and after it; of an exchange all.
  std::vector<RingMember> order = {};
  Schedule schedule = Schedule::kRing;
  int fragments = 1;
  int connections_per_edge = 0;
  std::string congestion_control = "bbr";
  // That an attempt sends to each peer to which it sends. A third of that may go as padding; 0: none does.
  std::uint64_t bytes_to_each = 0;
  std::chrono::milliseconds silence_timeout{6'000};
  // While there is a limit, nothing is padded. What it uses outlives the ring: a thread of the ring's asks.
  UploadShare::Most most_bytes_per_second = {};
  DownloadPace* download = nullptr;
};

class DialAhead {
 public:
  // What is the ring's, and outlives this. Its functions are called while nobody holds this.
  struct Ring {
    IslandId self;
    RingInbox& inbox;
    const TlsContext& dial_context;
    AttemptsUnderWay& under_way;
    std::function<ConnectionPool&(FragmentId)> pool;
    std::function<int(const NextAttempts&, FragmentId, const EdgeEnd&)> connections;  // that an edge has
    // Whether it has more of them, now that its round trip is known.
    std::function<bool(const NextAttempts&, FragmentId, const EdgeEnd&, double rtt_seconds)> needs_more;
    std::function<LinkPacing&(Schedule, const IslandId& next)> link;
  };

  explicit DialAhead(Ring ring);
  ~DialAhead();

  // In place of what was said before. Returns at once.
  void prepare(NextAttempts next);
  // Until all stands, or its first tries have ended. False: at the deadline it still dials or pads.
  bool await_prepared(Deadline deadline);
  void forget(const IslandId& peer);  // closes what is on its way to the pools

  // An attempt is under way: what stands is in the pools, and nothing else uses the links.
  class Hold {
   public:
    explicit Hold(DialAhead& ahead) : ahead_(ahead) { ahead_.hold(); }
    ~Hold() { ahead_.release(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    DialAhead& ahead_;
  };

 private:
  struct Wanted {
    FragmentId fragment;
    EdgeEnd end;
    Address address;
  };
  struct Passed {
    std::size_t lacked = 0, dialled = 0;  // connections
  };
  void hold();
  void release();
  // What the pass has in its hands is in the pools then. It gives the lock away meanwhile.
  void end_pass(MutexLock& lock) ATOLL_REQUIRES(mutex_);
  void give_to_pools(std::vector<DialledAhead> connections);

  void expect(const NextAttempts& next) const;
  void run(const std::stop_token& stop);
  Passed pass(const NextAttempts& next, const AbortSignal& abort);
  std::vector<Wanted> lacking(const NextAttempts& next, const AbortSignal& abort);
  std::size_t dial(const NextAttempts& next, const std::vector<Wanted>& wanted, const AbortSignal& abort);
  bool dial_one(const NextAttempts& next, const Wanted& wanted, const AbortSignal& abort);
  void open_windows(const NextAttempts& next, const AbortSignal& abort);
  std::vector<DialledAhead> opened(const NextAttempts& next, std::vector<DialledAhead> connections,
                                   const AbortSignal& abort);

  const Ring ring_;
  Mutex mutex_;
  StoppableCondVar changed_;
  CondVar idle_, put_down_;
  int held_ ATOLL_GUARDED_BY(mutex_) = 0;
  std::optional<NextAttempts> next_ ATOLL_GUARDED_BY(mutex_);  // until an attempt begins
  Clock::time_point due_ ATOLL_GUARDED_BY(mutex_);
  int passes_ ATOLL_GUARDED_BY(mutex_) = 0;                     // for next_, in which something lacked
  bool is_settled_ ATOLL_GUARDED_BY(mutex_) = false;            // all of it stood once, or came in none of the first
  std::shared_ptr<AbortSignal> pass_ ATOLL_GUARDED_BY(mutex_);  // under way
  std::vector<DialledAhead> to_open_ ATOLL_GUARDED_BY(mutex_);  // whose windows are to be opened
  bool opens_ ATOLL_GUARDED_BY(mutex_) = false;                 // its thread has others in its hands
  std::atomic<bool> more_are_needed_ = false;                   // than were dialled in this pass, by the round trip
  std::jthread thread_;                                         // last
};

}  // namespace atl
