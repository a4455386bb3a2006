// What travels on a ring edge (TLS, kAlpnRingReceipts, or kAlpnRing with a member of an older version): attempts, one after the other. Little-endian, explicit widths.
//
//   connection := (ahead padding*)? attempt*
//   attempt    := call? hello frame*    between two attempts: keepalives alone
//   call       := hello
//
// Hello and frames travel from the edge's sender to its receiver, rank r to rank r + 1. Where the receiver dialled,
// because nobody can dial it, it begins each attempt with a call, a hello in which it says that it receives; nothing
// else travels that way but keepalives between attempts, by which a dialler sees whether its connections still stand,
// and receipts.
//
// A receipt tells the sender what had come when, by the receiver's clock, so that it knows its own queue from that of
// the acknowledgements' way (net/collective/arrivals.h). They travel against the direction of an attempt's data, on
// connections of kAlpnRingReceipts alone, each in a TLS record of its own, at most one for every kReceiptBytes of data;
// one may come late, when the attempt is over.
//
// A connection may be dialled ahead of its first attempt (net/collective/dial_ahead.h). Then it begins with an `ahead`;
// the other end answers with its own, which says that it keeps the connection, or closes it. Padding only fills the
// link, so that its window is open when bytes are to move. Whoever dials waits for the answer; one that was not told of
// a next attempt with this peer closes it.
//
//   ahead      := magic u32, version u16, fragment u8, flags u8   1: for direct exchanges; 2: padding may come
//   padding    := magic u32, length u32, `length` zeros
//   receipt    := magic u32, fragment u8, zero u8 u16, round u32, attempt u32, microseconds u32, bytes u64
//   hello      := magic u32, version u16, body length u16, body
//   body       := wire u8, role u8, world_size u16, from_rank u16, connection_index u16, connection_count u16,
//                 round u32, attempt u32, payload numel u64, bucket numel u64, final buckets u64,
//                 from (u16 length, bytes), fragment u8
//   frame      := magic u32, type u8, phase u8, fragment u8, zero u8, round u32, attempt u32, sequence u32, length u32,
//                 offset u64, then `length` bytes of encoded values
//
// A connection serves the attempts of one fragment, whose hellos and data frames name it. A frame's `sequence` counts
// the data frames of the whole edge; each travels once, on any connection of the edge, in any order. `offset` is its
// first byte within the canonical bytes. The edge of role kContributions goes from a member straight to the owner of a
// chunk, in formats that are not summed hop by hop: one connection, one attempt, frames in the order of the owner's
// chunks. A keepalive has no payload, zeros in phase, sequence and length, and in offset for how many milliseconds its
// sender itself still waits for data.
//
// Role kExchange is that of both ends of the one connection that each pair of members has where everybody exchanges
// with everybody (net/collective/direct_exchange.h). There frames travel both ways, of two kinds, in any mixture: in
// phase reduce-scatter what the sender contributes to the receiver's chunks, in phase all-gather the sums of the
// sender's own. Frames of each kind come in the order of the chunks, numbered from 0.
//
//   attempt    := hello frame*          each way; on a new connection the dialler's hello comes first and the other
//                                       answers it; on one that an attempt has left both begin
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/wire_format.h"
#include "net/base/bytes.h"
#include "net/base/id.h"
#include "net/base/result.h"
#include "net/wire/schedule.h"

namespace atl {

inline constexpr std::uint32_t kRingHelloMagic = 0x48525441;    // "ATRH"
inline constexpr std::uint32_t kRingFrameMagic = 0x46525441;    // "ATRF"
inline constexpr std::uint32_t kRingAheadMagic = 0x41525441;    // "ATRA"
inline constexpr std::uint32_t kRingPaddingMagic = 0x50525441;  // "ATRP"
inline constexpr std::uint32_t kRingReceiptMagic = 0x43525441;  // "ATRC"
// Of these bytes, of how edges are cut (net/collective/ring_schedule.h), and of how partial sums are rounded
// (kernels/wire_codec.h, add_weighted): a member that adds otherwise makes other averages.
inline constexpr std::uint16_t kRingVersion = 5;

inline constexpr std::size_t kRingHelloPrefixBytes = 8;
inline constexpr std::size_t kMaxRingHelloBodyBytes = 256;
inline constexpr std::size_t kMaxIslandIdBytes = 64;
inline constexpr int kMaxConnectionsPerEdge = 16;  // of all fragments together
// Attempts of so many fragments may be under way at once: what each may have of that. Two islands have between them no
// more connections, and hold no more memory for each other, however many fragments their run has.
constexpr int most_connections_per_edge(int fragments) { return kMaxConnectionsPerEdge / fragments; }
inline constexpr int kMaxRingIslands = 1024;
inline constexpr int kMaxDirectIslands = 128;  // where everybody dials everybody: !sums_hop_by_hop, or kExchange
inline constexpr std::uint64_t kMaxPayloadNumel = std::uint64_t{1} << 40;

// What `from` does on the edge. kContributions: it sends to the owner of a chunk; kExchange: it sends and receives (see
// above).
enum class RingRole : std::uint8_t { kSends = 0, kReceives = 1, kContributions = 2, kExchange = 3 };

// Who speaks, for which attempt, and what it understands of it; both ends must understand the same.
struct RingHello {
  IslandId from;  // must be the name in the certificate
  RingRole role = RingRole::kSends;
  OuterStep round;
  Attempt attempt;
  FragmentId fragment = {};  // less than kMaxFragments
  Rank from_rank;
  int world_size = 0;
  int connection_index = 0;
  int connection_count = 0;
  WireFormat wire = WireFormat::kFp32;
  std::uint64_t payload_numel = 0;
  std::uint64_t bucket_numel = 0;   // positive
  std::uint64_t final_buckets = 0;  // fingerprint of the set of buckets that do not travel; 0: all travel

