// One of the connections from the previous rank: receives frames, each straight into its place in the canonical bytes,
// in whatever order they come. Believes nothing that the schedule does not say. Never waits. Owned and used by one
// worker thread.
#pragma once

#include <poll.h>

#include <array>
#include <functional>

#include "net/base/bytes.h"
#include "net/base/deadline.h"
#include "net/base/result.h"
#include "net/collective/attempt_context.h"
#include "net/transport/tls_connection.h"
#include "net/wire/ring_frame.h"

namespace atl {

class ReceiveLane {
 public:
  // `early_allowed`: how long a frame may be ahead of what it is made of. References outlive this.
  ReceiveLane(TlsConnection& connection, const AttemptContext& attempt, std::chrono::milliseconds early_allowed);

  // Takes what has come, at most about one frame, and no more than the owner lets the island receive. Returns bytes
  // moved, keepalives among them. `sends_itself`: whether a lane of the same worker is free to forward a frame.
  Result<std::size_t> pump(bool sends_itself);
  bool closed() const { return closed_; }
  // Whether nothing more is to be read in this attempt.
  bool at_end() const { return closed_ || next_attempt_; }
  pollfd poll_request(Clock::time_point now) const;
  // Until when nothing is read, by its owner's limit; in the past: it is read.
  Clock::time_point held_until() const { return held_until_; }

  // After the attempt: what was read beyond its frames, of a keepalive or of the next hello. Empty optional: the
  // connection is closed, or in the middle of a frame.
  std::optional<Bytes> surplus() const;

 private:
  Result<std::size_t> take(std::size_t most, bool sends_itself);
  void give_receipt(std::size_t moved, Clock::time_point now);  // where one is due
  std::span<std::byte> room();
  Status check_header();
  Status admit();
  Error wrong(std::string_view what) const;

  TlsConnection& connection_;
  const AttemptContext& attempt_;
  const std::chrono::milliseconds early_allowed_;
  bool gives_receipts_;
  std::uint64_t since_receipt_ = 0;  // bytes read
  Clock::time_point last_receipt_{};
  bool closed_ = false;        // by the peer, between two frames
  bool next_attempt_ = false;  // a hello came where a frame could have
  bool early_ = false;         // the header is there, its payload is not let in yet
  Clock::time_point early_since_;
  std::array<std::byte, kRingFrameHeaderBytes> header_bytes_{};
  std::uint32_t sequence_ = 0;
  RingSubChunk sub_chunk_;
  std::size_t received_ = 0;  // of header and payload
  Clock::time_point held_until_{};
};

}  // namespace atl
