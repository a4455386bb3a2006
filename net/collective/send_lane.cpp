#include "net/collective/send_lane.h"

#include <fmt/format.h>

#include <utility>

#include "net/collective/edge_pacing.h"
#include "net/tls/context.h"
#include "net/transport/socket.h"

namespace atl {

SendLane::SendLane(TlsConnection& connection, const AttemptContext& attempt)
    : connection_(connection), attempt_(attempt), takes_receipts_(connection.alpn() == kAlpnRingReceipts) {}

void SendLane::begin(const RingFrameHeader& header, ByteView payload) {
  header_ = header;
  encode(header, header_bytes_);
  payload_ = payload;
  sent_ = 0;
  under_way_ = true;
}

std::size_t SendLane::unsent() const {
  return closed_ ? 0 : connection_.unsent_bytes() + bytes_unsent(connection_.fd());
}

bool SendLane::begin_keepalive() {
  if (!attempt_.board.keepalive_due()) return false;
  const auto patience = attempt_.board.take_keepalive(tcp_progress(connection_.fd()).bytes_queued > 0);
  if (!patience) return false;
  begin({.type = RingFrameType::kKeepalive,
         .round = attempt_.round,
         .attempt = attempt_.attempt,
         .fragment = attempt_.fragment,
         .offset = static_cast<std::uint64_t>(patience->count())},
        {});
  return true;
}

bool SendLane::begin_next() {
  if (begin_keepalive()) return true;
  const std::optional<std::uint32_t> sequence =
      attempt_.board.has_to_send() ? attempt_.board.take_to_send(unsent()) : std::nullopt;
  if (!sequence) return false;
  report();
  const RingSubChunk sub_chunk = attempt_.outbound.frame(*sequence);
  if (attempt_.outbound.encodes_own() && attempt_.outbound.next_own(*sequence) == *sequence) {
    attempt_.sums.encode_own(sub_chunk);
  }
  const RingFrameHeader header{.phase = sub_chunk.phase,
                               .round = attempt_.round,
                               .attempt = attempt_.attempt,
                               .fragment = attempt_.fragment,
                               .sequence = *sequence,
                               .length = sub_chunk.bytes,
                               .offset = sub_chunk.first_byte};
  begin(header, attempt_.canonical.subspan(sub_chunk.first_byte, sub_chunk.bytes));
  return true;
}

Result<std::size_t> SendLane::pump() {
  std::size_t moved = 0;
  while (moved < kSubChunkBytes && !closed_ && (under_way_ || begin_next())) {
    const bool in_header = sent_ < kRingFrameHeaderBytes;
    const ByteView rest =
        in_header ? ByteView(header_bytes_).subspan(sent_) : payload_.subspan(sent_ - kRingFrameHeaderBytes);
    ATOLL_ASSIGN_OR_RETURN(const std::size_t count, connection_.try_write(rest, true));
    sent_ += count;
    bytes_sent_ += count;
    moved += count;
    if (count < rest.size()) break;
    if (sent_ < kRingFrameHeaderBytes + payload_.size()) continue;
    under_way_ = false;
    if (header_.type == RingFrameType::kData) unreported_ = header_.sequence;
  }
  ATOLL_RETURN_IF_ERROR(connection_.try_flush());
  if (!connection_.has_unsent()) report();
  return moved;
}

void SendLane::report() {
  if (unreported_) attempt_.board.frame_sent(*std::exchange(unreported_, std::nullopt));
}

pollfd SendLane::poll_request() const {
  const short writable = under_way_ || connection_.has_unsent() ? connection_.poll_events_for_write() : short{0};
  return {closed_ ? -1 : connection_.fd(), static_cast<short>(POLLIN | writable), 0};
}

Status SendLane::after_poll(short events) {
  if (closed_ || (events & (POLLIN | POLLERR | POLLHUP)) == 0) return ok_status();
  for (;;) {
    RingReceiptMessage message;
    const Result<std::size_t> count = connection_.try_read(message);
    if (!count.ok()) {
      if (!between_frames() || count.error().code != ErrorCode::kPeerLost) return count.error();
      closed_ = true;
      return ok_status();
    }
    if (*count == 0) return ok_status();
    ATOLL_RETURN_IF_ERROR(take_receipt(ByteView(message).first(*count)));
  }
}

Error SendLane::against_direction() const {
  return Error{ErrorCode::kProtocol,
               fmt::format("{} sent bytes against the ring's direction", connection_.description())};
}

// Of the attempt before some may come late; more than there can be are no honest receiver's.
Status SendLane::take_receipt(ByteView message) {
  const Result<RingReceipt> receipt = decode_ring_receipt(message);
  const std::uint64_t most = kLateReceipts + bytes_sent_ / kReceiptBytes;
  if (!takes_receipts_ || !receipt.ok() || ++receipts_ > most) return against_direction();
  const bool is_late = receipt->round != attempt_.round || receipt->attempt != attempt_.attempt ||
                       receipt->fragment != attempt_.fragment;
  if (!is_late) attempt_.link.came(connection_.fd(), *receipt);
  return ok_status();
}

}  // namespace atl
