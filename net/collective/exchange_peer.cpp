#include "net/collective/exchange_peer.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/collective/ring_edges.h"

namespace atl {

ExchangePeer::ExchangePeer(const ExchangeContext& exchange, std::size_t rank, std::size_t slots)
    : exchange_(exchange),
      rank_(rank),
      theirs_(owned_sub_chunks(exchange.payload, static_cast<int>(exchange.spec.order.size()),
                               Rank{static_cast<std::int32_t>(rank)})),
      contributes_(has_share(exchange.spec.order, rank)),
      due_contributions_(contributes_ ? exchange.own.size() : 0),
      due_to_it_(has_share(exchange.spec.order, exchange.self) ? theirs_.size() : 0),
      slots_(slots) {}

void ExchangePeer::join(TlsConnection connection, bool greeted) {
  connection_.emplace(std::move(connection));
  greeted_ = greeted;
  if (!greeted) hello_.resize(kRingHelloPrefixBytes);
}

void ExchangePeer::leave() {
  connection_.reset();
  hello_ = {};
  received_ = 0;
  said_hello_ = under_way_ = false;
  contributions_sent_ = results_sent_ = 0;
  keepalive_.reset();
  bytes_sent_ = 0;
}

Error ExchangePeer::wrong(std::string_view what) const {
  return Error{ErrorCode::kProtocol, fmt::format("{}: {}", connection_->description(), what)};
}

// ---- from the peer
// ----------------------------------------------------------------------------------------------------

bool ExchangePeer::has_room(std::size_t summed) const {
  return phase_ == RingPhase::kAllGather || slots_.empty() || contributions_ < summed + slots_.size();
}

bool ExchangePeer::reads(std::size_t summed) const {
  return joined() && !closed_ && !next_attempt_ && (!in_payload() || has_room(summed));
}

// The header is complete.
const RingSubChunk& ExchangePeer::arriving() const {
  return phase_ == RingPhase::kReduceScatter ? exchange_.own[contributions_] : theirs_[results_];
}

// Where the next bytes of this connection belong.
std::span<std::byte> ExchangePeer::room() {
  if (!greeted_) return std::span(hello_).subspan(received_);
  if (!in_payload()) return std::span(header_bytes_).subspan(received_);
  const RingSubChunk& sub_chunk = arriving();
  const std::size_t of_payload = received_ - kRingFrameHeaderBytes;
  if (phase_ == RingPhase::kAllGather || slots_.empty()) {
    return exchange_.canonical.subspan(sub_chunk.first_byte, sub_chunk.bytes).subspan(of_payload);
  }
  Bytes& slot = slots_[contributions_ % slots_.size()];
  slot.resize(sub_chunk.bytes);
  return std::span(slot).subspan(of_payload);
}

Result<std::size_t> ExchangePeer::receive(std::size_t most, std::size_t summed) {
  std::size_t moved = 0;
  while (moved < most && reads(summed)) {
    const std::span<std::byte> place = room();
    const Result<std::size_t> count = connection_->try_read(place.first(std::min(place.size(), most - moved)));
    if (!count.ok()) {
      if (count.error().code != ErrorCode::kPeerLost || received_ > 0 || owes() || !all_sent()) return count.error();
      closed_ = true;
      break;
    }
    if (*count == 0) break;
    moved += *count;
    if (greeted_) bytes_received_ += *count;
    if (in_payload()) (phase_ == RingPhase::kAllGather ? result_bytes_ : contribution_bytes_) += *count;
    received_ += *count;
    ATOLL_RETURN_IF_ERROR(take_what_is_whole());
  }
  return moved;
}

Status ExchangePeer::take_what_is_whole() {
  if (!greeted_) return received_ == hello_.size() ? check_hello() : ok_status();
  if (received_ == kRingFrameHeaderBytes) return check_header();
  if (in_payload() && received_ == kRingFrameHeaderBytes + arriving().bytes) take_frame();
  return ok_status();
}

Status ExchangePeer::check_hello() {
  if (ring_message_at(ByteView(hello_).first(4)) == RingMessage::kFrame) return pass_over_keepalive();
  if (hello_.size() == kRingHelloPrefixBytes) {
    const Result<std::size_t> length = decode_ring_hello_prefix(hello_);
    if (!length.ok()) return length.error().with_context(connection_->description());
    hello_.resize(kRingHelloPrefixBytes + *length);
    return ok_status();
  }
  const Result<RingHello> hello = decode_ring_hello_body(ByteView(hello_).subspan(kRingHelloPrefixBytes));
  if (!hello.ok()) return hello.error().with_context(connection_->description());
  const RingHello expected = hello_of(exchange_.spec, rank_, RingRole::kExchange, exchange_.payload);
  std::string difference = hello_difference(*hello, expected);
  if (difference.empty() && *hello != expected) {  // of those that an inbox looks at first
    difference = fmt::format("round {} attempt {} of {}, {} connections", hello->round.value, hello->attempt.value,
                             hello->from.value, hello->connection_count);
  }
  if (!difference.empty()) return wrong("answered with " + difference);
  greeted_ = true;
  received_ = 0;
  hello_ = {};
  return ok_status();
}

// By which the dialler saw whether the connection stands, while this member had begun.
Status ExchangePeer::pass_over_keepalive() {
  if (hello_.size() < kRingFrameHeaderBytes) {
    hello_.resize(kRingFrameHeaderBytes);
    return ok_status();
  }
  const Result<RingFrameHeader> header = decode_ring_frame_header(std::span(hello_).first<kRingFrameHeaderBytes>());
  if (!header.ok()) return header.error().with_context(connection_->description());
  if (header->type != RingFrameType::kKeepalive) return wrong("a frame before its hello");
  hello_.assign(kRingHelloPrefixBytes, std::byte{});
  received_ = 0;
  return ok_status();
}

Status ExchangePeer::check_header() {
  if (ring_message_at(ByteView(header_bytes_).first(4)) == RingMessage::kHello) {
    if (owes()) return wrong("another hello before all of this attempt had come");
    next_attempt_ = true;
    return ok_status();
  }
  const Result<RingFrameHeader> decoded = decode_ring_frame_header(header_bytes_);
  if (!decoded.ok()) return decoded.error().with_context(connection_->description());
  const RingFrameHeader& header = *decoded;
  if (header == resting_keepalive()) {  // it has done its part
    received_ = 0;
    return ok_status();
  }
  if (header.round != exchange_.spec.round || header.attempt != exchange_.spec.attempt ||
      header.fragment != exchange_.spec.fragment) {
    return wrong(fmt::format("a frame of round {} attempt {}, fragment {}", header.round.value, header.attempt.value,
                             header.fragment.value));
  }
  if (header.type == RingFrameType::kKeepalive) {
    patience_ = std::chrono::milliseconds(std::min<std::uint64_t>(header.offset, 1u << 30));  // a week and more
    received_ = 0;
    return ok_status();
  }
  phase_ = header.phase;
  const bool contributes = phase_ == RingPhase::kReduceScatter;
  const std::size_t next = contributes ? contributions_ : results_;
  const std::size_t due = contributes ? due_contributions_ : theirs_.size();
  if (next >= due) {
    return wrong(fmt::format("frame {} of the {}, of which it owed {}", header.sequence,
                             contributes ? "contributions" : "sums", due));
  }
  if (const RingFrameHeader expected = header_of(phase_, next, arriving()); header != expected) {
    return wrong(fmt::format("frame {} of the {} has {} bytes at {} instead of frame {} with {} at {}", header.sequence,
                             contributes ? "contributions" : "sums", header.length, header.offset, expected.sequence,
                             expected.length, expected.offset));
  }
  return ok_status();
}

void ExchangePeer::take_frame() {
  received_ = 0;
  if (phase_ == RingPhase::kReduceScatter) {
    ++contributions_;
    return;
  }
  exchange_.pieces.count(theirs_[results_].first_byte, theirs_[results_].bytes);
  ++results_;
}

// ---- to the peer
// ----------------------------------------------------------------------------------------------------

RingFrameHeader ExchangePeer::header_of(RingPhase phase, std::size_t index, const RingSubChunk& sub_chunk) const {
  return {.phase = phase,
          .round = exchange_.spec.round,
          .attempt = exchange_.spec.attempt,
          .fragment = exchange_.spec.fragment,
          .sequence = static_cast<std::uint32_t>(index),
          .length = sub_chunk.bytes,
          .offset = sub_chunk.first_byte};
}

std::int64_t ExchangePeer::bucket_of(const RingSubChunk& sub_chunk) const {
  return sub_chunk.first_value / exchange_.payload.bucket_numel;
}

void ExchangePeer::begin_frame(RingPhase phase, std::size_t index, const RingSubChunk& sub_chunk, ByteView payload) {
  head_.resize(kRingFrameHeaderBytes);
  encode(header_of(phase, index, sub_chunk), std::span(head_).first<kRingFrameHeaderBytes>());
  payload_ = payload;
  keepalive_.reset();
}

void ExchangePeer::begin_contribution() {
  const RingSubChunk& sub_chunk = theirs_[contributions_sent_];
  contribution_.resize(sub_chunk.bytes);
  exchange_.sums.encode_contribution(sub_chunk, contribution_);
  begin_frame(RingPhase::kReduceScatter, contributions_sent_++, sub_chunk, contribution_);
}

void ExchangePeer::begin_result() {
  const RingSubChunk& sub_chunk = exchange_.own[results_sent_];
  begin_frame(RingPhase::kAllGather, results_sent_++, sub_chunk,
              exchange_.canonical.subspan(sub_chunk.first_byte, sub_chunk.bytes));
}

// As in the ring: what an earlier bucket lacks goes before a later bucket's contributions, so that buckets get whole
// one after the other; and whoever waits for sums contributes to what comes later.
bool ExchangePeer::begin_next(std::size_t summed) {
  const bool contributes = contributions_sent_ < due_to_it_, has_result = results_sent_ < summed;
  const bool owes_later = results_sent_ < exchange_.own.size();
  if (!said_hello_) {
    head_ = encode(hello_of(exchange_.spec, exchange_.self, RingRole::kExchange, exchange_.payload));
    payload_ = {};
    said_hello_ = true;
  } else if (contributes &&
             (!has_result || bucket_of(theirs_[contributions_sent_]) <= bucket_of(exchange_.own[results_sent_]))) {
    begin_contribution();
  } else if (has_result) {
    begin_result();
  } else if (keepalive_ && owes_later) {
    head_.resize(kRingFrameHeaderBytes);
    encode({.type = RingFrameType::kKeepalive,
            .round = exchange_.spec.round,
            .attempt = exchange_.spec.attempt,
            .fragment = exchange_.spec.fragment,
            .offset = static_cast<std::uint64_t>(keepalive_->count())},
           std::span(head_).first<kRingFrameHeaderBytes>());
    payload_ = {};
    keepalive_.reset();
  } else {
    return false;
  }
  sent_ = 0;
  under_way_ = true;
  return true;
}

Result<std::size_t> ExchangePeer::send(std::size_t summed) {
  std::size_t moved = 0;
  if (!joined() || closed_) return moved;
  while (moved < kSubChunkBytes && (under_way_ || begin_next(summed))) {
    const ByteView rest =
        sent_ < head_.size() ? ByteView(head_).subspan(sent_) : payload_.subspan(sent_ - head_.size());
    ATOLL_ASSIGN_OR_RETURN(const std::size_t count, connection_->try_write(rest, true));
    sent_ += count;
    moved += count;
    if (count < rest.size()) break;
    if (sent_ < head_.size() + payload_.size()) continue;
    under_way_ = false;
    if (ring_message_at(ByteView(head_).first(4)) == RingMessage::kFrame) bytes_sent_ += sent_;
  }
  ATOLL_RETURN_IF_ERROR(connection_->try_flush());
  return moved;
}

bool ExchangePeer::all_sent() const {
  return said_hello_ && !under_way_ && contributions_sent_ == due_to_it_ && results_sent_ == exchange_.own.size() &&
         !connection_->has_unsent();
}

pollfd ExchangePeer::poll_request(std::size_t summed, bool may_read) const {
  if (!joined() || closed_) return {-1, 0, 0};
  const bool listens = may_read && reads(summed), writes = under_way_ || connection_->has_unsent();
  const auto events = static_cast<short>((listens ? connection_->poll_events_for_read() : 0) |
                                         (writes ? connection_->poll_events_for_write() : 0));
  return {listens || writes ? connection_->fd() : -1, events, 0};
}

std::optional<RingInbox::Parked> ExchangePeer::release() {
  const bool between_frames = next_attempt_ || !in_payload();
  if (!joined() || closed_ || owes() || !all_sent() || !between_frames) return std::nullopt;
  const auto surplus = std::span(header_bytes_).first(received_);
  return RingInbox::Parked{std::move(*connection_), Bytes(surplus.begin(), surplus.end())};
}

}  // namespace atl
