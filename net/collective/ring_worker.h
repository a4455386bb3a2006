// One thread of a running attempt: moves the frames of its share of both edges' connections, encodes, adds, decrypts
// and encrypts them, and hashes finished pieces when the network gives it nothing else to do.
#pragma once

#include <poll.h>

#include <optional>
#include <utility>
#include <vector>

#include "net/base/mutex.h"
#include "net/collective/attempt_context.h"
#include "net/collective/receive_lane.h"
#include "net/collective/send_lane.h"

namespace atl {

class RingWorker {
 public:
  // References outlive this.
  RingWorker(std::size_t index, const AttemptContext& attempt) : index_(index), attempt_(attempt) {}
  void add(SendLane& lane) { senders_.push_back(&lane); }
  // Any thread, also while it runs; it looks at it once the board is told (FrameBoard::inbound_joined).
  void join(ReceiveLane& lane);

  // Until the board says that the attempt has ended. Failures go to the board.
  void run();
  // Payload and framing, before TLS.
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  std::uint64_t bytes_received() const { return bytes_received_; }

 private:
  void take_joined();
  bool pump_receivers();  // whether anything moved
  void put_least_laden_first();
  bool pump_senders();
  bool hash_piece();
  bool has_idle_sender() const;
  std::optional<std::size_t> least_unsent() const;  // of its idle connections
  Deadline wakes_at(Clock::time_point now) const;
  void sleep(std::uint64_t version);

  const std::size_t index_;
  const AttemptContext& attempt_;
  std::vector<SendLane*> senders_;
  using Laden = std::pair<std::size_t, SendLane*>;  // bytes that wait in the kernel
  std::vector<Laden> laden_;
  std::vector<ReceiveLane*> receivers_;
  Mutex joining_mutex_;
  std::vector<ReceiveLane*> joining_ ATOLL_GUARDED_BY(joining_mutex_);
  std::vector<pollfd> polls_;
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t bytes_received_ = 0;
};

}  // namespace atl
