// What the worker threads of one attempt share: which frames wait to be sent, which came, which pieces of the result
// wait to be hashed, and how the attempt ended. Thread-safe; nobody waits while holding its lock.
//
// It is also what makes the bytes of the result pass safely from thread to thread: a worker says frame_sent or
// frame_in_place after its last touch of a frame's bytes, and the board hands them to another only then.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "net/base/deadline.h"
#include "net/base/mutex.h"
#include "net/base/result.h"
#include "net/base/unique_fd.h"
#include "net/collective/all_reduce.h"
#include "net/collective/final_pieces.h"
#include "net/collective/ring_schedule.h"

namespace atl {

class FrameBoard {
 public:
  // `connections`: to the next rank. References outlive this.
  FrameBoard(const RingPayload& payload, const EdgeSchedule& outbound, const EdgeSchedule& inbound,
             std::size_t connections, std::size_t workers);
  // The connections from the previous rank are there, and workers have them.
  void inbound_joined(std::size_t connections);

  // ---- frames to send: the first one in the schedule that is ready
  // The last own frame waits for inbound_joined(). Whoever has sent all, then, knows that the next rank is reached:
  // what that one sent had to go round the ring first. Otherwise a rank whose connection was cut before its hello
  // arrived would take its work for done, and both would wait for the other until the silence timeout.
  // `unsent`: what waits already on the connection that asks, in bytes. A frame would wait behind that: where a worker
  // sleeps, or was just woken, with a connection on which less waits, the frame is left to it and nothing is returned.
  std::optional<std::uint32_t> take_to_send(std::size_t unsent = 0);
  bool has_to_send() const;
  void frame_sent(std::uint32_t sequence);
  bool all_sent() const;
  // Where own frames are sums (!outbound.encodes_own()): the next one, in their order, is in place and may be sent.
  void own_in_place(std::uint32_t sequence);

  // ---- frames that come
  // kEarly: the frame that was sent from its place is still under way; ask again. kTwice: it came before.
  enum class Admission { kWelcome, kEarly, kTwice };
  Admission admit(std::uint32_t sequence);
  // Its bytes, the own values added, are in place. `sends_itself`: the caller is about to ask for what this makes
  // ready.
  void frame_in_place(std::uint32_t sequence, const RingSubChunk& sub_chunk, bool sends_itself);
  bool all_received() const;

  // ---- what moves besides whole frames, for the monitor
  void count_data(std::size_t bytes);          // of frames' payloads on the inbound edge
  void count_contribution(std::size_t bytes);  // that came past the ring (direct_reduce.h)
  void count_contribution_sent(std::size_t bytes) { contributions_sent_ += bytes; }
  std::uint64_t data_received() const { return data_received_; }
  std::uint64_t contributions() const { return contributions_; }
  std::uint64_t contributions_sent() const { return contributions_sent_; }
  std::uint64_t progress() const { return data_received_ + contributions_; }
  // The previous rank waits for data itself, and will until then.
  void vouch(Clock::time_point until);
  Clock::time_point vouched_until() const;

  // ---- pieces of the result to hash (canonical_digest.h)
  std::optional<std::size_t> take_to_hash();
  void piece_hashed(std::size_t piece, const PieceHash& hash);
  // Once finished.
  Digest digest() const;
  std::vector<bool> whole_buckets() const;

  // ---- keepalives: asked for by the monitor, sent by the first connection that is between frames
  // It says how long this island is still ready to wait for data.
  void ask_for_keepalive(std::chrono::milliseconds patience);
  bool keepalive_due() const;
  // `unacknowledged`: by a connection on which something is, which may be lost and hold up what comes behind it. Such a
  // one gets it when nobody else took it before it was asked for again.
  std::optional<std::chrono::milliseconds> take_keepalive(bool unacknowledged = false);

  // ---- the end: everything sent, received and hashed, or the first failure
  void fail(AllReduceFailure failure);
  // A connection was closed by its peer between two frames: a failure when it was the last one and frames are missing.
  void outbound_closed(const IslandId& next);
  void inbound_closed(const IslandId& previous);
  bool ended() const;
  std::optional<AllReduceFailure> failure() const;

