#include "net/collective/edge_sender.h"

#include <fmt/format.h>

#include <algorithm>

namespace atl {
namespace {

// Most bytes that one connection moves before the others have their turn.
constexpr std::size_t kTurnBytes = kSubChunkBytes;

}  // namespace

EdgeSender::EdgeSender(std::vector<TlsConnection> connections, const EdgeSchedule& schedule, OuterStep round,
                       Attempt attempt, std::span<const std::byte> canonical, PartialSums& sums)
    : schedule_(schedule), round_(round), attempt_(attempt), canonical_(canonical), sums_(sums) {
  std::uint32_t next = 0;
  for (TlsConnection& connection : connections) lanes_.emplace_back(std::move(connection), next++);
  ready_.resize(schedule.frames());
}

bool EdgeSender::is_ready(std::uint32_t sequence) const {
  return sequence < schedule_.frames() && (sequence < schedule_.own_frames() || ready_[sequence]);
}

void EdgeSender::begin(Lane& lane, const RingFrameHeader& header, ByteView payload) {
  encode(header, lane.header);
  lane.payload = payload;
  lane.sent = 0;
  lane.under_way = true;
  lane.keepalive = header.type == RingFrameType::kKeepalive;
}

bool EdgeSender::begin_next(Lane& lane) {
  if (!is_ready(lane.next)) return false;
  const RingSubChunk sub_chunk = schedule_.frame(lane.next);
  if (lane.next < schedule_.own_frames()) sums_.encode_own(sub_chunk);
  const RingFrameHeader header{.phase = sub_chunk.phase,
                               .round = round_,
                               .attempt = attempt_,
                               .sequence = lane.next,
                               .length = sub_chunk.bytes,
                               .offset = sub_chunk.first_byte};
  begin(lane, header, canonical_.subspan(sub_chunk.first_byte, sub_chunk.bytes));
  return true;
}

void EdgeSender::finish(Lane& lane) {
  lane.under_way = false;
  if (lane.keepalive) return;
  lane.next += static_cast<std::uint32_t>(lanes_.size());
  ++frames_sent_;
}

Result<std::size_t> EdgeSender::pump(Lane& lane) {
  std::size_t moved = 0;
  while (moved < kTurnBytes && (lane.under_way || begin_next(lane))) {
    const ByteView rest = lane.sent < kRingFrameHeaderBytes ? ByteView(lane.header).subspan(lane.sent)
                                                            : lane.payload.subspan(lane.sent - kRingFrameHeaderBytes);
    ATOLL_ASSIGN_OR_RETURN(const std::size_t count, lane.connection.try_write(rest));
    if (count == 0) break;
    lane.sent += count;
    moved += count;
    if (lane.sent == kRingFrameHeaderBytes + lane.payload.size()) finish(lane);
  }
  return moved;
}

Result<std::size_t> EdgeSender::pump() {
  std::size_t moved = 0;
  for (Lane& lane : lanes_) {
    ATOLL_ASSIGN_OR_RETURN(const std::size_t count, pump(lane));
    moved += count;
  }
  return moved;
}

void EdgeSender::queue_keepalive() {
  if (lanes_.front().under_way) return;
  begin(lanes_.front(), {.type = RingFrameType::kKeepalive, .round = round_, .attempt = attempt_}, {});
}

bool EdgeSender::blocked() const {
  return std::ranges::any_of(lanes_, [this](const Lane& lane) { return lane.under_way || is_ready(lane.next); });
}

void EdgeSender::append_polls(std::vector<pollfd>& polls) const {
  for (const Lane& lane : lanes_) {
    // The peer says nothing on this edge; readable means that it went away.
    const short writable = lane.under_way ? lane.connection.poll_events_for_write() : short{0};
    polls.push_back({lane.connection.fd(), static_cast<short>(POLLIN | writable), 0});
  }
}

Status EdgeSender::after_poll(std::span<const pollfd> polls) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if ((polls[i].revents & (POLLIN | POLLERR | POLLHUP)) == 0) continue;
    std::byte unexpected{};
    ATOLL_ASSIGN_OR_RETURN(const std::size_t count, lanes_[i].connection.try_read({&unexpected, 1}));
    if (count > 0) {
      return Error{ErrorCode::kProtocol,
                   fmt::format("{} sent bytes against the ring's direction", lanes_[i].connection.description())};
    }
  }
  return ok_status();
}

}  // namespace atl
