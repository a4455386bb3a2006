#include "net/collective/edge_receiver.h"

#include <fmt/format.h>

namespace atl {
namespace {

// Most bytes that one connection moves before the others have their turn.
constexpr std::size_t kTurnBytes = kSubChunkBytes;

}  // namespace

EdgeReceiver::EdgeReceiver(std::vector<TlsConnection> connections, const EdgeSchedule& schedule, OuterStep round,
                           Attempt attempt, std::span<std::byte> canonical, OnFrame on_frame)
    : schedule_(schedule), round_(round), attempt_(attempt), canonical_(canonical), on_frame_(std::move(on_frame)) {
  std::uint32_t next = 0;
  for (TlsConnection& connection : connections) lanes_.emplace_back(std::move(connection), next++);
}

// Where the next bytes of this connection belong.
std::span<std::byte> EdgeReceiver::room(Lane& lane) {
  if (lane.received < kRingFrameHeaderBytes) return std::span(lane.header).subspan(lane.received);
  const std::size_t of_payload = lane.received - kRingFrameHeaderBytes;
  return canonical_.subspan(lane.sub_chunk.first_byte, lane.sub_chunk.bytes).subspan(of_payload);
}

// The header is complete: only what the schedule says comes next, or a keepalive, is let past.
Status EdgeReceiver::check_header(Lane& lane) {
  const auto wrong = [&](std::string_view what) {
    return Error{ErrorCode::kProtocol, fmt::format("{}: {}", lane.connection.description(), what)};
  };
  Result<RingFrameHeader> decoded = decode_ring_frame_header(lane.header);
  if (!decoded.ok()) return decoded.error().with_context(lane.connection.description());
  const RingFrameHeader& header = *decoded;
  if (header.round != round_ || header.attempt != attempt_) {
    return wrong(fmt::format("a frame of round {} attempt {}", header.round.value, header.attempt.value));
  }
  if (header.type == RingFrameType::kKeepalive) {
    lane.received = 0;
    return ok_status();
  }
  if (lane.next >= schedule_.frames()) return wrong("a frame after the last one");
  if (header.sequence != lane.next) {
    return wrong(fmt::format("frame {} where frame {} belongs", header.sequence, lane.next));
  }
  lane.sub_chunk = schedule_.frame(lane.next);
  if (header.phase != lane.sub_chunk.phase || header.offset != lane.sub_chunk.first_byte ||
      header.length != lane.sub_chunk.bytes) {
    return wrong(fmt::format("frame {} has {} bytes at {} instead of {} at {}", header.sequence, header.length,
                             header.offset, lane.sub_chunk.bytes, lane.sub_chunk.first_byte));
  }
  return ok_status();
}

Result<std::size_t> EdgeReceiver::pump(Lane& lane) {
  std::size_t moved = 0;
  while (moved < kTurnBytes && !lane.closed) {
    Result<std::size_t> count = lane.connection.try_read(room(lane));
    if (!count.ok()) {
      const bool had_its_frames = lane.next >= schedule_.frames() && lane.received == 0;
      if (count.error().code != ErrorCode::kPeerLost || !had_its_frames) return count.error();
      lane.closed = true;
      break;
    }
    if (*count == 0) break;
    lane.received += *count;
    moved += *count;
    if (lane.received == kRingFrameHeaderBytes) ATOLL_RETURN_IF_ERROR(check_header(lane));
    if (lane.received > kRingFrameHeaderBytes && lane.received == kRingFrameHeaderBytes + lane.sub_chunk.bytes) {
      on_frame_(lane.next, lane.sub_chunk);
      lane.received = 0;
      lane.next += static_cast<std::uint32_t>(lanes_.size());
      ++frames_received_;
    }
  }
  return moved;
}

Result<std::size_t> EdgeReceiver::pump() {
  std::size_t moved = 0;
  for (Lane& lane : lanes_) {
    ATOLL_ASSIGN_OR_RETURN(const std::size_t count, pump(lane));
    moved += count;
  }
  return moved;
}

void EdgeReceiver::append_polls(std::vector<pollfd>& polls) const {
  for (const Lane& lane : lanes_) {
    if (!lane.closed) polls.push_back({lane.connection.fd(), lane.connection.poll_events_for_read(), 0});
  }
}

}  // namespace atl
