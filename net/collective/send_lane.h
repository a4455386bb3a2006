// One of the connections to the next rank: sends whichever frame is ready next, so that a slow connection carries less
// and holds nothing up. Never waits. Owned and used by one worker thread.
#pragma once

#include <poll.h>

#include <array>
#include <optional>

#include "net/base/bytes.h"
#include "net/base/result.h"
#include "net/collective/attempt_context.h"
#include "net/transport/tls_connection.h"
#include "net/wire/ring_frame.h"

namespace atl {

class SendLane {
 public:
  // References outlive this.
  SendLane(TlsConnection& connection, const AttemptContext& attempt);

  // Sends what the socket takes now, at most about one frame. Returns bytes moved.
  Result<std::size_t> pump();
  // It may begin a frame, unless another connection has less to send first.
  bool idle() const { return !under_way_ && !closed_; }
  // Open, with nothing of a frame left to send.
  bool finished() const { return between_frames() && !closed_; }
  bool closed() const { return closed_; }
  std::size_t unsent() const;  // bytes that wait here and in the kernel; none once closed

  pollfd poll_request() const;
  // What poll(2) saw: the peer says nothing on this edge but receipts, so anything else that is readable means that it
  // closed or breaks the protocol.
  Status after_poll(short events);

 private:
  bool begin_next();
  bool begin_keepalive();  // if one is due
  void report();
  bool between_frames() const { return !under_way_ && !connection_.has_unsent(); }
  void begin(const RingFrameHeader& header, ByteView payload);
  Status take_receipt(ByteView message);
  Error against_direction() const;

  TlsConnection& connection_;
  const AttemptContext& attempt_;
  const bool takes_receipts_;
  bool under_way_ = false;
  bool closed_ = false;  // by the peer, between two frames
  RingFrameHeader header_;
  std::array<std::byte, kRingFrameHeaderBytes> header_bytes_{};
  ByteView payload_;
  std::size_t sent_ = 0;        // of header and payload
  std::uint64_t receipts_ = 0;  // that came
  std::uint64_t bytes_sent_ = 0;
  // Encrypted, but perhaps not all with the kernel yet. The attempt must not end before it is; that its place may be
  // written again matters only once it has arrived.
  std::optional<std::uint32_t> unreported_;
};

}  // namespace atl
