#include "tests/wan/wan_packet.h"

#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cstring>

namespace atl::wan {
namespace {

template <class T>
T load(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class T>
void store(std::span<std::byte> bytes, std::size_t offset, const T& value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

// One's complement sum of 16-bit words, not complemented (RFC 1071).
std::uint16_t internet_sum(std::span<const std::byte> bytes, std::uint32_t sum = 0) {
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) sum += load<std::uint16_t>(bytes, i);
  if (bytes.size() % 2 != 0) sum += std::to_integer<std::uint32_t>(bytes.back());
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

}  // namespace

std::int64_t PacketShape::segments() const {
  if (segment_payload == 0 || payload_bytes == 0) return 1;
  return static_cast<std::int64_t>((payload_bytes + segment_payload - 1) / segment_payload);
}

std::int64_t PacketShape::segment_bytes() const {
  return static_cast<std::int64_t>(header_bytes + (segment_payload == 0 ? payload_bytes : segment_payload));
}

std::int64_t PacketShape::wire_bytes() const {
  return static_cast<std::int64_t>(payload_bytes) + segments() * static_cast<std::int64_t>(header_bytes);
}

std::optional<PacketShape> shape_of(std::span<const std::byte> packet) {
  if (packet.size() < kVirtioHeaderBytes + sizeof(iphdr)) return std::nullopt;
  const auto virtio = load<VirtioHeader>(packet, 0);
  const auto ip = load<iphdr>(packet, kVirtioHeaderBytes);
  const std::size_t total = packet.size() - kVirtioHeaderBytes;
  PacketShape shape{.destination = ntohl(ip.daddr), .header_bytes = ip.ihl * std::size_t{4}};
  if (ip.version != 4 || shape.header_bytes < sizeof(iphdr) || shape.header_bytes > total) return std::nullopt;
  if (virtio.gso_type == VirtioHeader::kTcp4) {
    if (ip.protocol != IPPROTO_TCP || virtio.gso_size == 0 || total < shape.header_bytes + sizeof(tcphdr)) {
      return std::nullopt;
    }
    const auto tcp = load<tcphdr>(packet, kVirtioHeaderBytes + shape.header_bytes);
    shape.header_bytes += tcp.doff * std::size_t{4};
    if (tcp.doff < 5 || shape.header_bytes > total) return std::nullopt;
    shape.segment_payload = virtio.gso_size;
  }
  shape.payload_bytes = total - shape.header_bytes;
  return shape;
}

std::size_t cut_segments(std::span<const std::byte> packet, const PacketShape& shape, std::int64_t first,
                         std::int64_t count, std::span<std::byte> out) {
  const std::size_t begin = static_cast<std::size_t>(first) * shape.segment_payload;
  const std::size_t end =
      std::min(shape.payload_bytes, begin + static_cast<std::size_t>(count) * shape.segment_payload);
  const std::size_t headers = kVirtioHeaderBytes + shape.header_bytes;
  const std::size_t ip_bytes = shape.header_bytes + (end - begin);
  std::memcpy(out.data(), packet.data(), headers);
  std::memcpy(out.data() + headers, packet.data() + headers + begin, end - begin);

  auto virtio = load<VirtioHeader>(packet, 0);
  if (end - begin <= shape.segment_payload) {
    virtio.gso_type = VirtioHeader::kNotCut;
    virtio.gso_size = 0;
  }
  store(out, 0, virtio);

  auto ip = load<iphdr>(packet, kVirtioHeaderBytes);
  const std::size_t ip_header_bytes = ip.ihl * std::size_t{4};
  ip.tot_len = htons(static_cast<std::uint16_t>(ip_bytes));
  ip.id = htons(static_cast<std::uint16_t>(ntohs(ip.id) + first));
  ip.check = 0;
  store(out, kVirtioHeaderBytes, ip);
  ip.check = static_cast<std::uint16_t>(~internet_sum(out.subspan(kVirtioHeaderBytes, ip_header_bytes)));
  store(out, kVirtioHeaderBytes, ip);

  const std::size_t tcp_at = kVirtioHeaderBytes + ip_header_bytes;
  auto tcp = load<tcphdr>(packet, tcp_at);
  tcp.seq = htonl(ntohl(tcp.seq) + static_cast<std::uint32_t>(begin));
  if (first > 0) tcp.res2 &= 1;  // CWR belongs to the first segment, and ECE (bit 0 of res2) to all
  if (end < shape.payload_bytes) {
    tcp.fin = 0;
    tcp.psh = 0;
  }
  // With kNeedsChecksum the field holds the pseudo header's sum; the receiver's kernel adds the rest.
  const std::uint32_t pseudo = htons(IPPROTO_TCP) + htons(static_cast<std::uint16_t>(ip_bytes - ip_header_bytes));
  tcp.check = internet_sum(out.subspan(kVirtioHeaderBytes + offsetof(iphdr, saddr), 8), pseudo);
  store(out, tcp_at, tcp);
  return headers + (end - begin);
}

PacketArena::Slice PacketArena::reserve() {
  if (filled_ + kMaxPacketBytes > kBlockBytes) {
    // Blocks fall free in about the order in which they were filled: the one after the current is the oldest.
    const std::size_t oldest = blocks_.empty() ? 0 : (current_ + 1) % blocks_.size();
    if (!blocks_.empty() && blocks_[oldest].use_count() == 1) {
      current_ = oldest;
    } else {
      current_ = blocks_.empty() ? 0 : current_ + 1;
      blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(current_),
                     std::make_shared<std::vector<std::byte>>(kBlockBytes));
    }
    filled_ = 0;
  }
  return Slice{blocks_[current_], filled_, kMaxPacketBytes};
}

PacketArena::Slice PacketArena::keep(Slice reserved, std::size_t used) {
  filled_ = reserved.offset + used;
  reserved.bytes = used;
  return reserved;
}

}  // namespace atl::wan
