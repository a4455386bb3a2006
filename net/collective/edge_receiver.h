// The inbound edge of one attempt: receives its frames from the previous rank over K connections, frame i on connection
// i mod K, each straight into its place in the canonical bytes. Takes only the frame that the schedule says comes next
// on a connection. Never waits. Owned and used by the thread that runs the all-reduce.
#pragma once

#include <poll.h>

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "net/base/result.h"
#include "net/collective/ring_schedule.h"
#include "net/transport/tls_connection.h"
#include "net/wire/ring_frame.h"

namespace atl {

class EdgeReceiver {
 public:
  // Called for each frame when its bytes are in place. Frames of one connection come in order.
  using OnFrame = std::function<void(std::uint32_t sequence, const RingSubChunk&)>;

  // References outlive this.
  EdgeReceiver(std::vector<TlsConnection> connections, const EdgeSchedule& schedule, OuterStep round, Attempt attempt,
               std::span<std::byte> canonical, OnFrame on_frame);

  // Takes what has arrived. Returns bytes moved, keepalives among them.
  Result<std::size_t> pump();
  bool done() const { return frames_received_ == schedule_.frames(); }
  void append_polls(std::vector<pollfd>& polls) const;

 private:
  struct Lane {
    Lane(TlsConnection established, std::uint32_t first) : connection(std::move(established)), next(first) {}
    TlsConnection connection;
    std::uint32_t next;   // sequence of its next data frame, or of the one under way
    bool closed = false;  // by the peer, after its last frame
    std::array<std::byte, kRingFrameHeaderBytes> header{};
    RingSubChunk sub_chunk;
    std::size_t received = 0;  // of header and payload
  };

  Result<std::size_t> pump(Lane& lane);
  std::span<std::byte> room(Lane& lane);
  Status check_header(Lane& lane);

  std::vector<Lane> lanes_;
  const EdgeSchedule& schedule_;
  const OuterStep round_;
  const Attempt attempt_;
  const std::span<std::byte> canonical_;
  const OnFrame on_frame_;
  std::uint32_t frames_received_ = 0;
};

}  // namespace atl
