// One IPv4 packet as a TUN device hands it over (IFF_VNET_HDR): a virtio header that says how the kernel would have cut
// it, then up to 64 KiB of packet. Carrying large packets is what makes the emulation cheap; knowing their segments is
// what keeps its rates and losses those of 1500-byte packets. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace atl::wan {

// struct virtio_net_hdr of the virtio specification, 5.1.6, as IFF_VNET_HDR uses it: native byte order.
struct VirtioHeader {
  static constexpr std::uint8_t kNeedsChecksum = 1;  // of `flags`
  static constexpr std::uint8_t kNotCut = 0;         // of `gso_type`
  static constexpr std::uint8_t kTcp4 = 1;

  std::uint8_t flags = 0;
  std::uint8_t gso_type = 0;
  std::uint16_t header_bytes = 0;
  std::uint16_t gso_size = 0;  // payload of a segment
  std::uint16_t checksum_start = 0;
  std::uint16_t checksum_offset = 0;
};

inline constexpr std::size_t kVirtioHeaderBytes = 10;
static_assert(sizeof(VirtioHeader) == kVirtioHeaderBytes);
inline constexpr std::size_t kMaxPacketBytes = kVirtioHeaderBytes + 65'536;

// Where a packet goes and how it is cut.
struct PacketShape {
  std::uint32_t destination = 0;    // IPv4, host byte order
  std::size_t header_bytes = 0;     // IP and TCP, repeated in each segment
  std::size_t payload_bytes = 0;    // after them
  std::size_t segment_payload = 0;  // of all segments but the last, which may be shorter; 0: not to be cut

  std::int64_t segments() const;
  std::int64_t segment_bytes() const;  // on the wire, of a full segment
  std::int64_t wire_bytes() const;     // of all segments, IP and TCP headers included, link headers not
};

// Empty: no IPv4 packet, or one whose lengths do not fit.
std::optional<PacketShape> shape_of(std::span<const std::byte> packet);

// Segments [first, first + count) of a packet that is to be cut (segment_payload > 0), as one packet: sequence number,
// length, identification, flags and checksums are those of the segments alone. `out` holds at least `packet.size()`
// bytes. The bytes written.
std::size_t cut_segments(std::span<const std::byte> packet, const PacketShape& shape, std::int64_t first,
                         std::int64_t count, std::span<std::byte> out);

// Packets in large blocks that are used again once every packet of theirs is gone: nothing is allocated or copied per
// packet. Not thread-safe.
class PacketArena {
 public:
  struct Slice {
    std::shared_ptr<std::vector<std::byte>> block;
    std::size_t offset = 0;
    std::size_t bytes = 0;

    std::span<std::byte> view() const { return std::span(*block).subspan(offset, bytes); }
  };

  // Room for the largest packet.
  Slice reserve();
  // The first `used` bytes of the last reserved slice are kept; the rest is free again.
  Slice keep(Slice reserved, std::size_t used);

 private:
  static constexpr std::size_t kBlockBytes = 1u << 20;
  std::vector<std::shared_ptr<std::vector<std::byte>>> blocks_;
  std::size_t current_ = 0;
  std::size_t filled_ = kBlockBytes;  // of the current block
};

}  // namespace atl::wan
