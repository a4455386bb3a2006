// Sees to it that no local rank waits for good: a thread that asks every rank's NCCL communicator for errors, knows
// what each rank is in the middle of, and at the first trouble aborts all communicators, so that their kernels end and
// the ranks that wait for a stream come free. The first cause is kept, and is what every later call throws.
//
// It holds the communicators, because NCCL's functions may not be called on one from two threads, nor on one that is
// aborted: whoever calls one has Access to it meanwhile. Owned by the NcclGroup. Each function says which thread calls
// it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "net/base/deadline.h"
#include "net/base/id.h"
#include "net/base/mutex.h"
#include "trainer/fsdp/nccl_api.h"
#include "trainer/fsdp/nccl_sequence.h"

namespace atl {

struct NcclTimeouts {
  std::chrono::nanoseconds init = std::chrono::seconds(120);  // from the first rank's coming until all are connected
  std::chrono::nanoseconds call =
      std::chrono::seconds(120);  // until NCCL has enqueued a collective; the first ones connect
  // Of a rank, for what it watches (NcclCommunicator::watched). Longer than the longest program runs.
  std::chrono::nanoseconds wait = std::chrono::seconds(600);
  std::chrono::nanoseconds poll = std::chrono::milliseconds(100);
  // For a rank that is inside of a call of NCCL, before its communicator is aborted under it.
  std::chrono::nanoseconds grace = std::chrono::seconds(2);
};

class NcclWatch {
 public:
  // All outlive this.
  NcclWatch(const NcclApi& api, const CollectiveSequence& sequence, int world_size, NcclTimeouts timeouts);
  ~NcclWatch();  // when no rank uses its communicator any more: takes them all back
  NcclWatch(const NcclWatch&) = delete;
  NcclWatch& operator=(const NcclWatch&) = delete;

  enum class Doing : std::uint8_t { kNothing, kInit, kCall, kWait };
  struct Deed {
    Doing doing = Doing::kNothing;
    const char* what = "";
    std::optional<CollectiveCall> call;
    Clock::time_point since{};
  };
  // What the rank is in the middle of while this lives. Its thread. `what` is a literal; a call's words are made if
  // needed.
  class Activity {
   public:
    Activity(NcclWatch& watch, LocalRank rank, Doing doing, const char* what, std::optional<CollectiveCall> call = {});
    ~Activity();
    Activity(const Activity&) = delete;
    Activity& operator=(const Activity&) = delete;

   private:
    NcclWatch& watch_;
    const LocalRank rank_;
    Deed outer_;
  };

  // The rank's communicator is its thread's alone while this lives. Throws CollectiveAborted.
  class Access {
   public:
    Access(NcclWatch& watch, LocalRank rank);
    ~Access();
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

    NcclComm comm() const { return comm_; }
    void adopt(NcclComm comm);  // a new one; it is aborted at once when there was trouble meanwhile

   private:
    NcclWatch& watch_;
    const LocalRank rank_;
    NcclComm comm_ = nullptr;
  };

  void set_ready(LocalRank rank);  // its communicator is connected. Its thread.

  // Any thread. True: it is the first, and becomes the cause.
  bool fail(const std::string& cause) noexcept;
  void throw_if_aborted() const;

 private:
  enum class Holder : std::uint8_t { kNobody, kRank, kWatch };
  struct Slot {
    NcclComm comm = nullptr;
    Holder holder = Holder::kNobody;
    bool came = false;
    bool ready = false;
    Deed deed;
  };

  void watch(const std::stop_token& stop);
  bool wait_for_trouble(const std::stop_token& stop);
  void look();
  std::optional<std::string> overdue() const;
  std::string describe(std::size_t rank) const ATOLL_REQUIRES(mutex_);
  std::string describe_init() const ATOLL_REQUIRES(mutex_);
  std::string describe_peers(std::size_t rank) const;
  std::chrono::nanoseconds limit(Doing doing) const;
  NcclComm lend(std::size_t rank);
  void give_back(std::size_t rank);
  NcclComm take(std::size_t rank, std::chrono::nanoseconds grace);
  void abort_all();
  bool finalize(const std::vector<NcclComm>& comms) const;
  void abort(const std::vector<NcclComm>& comms) const;
  Slot& slot(LocalRank rank) ATOLL_REQUIRES(mutex_) { return slots_[static_cast<std::size_t>(rank.value)]; }

  const NcclApi& api_;
  const CollectiveSequence& sequence_;
  const NcclTimeouts timeouts_;
  const std::size_t world_size_;
  mutable Mutex mutex_;
  StoppableCondVar failed_;
  CondVar released_;
  std::vector<Slot> slots_ ATOLL_GUARDED_BY(mutex_);
  std::optional<std::string> cause_ ATOLL_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace atl
