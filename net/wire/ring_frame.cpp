#include "net/wire/ring_frame.h"

#include <fmt/format.h>

namespace atl {
namespace {

Error protocol_error(std::string message) { return Error{ErrorCode::kProtocol, std::move(message)}; }

constexpr std::uint8_t kAheadDirectly = 1, kAheadTakesPadding = 2;

Error other_version(std::uint16_t version) {
  return Error{ErrorCode::kVersionUnsupported,
               fmt::format("ring hello: the peer speaks version {} of the ring's protocol, this island version {}; "
                           "update the older one",
                           version, kRingVersion)};
}

Status check(const RingHello& hello) {
  if (hello.world_size < 2 || hello.world_size > kMaxRingIslands) {
    return protocol_error(fmt::format("ring hello: a ring of {} islands", hello.world_size));
  }
  if (hello.from_rank.value >= hello.world_size) return protocol_error("ring hello: a rank outside the ring");
  if (hello.connection_count < 1 || hello.connection_count > kMaxConnectionsPerEdge ||
      hello.connection_index >= hello.connection_count) {
    return protocol_error(
        fmt::format("ring hello: connection {} of {}", hello.connection_index, hello.connection_count));
  }
  if (hello.payload_numel > kMaxPayloadNumel) return protocol_error("ring hello: the payload is too large to be true");
  if (hello.bucket_numel == 0 || hello.bucket_numel > kMaxPayloadNumel) {
    return protocol_error(fmt::format("ring hello: buckets of {} values", hello.bucket_numel));
  }
  if (hello.from.value.empty()) return protocol_error("ring hello: no island id");
  if (hello.fragment.value >= kMaxFragments) {
    return protocol_error(fmt::format("ring hello: unknown fragment {}", hello.fragment.value));
  }
  return ok_status();
}

}  // namespace

Bytes encode(const RingHello& hello) {
  ByteWriter body;
  body.put(static_cast<std::uint8_t>(hello.wire));
  body.put(static_cast<std::uint8_t>(hello.role));
  body.put(static_cast<std::uint16_t>(hello.world_size));
  body.put(static_cast<std::uint16_t>(hello.from_rank.value));
  body.put(static_cast<std::uint16_t>(hello.connection_index));
  body.put(static_cast<std::uint16_t>(hello.connection_count));
  body.put(hello.round.value);
  body.put(hello.attempt.value);
  body.put(hello.payload_numel);
  body.put(hello.bucket_numel);
  body.put(hello.final_buckets);
  body.put_string(hello.from.value);
  body.put(static_cast<std::uint8_t>(hello.fragment.value));
  ByteWriter whole;
  whole.put(kRingHelloMagic);
  whole.put(kRingVersion);
  whole.put(static_cast<std::uint16_t>(body.bytes().size()));
  whole.put_bytes(body.bytes());
  return whole.take();
}

Result<std::size_t> decode_ring_hello_prefix(ByteView prefix) {
  ByteReader reader(prefix);
  const auto magic = reader.get<std::uint32_t>();
  const auto version = reader.get<std::uint16_t>();
  const auto length = reader.get<std::uint16_t>();
  if (!reader.ok() || !reader.at_end() || magic != kRingHelloMagic) {
    return protocol_error("ring hello: these bytes are no hello of Atoll's ring");
  }
  if (version != kRingVersion) return other_version(version);
  if (length > kMaxRingHelloBodyBytes) return protocol_error(fmt::format("ring hello: {} bytes long", length));
  return std::size_t{length};
}

Result<RingHello> decode_ring_hello_body(ByteView body) {
  ByteReader reader(body);
  RingHello hello;
  const auto wire = reader.get<std::uint8_t>();
  const auto role = reader.get<std::uint8_t>();
  hello.world_size = reader.get<std::uint16_t>();
  hello.from_rank = Rank{reader.get<std::uint16_t>()};
  hello.connection_index = reader.get<std::uint16_t>();
  hello.connection_count = reader.get<std::uint16_t>();
  hello.round = OuterStep{reader.get<std::uint32_t>()};
  hello.attempt = Attempt{reader.get<std::uint32_t>()};
  hello.payload_numel = reader.get<std::uint64_t>();
  hello.bucket_numel = reader.get<std::uint64_t>();
  hello.final_buckets = reader.get<std::uint64_t>();
  hello.from = IslandId{reader.get_string(kMaxIslandIdBytes)};
  hello.fragment = FragmentId{reader.get<std::uint8_t>()};
  if (!reader.ok() || !reader.at_end()) return protocol_error("ring hello: its length does not fit");
  if (!is_wire_format(wire)) return protocol_error(fmt::format("ring hello: unknown wire format {}", wire));
  hello.wire = static_cast<WireFormat>(wire);
  if (role > static_cast<std::uint8_t>(RingRole::kExchange)) {
    return protocol_error(fmt::format("ring hello: unknown role {}", role));
  }
  hello.role = static_cast<RingRole>(role);
  ATOLL_RETURN_IF_ERROR(check(hello));
  return hello;
}

RingMessage ring_message_at(ByteView magic) {
  const auto value = ByteReader(magic).get<std::uint32_t>();
  if (value == kRingHelloMagic) return RingMessage::kHello;
  if (value == kRingFrameMagic) return RingMessage::kFrame;
  if (value == kRingAheadMagic) return RingMessage::kAhead;
  if (value == kRingPaddingMagic) return RingMessage::kPadding;
  return value == kRingReceiptMagic ? RingMessage::kReceipt : RingMessage::kNone;
}

RingAheadBytes encode(const RingAhead& ahead) {
  ByteWriter writer;
  writer.put(kRingAheadMagic);
  writer.put(kRingVersion);
  writer.put(static_cast<std::uint8_t>(ahead.fragment.value));
  const int directly = ahead.schedule == Schedule::kDirect ? kAheadDirectly : 0;
  writer.put(static_cast<std::uint8_t>(directly | (ahead.takes_padding ? kAheadTakesPadding : 0)));
  RingAheadBytes bytes;
  std::memcpy(bytes.data(), writer.bytes().data(), bytes.size());
  return bytes;
}

Result<RingAhead> decode_ring_ahead(ByteView bytes) {
  ByteReader reader(bytes);
  const auto magic = reader.get<std::uint32_t>();
  const auto version = reader.get<std::uint16_t>();
  const FragmentId fragment{reader.get<std::uint8_t>()};
  const auto flags = reader.get<std::uint8_t>();
  if (!reader.ok() || !reader.at_end() || magic != kRingAheadMagic) {
    return protocol_error("ring connection ahead: these bytes do not begin one");
  }
  if (version != kRingVersion) return other_version(version);
  if (fragment.value >= kMaxFragments || flags > (kAheadDirectly | kAheadTakesPadding)) {
    return protocol_error(fmt::format("ring connection ahead: fragment {}, flags {}", fragment.value, flags));
  }
  const Schedule schedule = (flags & kAheadDirectly) != 0 ? Schedule::kDirect : Schedule::kRing;
  return RingAhead{fragment, schedule, (flags & kAheadTakesPadding) != 0};
}

Bytes ring_padding(std::uint32_t length) {
  ByteWriter writer;
  writer.put(kRingPaddingMagic);
  writer.put(length);
  Bytes bytes = writer.take();
  bytes.resize(kRingHelloPrefixBytes + length);
  return bytes;
}

Result<std::uint32_t> decode_ring_padding_prefix(ByteView prefix) {
  ByteReader reader(prefix);
  const auto magic = reader.get<std::uint32_t>();
  const auto length = reader.get<std::uint32_t>();
  if (!reader.ok() || !reader.at_end() || magic != kRingPaddingMagic) return protocol_error("ring padding: it is none");
  if (length > kMaxRingPaddingBytes) return protocol_error(fmt::format("ring padding: {} bytes long", length));
  return length;
}

RingReceiptMessage encode(const RingReceipt& receipt) {
  ByteWriter writer;
  writer.put(kRingReceiptMagic);
  writer.put(static_cast<std::uint8_t>(receipt.fragment.value));
  writer.put(std::uint8_t{0});
  writer.put(std::uint16_t{0});
  writer.put(receipt.round.value);
  writer.put(receipt.attempt.value);
  writer.put(receipt.microseconds);
  writer.put(receipt.bytes);
  RingReceiptMessage message;
  static_assert(message.size() == 4 + 1 + 1 + 2 + 4 + 4 + 4 + 8);
  std::memcpy(message.data(), writer.bytes().data(), message.size());
  return message;
}

Result<RingReceipt> decode_ring_receipt(ByteView bytes) {
  ByteReader reader(bytes);
  const auto magic = reader.get<std::uint32_t>();
  RingReceipt receipt;
  receipt.fragment = FragmentId{reader.get<std::uint8_t>()};
  const bool zero = reader.get<std::uint8_t>() == 0 && reader.get<std::uint16_t>() == 0;
  receipt.round = OuterStep{reader.get<std::uint32_t>()};
  receipt.attempt = Attempt{reader.get<std::uint32_t>()};
  receipt.microseconds = reader.get<std::uint32_t>();
  receipt.bytes = reader.get<std::uint64_t>();
  if (!reader.ok() || !reader.at_end() || magic != kRingReceiptMagic || !zero) {
    return protocol_error("ring receipt: these bytes are none");
  }
  if (receipt.fragment.value >= kMaxFragments) {
    return protocol_error(fmt::format("ring receipt: unknown fragment {}", receipt.fragment.value));
  }
  return receipt;
}

RingFrameHeader resting_keepalive() {
  RingFrameHeader header;
  header.type = RingFrameType::kKeepalive;
  return header;
}

void encode(const RingFrameHeader& header, std::span<std::byte, kRingFrameHeaderBytes> out) {
  ByteWriter writer;
  writer.put(kRingFrameMagic);
  writer.put(static_cast<std::uint8_t>(header.type));
  writer.put(static_cast<std::uint8_t>(header.phase));
  writer.put(static_cast<std::uint8_t>(header.fragment.value));
  writer.put(std::uint8_t{0});
  writer.put(header.round.value);
  writer.put(header.attempt.value);
  writer.put(header.sequence);
  writer.put(header.length);
  writer.put(header.offset);
  static_assert(kRingFrameHeaderBytes == 4 + 1 + 1 + 1 + 1 + 4 + 4 + 4 + 4 + 8);
  std::memcpy(out.data(), writer.bytes().data(), kRingFrameHeaderBytes);
}

Result<RingFrameHeader> decode_ring_frame_header(std::span<const std::byte, kRingFrameHeaderBytes> bytes) {
  ByteReader reader(bytes);
  const auto magic = reader.get<std::uint32_t>();
  const auto type = reader.get<std::uint8_t>();
  const auto phase = reader.get<std::uint8_t>();
  RingFrameHeader header;
  header.fragment = FragmentId{reader.get<std::uint8_t>()};
  const auto zero = reader.get<std::uint8_t>();
  header.round = OuterStep{reader.get<std::uint32_t>()};
  header.attempt = Attempt{reader.get<std::uint32_t>()};
  header.sequence = reader.get<std::uint32_t>();
  header.length = reader.get<std::uint32_t>();
  header.offset = reader.get<std::uint64_t>();
  if (magic != kRingFrameMagic || zero != 0) return protocol_error("ring frame: these bytes are no frame");
  if (type != static_cast<std::uint8_t>(RingFrameType::kData) &&
      type != static_cast<std::uint8_t>(RingFrameType::kKeepalive)) {
    return protocol_error(fmt::format("ring frame: unknown type {}", type));
  }
  if (phase > static_cast<std::uint8_t>(RingPhase::kAllGather)) {
    return protocol_error(fmt::format("ring frame: unknown phase {}", phase));
  }
  if (header.fragment.value >= kMaxFragments) {
    return protocol_error(fmt::format("ring frame: unknown fragment {}", header.fragment.value));
  }
  if (header.length > kMaxRingFrameBytes)
    return protocol_error(fmt::format("ring frame: {} bytes long", header.length));
  header.type = static_cast<RingFrameType>(type);
  header.phase = static_cast<RingPhase>(phase);
  if (header.type == RingFrameType::kKeepalive && (phase != 0 || header.sequence != 0 || header.length != 0)) {
    return protocol_error("ring frame: a keepalive with a payload");
  }
  return header;
}

}  // namespace atl