  // ---- waiting
  // Counts what might be work for a worker that found none before.
  std::uint64_t version() const;
  // False when something changed since `version`, or a frame is ready that it should take: look again. Otherwise the
  // worker now sleeps on wake_fd(worker) and its sockets. `least_unsent`: bytes that wait on that of its idle
  // connections on which fewest do; empty: it has none, and would not send a frame that becomes ready.
  bool may_sleep(std::size_t worker, std::uint64_t version, std::optional<std::size_t> least_unsent);
  void woke(std::size_t worker);
  int wake_fd(std::size_t worker) const { return wake_events_[worker].get(); }
  // Readable once ended, for the monitor.
  int ended_fd() const { return ended_event_.get(); }

 private:
  struct Sleeper {
    bool asleep = false;
    std::optional<std::size_t> least_unsent;  // until it is awake, which takes a while from when it is woken
  };

  void wake(std::size_t worker) ATOLL_REQUIRES(mutex_);
  void wake_all() ATOLL_REQUIRES(mutex_);
  std::optional<std::size_t> least_laden_sleeper() const ATOLL_REQUIRES(mutex_);
  bool left_to_another(std::size_t unsent) ATOLL_REQUIRES(mutex_);
  void wake_one_to_send() ATOLL_REQUIRES(mutex_);
  void wake_one_to_hash() ATOLL_REQUIRES(mutex_);
  void count_final(std::uint64_t first_byte, std::uint64_t bytes) ATOLL_REQUIRES(mutex_);
  void end_if_complete() ATOLL_REQUIRES(mutex_);
  bool own_may_leave() const ATOLL_REQUIRES(mutex_);
  bool something_to_send() const ATOLL_REQUIRES(mutex_);
  void set_failure(AllReduceFailure failure) ATOLL_REQUIRES(mutex_);

  const EdgeSchedule& outbound_;
  const EdgeSchedule& inbound_;
  UniqueFd ended_event_;
  std::vector<UniqueFd> wake_events_;  // of the workers
  std::atomic<std::uint64_t> data_received_{0};
  std::atomic<std::uint64_t> contributions_{0};
  std::atomic<std::uint64_t> contributions_sent_{0};

  mutable Mutex mutex_;
  std::vector<Sleeper> sleepers_ ATOLL_GUARDED_BY(mutex_);
  std::uint64_t version_ ATOLL_GUARDED_BY(mutex_) = 0;
  std::size_t open_outbound_ ATOLL_GUARDED_BY(mutex_);
  std::size_t open_inbound_ ATOLL_GUARDED_BY(mutex_) = 0;
  bool joined_ ATOLL_GUARDED_BY(mutex_) = false;
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready_ ATOLL_GUARDED_BY(mutex_);
  std::uint32_t next_own_ ATOLL_GUARDED_BY(mutex_) = 0;
  std::uint32_t own_ready_end_ ATOLL_GUARDED_BY(mutex_);  // own frames below may be sent
  std::vector<bool> sent_ ATOLL_GUARDED_BY(mutex_);
  std::uint32_t sent_count_ ATOLL_GUARDED_BY(mutex_) = 0;
  std::vector<bool> admitted_ ATOLL_GUARDED_BY(mutex_);
  std::uint32_t received_count_ ATOLL_GUARDED_BY(mutex_) = 0;
  bool somebody_early_ ATOLL_GUARDED_BY(mutex_) = false;
  FinalPieces pieces_ ATOLL_GUARDED_BY(mutex_);
  std::optional<std::chrono::milliseconds> keepalive_due_ ATOLL_GUARDED_BY(mutex_);
  bool keepalive_overdue_ ATOLL_GUARDED_BY(mutex_) = false;  // asked for again
  Clock::time_point vouched_until_ ATOLL_GUARDED_BY(mutex_);
  bool complete_ ATOLL_GUARDED_BY(mutex_) = false;
  std::optional<AllReduceFailure> failure_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace atl
