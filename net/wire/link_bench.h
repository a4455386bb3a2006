// What `atoll bench link` says between its two ends, one thing a connection: in plain TCP, or in TLS from its first
// byte on (a TLS record begins with 0x16, a request does not). Little-endian. Unauthenticated, bounded in time and
// bytes, and spoken only while `atoll bench link --listen` runs.
//
//   connection := request answer
//   request    := magic u32, version u16, mode u8, zero u8, milliseconds u32
//   identity   : listener -> client: length u32, JSON of a throw-away identity for the TLS measurements
//   echo       : client sends kLinkEchoes bytes, one at a time, and gets each back
//   transfer   : blocks of kLinkBlockBytes, the first byte of the last one 1, else 0; then
//                the sender's report; then the receiver's
//   sender     := smoothed rtt us u32, least rtt us u32, retransmitted u32, segments u32, congestion control (16 bytes,
//   zeros
//                after)
//   receiver   := bytes u64, nanoseconds u64, steady bytes u64, steady nanoseconds u64
#pragma once

#include <cstdint>
#include <string>

#include "net/base/bytes.h"
#include "net/base/result.h"

namespace atl {

inline constexpr std::uint32_t kLinkBenchMagic = 0x424c5441;  // "ATLB"
inline constexpr std::uint16_t kLinkBenchVersion = 1;
inline constexpr std::size_t kLinkRequestBytes = 12;
inline constexpr std::size_t kLinkSenderReportBytes = 32;
inline constexpr std::size_t kLinkReceiverReportBytes = 32;
inline constexpr std::size_t kLinkBlockBytes = 64 * 1024;
inline constexpr int kLinkEchoes = 10;
inline constexpr std::uint32_t kMaxLinkMilliseconds = 30'000;
inline constexpr std::uint64_t kMaxLinkBytes = 64ull << 30;
inline constexpr std::uint32_t kMaxLinkIdentityBytes = 16 * 1024;

enum class LinkMode : std::uint8_t { kIdentity = 0, kEcho = 1, kListenerSends = 2, kClientSends = 3, kBye = 4 };

struct LinkRequest {
  LinkMode mode = LinkMode::kEcho;
  std::uint32_t milliseconds = 0;  // that the sender sends

  bool operator==(const LinkRequest&) const = default;
};

struct LinkSenderReport {  // of the kernel's TCP_INFO
  std::uint32_t rtt_us = 0;
  std::uint32_t least_rtt_us = 0;
  std::uint32_t retransmitted = 0;  // segments
  std::uint32_t segments = 0;
  std::string congestion_control;  // at most 16 bytes

  bool operator==(const LinkSenderReport&) const = default;
};

struct LinkReceiverReport {
  std::uint64_t bytes = 0;
  std::uint64_t nanoseconds = 0;
  std::uint64_t steady_bytes = 0;  // of the later two thirds: after slow start
  std::uint64_t steady_nanoseconds = 0;

  bool operator==(const LinkReceiverReport&) const = default;
};

Bytes encode(const LinkRequest& request);
Bytes encode(const LinkSenderReport& report);
Bytes encode(const LinkReceiverReport& report);
// Of exactly kLinkRequestBytes, kLinkSenderReportBytes, kLinkReceiverReportBytes.
Result<LinkRequest> decode_link_request(ByteView bytes);
Result<LinkSenderReport> decode_link_sender_report(ByteView bytes);
Result<LinkReceiverReport> decode_link_receiver_report(ByteView bytes);

}  // namespace atl
