#include "net/collective/receive_lane.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/collective/arrivals.h"
#include "net/tls/context.h"
#include "net/transport/socket.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kReceiptEvery{50};

}  // namespace

ReceiveLane::ReceiveLane(TlsConnection& connection, const AttemptContext& attempt,
                         std::chrono::milliseconds early_allowed)
    : connection_(connection),
      attempt_(attempt),
      early_allowed_(early_allowed),
      gives_receipts_(connection.alpn() == kAlpnRingReceipts && !leads_to_this_machine(connection.fd())) {}

Error ReceiveLane::wrong(std::string_view what) const {
  return Error{ErrorCode::kProtocol, fmt::format("{}: {}", connection_.description(), what)};
}

// Where the next bytes of this connection belong.
std::span<std::byte> ReceiveLane::room() {
  if (received_ < kRingFrameHeaderBytes) return std::span(header_bytes_).subspan(received_);
  const std::size_t of_payload = received_ - kRingFrameHeaderBytes;
  return attempt_.canonical.subspan(sub_chunk_.first_byte, sub_chunk_.bytes).subspan(of_payload);
}

// The header is complete: only a frame of the schedule, with the schedule's place, or a keepalive is let past.
Status ReceiveLane::check_header() {
  if (ring_message_at(ByteView(header_bytes_).first(4)) == RingMessage::kHello) {
    next_attempt_ = true;
    return ok_status();
  }
  Result<RingFrameHeader> decoded = decode_ring_frame_header(header_bytes_);
  if (!decoded.ok()) return decoded.error().with_context(connection_.description());
  const RingFrameHeader& header = *decoded;
  if (header == resting_keepalive()) {  // its sender has done its part, and what it sent is still under way
    received_ = 0;
    return ok_status();
  }
  if (header.round != attempt_.round || header.attempt != attempt_.attempt || header.fragment != attempt_.fragment) {
    return wrong(fmt::format("a frame of round {} attempt {}, fragment {}", header.round.value, header.attempt.value,
                             header.fragment.value));
  }
  if (header.type == RingFrameType::kKeepalive) {
    // What it promises is believed no longer than this island would wait by itself (early_allowed_: the silence
    // timeout).
    const auto longest = static_cast<std::uint64_t>((kStallTimeouts * early_allowed_).count());
    const auto patience = std::chrono::milliseconds(std::min(header.offset, longest));
    attempt_.board.vouch(Clock::now() + patience);
    received_ = 0;
    return ok_status();
  }
  if (header.sequence >= attempt_.inbound.frames()) {
    return wrong(fmt::format("frame {} of {}", header.sequence, attempt_.inbound.frames()));
  }
  sequence_ = header.sequence;
  sub_chunk_ = attempt_.inbound.frame(sequence_);
  if (header.phase != sub_chunk_.phase || header.offset != sub_chunk_.first_byte || header.length != sub_chunk_.bytes) {
    return wrong(fmt::format("frame {} has {} bytes at {} instead of {} at {}", header.sequence, header.length,
                             header.offset, sub_chunk_.bytes, sub_chunk_.first_byte));
  }
  early_since_ = Clock::now();
  return admit();
}

Status ReceiveLane::admit() {
  const FrameBoard::Admission admission = attempt_.board.admit(sequence_);
  if (admission == FrameBoard::Admission::kTwice) return wrong(fmt::format("frame {} a second time", sequence_));
  early_ = admission == FrameBoard::Admission::kEarly;
  if (early_ && Clock::now() - early_since_ > early_allowed_) {
    return wrong(fmt::format("frame {} before what it is made of was sent", sequence_));
  }
  return ok_status();
}

Result<std::size_t> ReceiveLane::pump(bool sends_itself) {
  DownloadPace* const pace = attempt_.download;
  if (early_) ATOLL_RETURN_IF_ERROR(admit());
  const auto now = Clock::now();
  held_until_ = pace != nullptr ? pace->may_read_at(DownloadPace::Use::kRing, now) : now;
  if (held_until_ > now) return std::size_t{0};
  const std::size_t most = pace != nullptr ? pace->at_once(DownloadPace::Use::kRing) : kSubChunkBytes;
  const auto moved = take(most, sends_itself);
  if (pace != nullptr && moved.ok()) pace->has_read(DownloadPace::Use::kRing, *moved, now);
  if (moved.ok()) give_receipt(*moved, now);
  return moved;
}

// Nothing else is written here: where the socket has no room, or breaks, there is none to be told, and reading will say
// why.
void ReceiveLane::give_receipt(std::size_t moved, Clock::time_point now) {
  since_receipt_ += moved;
  if (!gives_receipts_ || closed_ || since_receipt_ < kReceiptBytes || now - last_receipt_ < kReceiptEvery) return;
  gives_receipts_ = connection_.try_flush().ok();
  if (!gives_receipts_ || connection_.has_unsent()) return;
  const std::uint64_t bytes = tcp_progress(connection_.fd()).bytes_received;
  const RingReceipt receipt{attempt_.round, attempt_.attempt, attempt_.fragment, microseconds_of(Clock::now()), bytes};
  // With more to follow it is gathered whole, and never half written.
  gives_receipts_ = connection_.try_write(encode(receipt), true).ok() && connection_.try_flush().ok();
  since_receipt_ = 0;
  last_receipt_ = now;
}

Result<std::size_t> ReceiveLane::take(std::size_t most, bool sends_itself) {
  std::size_t moved = 0;
  while (moved < most && !at_end() && !early_) {
    const std::span<std::byte> place = room();
    Result<std::size_t> count = connection_.try_read(place.first(std::min(place.size(), most - moved)));
    if (!count.ok()) {
      if (count.error().code != ErrorCode::kPeerLost || received_ > 0) return count.error();
      closed_ = true;
      break;
    }
    if (*count == 0) break;
    if (received_ >= kRingFrameHeaderBytes) attempt_.board.count_data(*count);
    received_ += *count;
    moved += *count;
    if (received_ == kRingFrameHeaderBytes) ATOLL_RETURN_IF_ERROR(check_header());
    if (received_ > kRingFrameHeaderBytes && received_ == kRingFrameHeaderBytes + sub_chunk_.bytes) {
      if (sub_chunk_.phase == RingPhase::kReduceScatter) attempt_.sums.add_own(sub_chunk_);
      received_ = 0;
      attempt_.board.frame_in_place(sequence_, sub_chunk_, sends_itself);
    }
  }
  return moved;
}

pollfd ReceiveLane::poll_request(Clock::time_point now) const {
  const bool listens = !at_end() && !early_ && held_until_ <= now;
  return {listens ? connection_.fd() : -1, connection_.poll_events_for_read(), 0};
}

std::optional<Bytes> ReceiveLane::surplus() const {
  const bool between_frames = next_attempt_ || received_ < kRingFrameHeaderBytes;
  if (closed_ || early_ || !between_frames || connection_.has_unsent()) return std::nullopt;
  return Bytes(header_bytes_.begin(), header_bytes_.begin() + static_cast<std::ptrdiff_t>(received_));
}

}  // namespace atl
