// The outbound edge of one attempt: sends its frames to the next rank over K connections, frame i on connection i mod
// K. Never waits. Owned and used by the thread that runs the all-reduce.
#pragma once

#include <poll.h>

#include <array>
#include <span>
#include <vector>

#include "net/base/deadline.h"
#include "net/base/result.h"
#include "net/collective/partial_sums.h"
#include "net/collective/ring_schedule.h"
#include "net/transport/tls_connection.h"
#include "net/wire/ring_frame.h"

namespace atl {

class EdgeSender {
 public:
  // Own frames are made by `sums` when their turn comes, the others were received before. References outlive this.
  EdgeSender(std::vector<TlsConnection> connections, const EdgeSchedule& schedule, OuterStep round, Attempt attempt,
             std::span<const std::byte> canonical, PartialSums& sums);

  // This frame's bytes are in `canonical` now. Own frames need no such call.
  void frame_ready(std::uint32_t sequence) { ready_[sequence] = true; }
  // Sends what the sockets take now. Returns bytes moved.
  Result<std::size_t> pump();
  // Sends a keepalive beside the data, when connection 0 is between frames.
  void queue_keepalive();

  bool done() const { return frames_sent_ == schedule_.frames(); }
  // A frame is ready, and the sockets did not take all of it.
  bool blocked() const;

  // What poll(2) must watch; and what it saw, in the same order: kPeerLost as soon as the peer goes away.
  void append_polls(std::vector<pollfd>& polls) const;
  Status after_poll(std::span<const pollfd> polls);

 private:
  struct Lane {
    Lane(TlsConnection established, std::uint32_t first) : connection(std::move(established)), next(first) {}
    TlsConnection connection;
    std::uint32_t next;  // sequence of its next data frame, or of the one under way
    bool under_way = false;
    bool keepalive = false;  // the one under way is no data frame
    std::array<std::byte, kRingFrameHeaderBytes> header{};
    ByteView payload;
    std::size_t sent = 0;  // of header and payload
  };

  bool is_ready(std::uint32_t sequence) const;
  bool begin_next(Lane& lane);
  void begin(Lane& lane, const RingFrameHeader& header, ByteView payload);
  void finish(Lane& lane);
  Result<std::size_t> pump(Lane& lane);

  std::vector<Lane> lanes_;
  const EdgeSchedule& schedule_;
  const OuterStep round_;
  const Attempt attempt_;
  const std::span<const std::byte> canonical_;
  PartialSums& sums_;
  std::vector<bool> ready_;
  std::uint32_t frames_sent_ = 0;
};

}  // namespace atl
