// What happens to packets between hosts: rates, delays, losses and cuts, as arithmetic over times that are passed in.
// No sockets, no clock. Not thread-safe.
//
//   host's uplink -> path (rate, loss, delay) -> host's downlink
//
// Every link is a drop-tail queue of `queue` worth of its own rate. A packet occupies a link from its first bit to its
// last; links in a row work on it at the same time, so three equal rates delay it once. Rates count IP bytes of
// 1500-byte packets, headers included.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "tests/wan/wan_packet.h"

namespace atl::wan {

using WanTime = std::chrono::nanoseconds;  // since any fixed point

struct WanPath {               // from one host to another; the way back has its own
  double bits_per_second = 0;  // 0: unlimited
  std::chrono::microseconds delay{0};
  double loss = 0;   // probability, of each segment (a packet of at most 1500 bytes)
  bool cut = false;  // packets vanish, nobody is told
};

struct WanHostRates {
  double up_bits_per_second = 0;  // 0: unlimited
  double down_bits_per_second = 0;
};

struct WanCounts {  // of one path, in segments
  std::int64_t carried = 0;
  std::int64_t lost = 0;     // by chance
  std::int64_t dropped = 0;  // queue full
  std::int64_t cut = 0;
};

class WanEmulator {
 public:
  // Losses depend on the seed, the path and the number of segments sent on it, on nothing else.
  WanEmulator(int hosts, std::chrono::milliseconds queue, std::uint64_t seed);

  WanPath& path(int from, int to) { return lane(from, to).path; }
  WanHostRates& host(int host) { return hosts_[static_cast<std::size_t>(host)].rates; }
  const WanCounts& counts(int from, int to) { return lane(from, to).counts; }
  int hosts() const { return static_cast<int>(hosts_.size()); }

  // A packet that `from` sends now. `arena` is asked for room when a loss cuts it in pieces.
  void accept(int from, int to, PacketArena::Slice packet, const PacketShape& shape, WanTime now, PacketArena& arena);
  // Hands over what has arrived by `now`, in order of arrival at each host.
  void advance(WanTime now, const std::function<void(int to, std::span<const std::byte> packet)>& deliver);
  // When the next packet moves; empty: none is under way.
  std::optional<WanTime> next_due() const;

 private:
  struct Parcel {
    PacketArena::Slice packet;
    std::int64_t wire_bytes = 0;
    WanTime first_bit;  // reaches the end of the path
    WanTime due;        // its last bit does
  };
  struct Lane {
    WanPath path;
    WanCounts counts;
    WanTime free{0};
    std::mt19937_64 random;
    double loss_drawn_for = 0;
    std::int64_t until_loss = std::numeric_limits<std::int64_t>::max();  // segments that pass before the next loss
    std::deque<Parcel> under_way;
  };
  struct Host {
    WanHostRates rates;
    WanTime up_free{0};
    WanTime down_free{0};
    std::deque<Parcel> arriving;
  };

  Lane& lane(int from, int to) {
    return lanes_[static_cast<std::size_t>(from) * hosts_.size() + static_cast<std::size_t>(to)];
  }
  // Segments [first, last) of it that the path does not lose, as few packets as possible.
  void depart(Lane& lane, PacketArena::Slice packet, const PacketShape& shape, std::int64_t segments, WanTime first_bit,
              WanTime due, PacketArena& arena);
  std::int64_t segments_until_loss(Lane& lane);
  void arrive(Host& host, Lane& lane, Parcel parcel);

  const WanTime queue_;
  std::vector<Host> hosts_;
  std::vector<Lane> lanes_;
};

}  // namespace atl::wan