  bool operator==(const RingHello&) const = default;
};

Bytes encode(const RingHello& hello);
// Of the first kRingHelloPrefixBytes bytes: how many follow. kVersionUnsupported for another version, kProtocol
// otherwise.
Result<std::size_t> decode_ring_hello_prefix(ByteView prefix);
// Of exactly the bytes that follow.
Result<RingHello> decode_ring_hello_body(ByteView body);

// What a connection that is dialled ahead will serve. Exactly kRingHelloPrefixBytes.
struct RingAhead {
  FragmentId fragment = {};  // less than kMaxFragments
  Schedule schedule = Schedule::kRing;
  bool takes_padding = false;  // in an answer: more is read at once, as it comes

  bool operator==(const RingAhead&) const = default;
};
using RingAheadBytes = std::array<std::byte, kRingHelloPrefixBytes>;
RingAheadBytes encode(const RingAhead& ahead);
Result<RingAhead> decode_ring_ahead(ByteView bytes);

// With its first kRingHelloPrefixBytes bytes one TLS record.
inline constexpr std::uint32_t kMaxRingPaddingBytes = (16u << 10) - kRingHelloPrefixBytes;
// That one island sends another while one advice of the hub holds, at most.
inline constexpr std::uint64_t kMostPaddingOfPeer = std::uint64_t{32} << 20;
Bytes ring_padding(std::uint32_t length);
Result<std::uint32_t> decode_ring_padding_prefix(ByteView prefix);  // how many follow

inline constexpr std::size_t kRingFrameHeaderBytes = 32;
// Largest payload of one frame; a sender's sub-chunks are smaller.
inline constexpr std::uint32_t kMaxRingFrameBytes = 1u << 20;

enum class RingFrameType : std::uint8_t { kData = 1, kKeepalive = 2 };
enum class RingPhase : std::uint8_t { kReduceScatter = 0, kAllGather = 1 };

struct RingFrameHeader {
  RingFrameType type = RingFrameType::kData;
  RingPhase phase = RingPhase::kReduceScatter;
  OuterStep round;
  Attempt attempt;
  FragmentId fragment = {};  // less than kMaxFragments
  std::uint32_t sequence = 0;
  std::uint32_t length = 0;
  std::uint64_t offset = 0;

  bool operator==(const RingFrameHeader&) const = default;
};
// On a connection between two attempts: of none of them, and without a promise.
RingFrameHeader resting_keepalive();

// Of one connection.
struct RingReceipt {
  OuterStep round;
  Attempt attempt;
  FragmentId fragment = {};        // less than kMaxFragments
  std::uint32_t microseconds = 0;  // of the receiver's clock, whose zero is its own affair; modulo 2^32
  std::uint64_t bytes = 0;         // that had come by then, in order, since the connection was made

  bool operator==(const RingReceipt&) const = default;
};
inline constexpr std::size_t kRingReceiptBytes = 28;
inline constexpr std::uint64_t kReceiptBytes = 32 << 10;  // of data, for which one receipt may come
inline constexpr std::uint64_t kLateReceipts = 64;        // at most, of an attempt that is over: those of some seconds
using RingReceiptMessage = std::array<std::byte, kRingReceiptBytes>;
RingReceiptMessage encode(const RingReceipt& receipt);
Result<RingReceipt> decode_ring_receipt(ByteView bytes);  // exactly kRingReceiptBytes

// By its first four bytes.
enum class RingMessage { kHello, kFrame, kAhead, kPadding, kReceipt, kNone };
RingMessage ring_message_at(ByteView magic);

// Exactly kRingFrameHeaderBytes.
void encode(const RingFrameHeader& header, std::span<std::byte, kRingFrameHeaderBytes> out);
Result<RingFrameHeader> decode_ring_frame_header(std::span<const std::byte, kRingFrameHeaderBytes> bytes);

}  // namespace atl
