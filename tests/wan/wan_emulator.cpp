#include "tests/wan/wan_emulator.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace atl::wan {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

WanTime time_of(std::int64_t bytes, double bits_per_second) {
  if (bits_per_second <= 0) return WanTime{0};
  return WanTime{std::llround(static_cast<double>(bytes) * 8e9 / bits_per_second)};
}

// Segments of the packet that still fit into a queue of which `backlog` is taken.
std::int64_t segments_that_fit(const PacketShape& shape, std::int64_t segments, double bits_per_second, WanTime backlog,
                               WanTime queue) {
  if (bits_per_second <= 0) return segments;
  const WanTime room = queue - std::max(backlog, WanTime{0});
  if (room <= WanTime{0}) return 0;
  const double room_bytes = static_cast<double>(room.count()) * bits_per_second / 8e9;
  return std::min(segments,
                  static_cast<std::int64_t>(std::ceil(room_bytes / static_cast<double>(shape.segment_bytes()))));
}

std::int64_t bytes_of(const PacketShape& shape, std::int64_t segments) {
  return segments == shape.segments() ? shape.wire_bytes() : segments * shape.segment_bytes();
}

}  // namespace

WanEmulator::WanEmulator(int hosts, std::chrono::milliseconds queue, std::uint64_t seed)
    : queue_(queue), hosts_(static_cast<std::size_t>(hosts)), lanes_(hosts_.size() * hosts_.size()) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i].random.seed(seed * 1'000'003 + i);
}

void WanEmulator::accept(int from, int to, PacketArena::Slice packet, const PacketShape& shape, WanTime now,
                         PacketArena& arena) {
  Lane& way = lane(from, to);
  Host& sender = hosts_[static_cast<std::size_t>(from)];
  const std::int64_t offered = shape.segments();
  if (way.path.cut) {
    way.counts.cut += offered;
    return;
  }
  const double up = sender.rates.up_bits_per_second;
  const std::int64_t fit =
      std::min(segments_that_fit(shape, offered, up, sender.up_free - now, queue_),
               segments_that_fit(shape, offered, way.path.bits_per_second, way.free - now, queue_));
  way.counts.dropped += offered - fit;
  if (fit == 0) return;
  const std::int64_t bytes = bytes_of(shape, fit);
  const WanTime up_begin = std::max(now, sender.up_free);
  sender.up_free = up_begin + time_of(bytes, up);
  const WanTime begin = std::max(up_begin, way.free);
  way.free = std::max(sender.up_free, begin + time_of(bytes, way.path.bits_per_second));
  const WanTime delay = way.path.delay;
  depart(way, std::move(packet), shape, fit, begin + delay, way.free + delay, arena);
}

std::int64_t WanEmulator::segments_until_loss(Lane& lane) {
  if (lane.path.loss <= 0) return kNever;
  // 1 - u is in (0, 1]: the number of successes before the first failure is geometric.
  const double u = std::generate_canonical<double, 53>(lane.random);
  const double passing = std::floor(std::log1p(-u) / std::log1p(-std::min(lane.path.loss, 1.0 - 1e-12)));
  return passing < 1e15 ? static_cast<std::int64_t>(passing) : kNever;
}

void WanEmulator::depart(Lane& lane, PacketArena::Slice packet, const PacketShape& shape, std::int64_t segments,
                         WanTime first_bit, WanTime due, PacketArena& arena) {
  if (!lane.under_way.empty()) due = std::max(due, lane.under_way.back().due);  // a path keeps the order
  if (lane.loss_drawn_for != lane.path.loss) {
    lane.loss_drawn_for = lane.path.loss;
    lane.until_loss = segments_until_loss(lane);
  }
  const auto send = [&](std::int64_t first, std::int64_t count) {
    if (count == 0) return;
    lane.counts.carried += count;
    if (count == shape.segments()) {
      lane.under_way.push_back({packet, shape.wire_bytes(), first_bit, due});
      return;
    }
    PacketArena::Slice piece = arena.reserve();
    const std::size_t size = cut_segments(packet.view(), shape, first, count, piece.view());
    lane.under_way.push_back({arena.keep(std::move(piece), size), bytes_of(shape, count), first_bit, due});
  };
  std::int64_t first = 0;
  while (segments - first > lane.until_loss) {
    send(first, lane.until_loss);
    first += lane.until_loss + 1;
    ++lane.counts.lost;
    lane.until_loss = segments_until_loss(lane);
  }
  if (lane.until_loss != kNever) lane.until_loss -= segments - first;
  send(first, segments - first);
}

void WanEmulator::arrive(Host& host, Lane& lane, Parcel parcel) {
  const double down = host.rates.down_bits_per_second;
  if (down > 0) {
    if (host.down_free - parcel.first_bit > queue_) {
      ++lane.counts.dropped;
      return;
    }
    host.down_free = std::max(parcel.first_bit, host.down_free) + time_of(parcel.wire_bytes, down);
    parcel.due = std::max(parcel.due, host.down_free);
  }
  if (!host.arriving.empty()) parcel.due = std::max(parcel.due, host.arriving.back().due);
  host.arriving.push_back(std::move(parcel));
}

void WanEmulator::advance(WanTime now, const std::function<void(int to, std::span<const std::byte> packet)>& deliver) {
  for (int to = 0; to < hosts(); ++to) {
    Host& host = hosts_[static_cast<std::size_t>(to)];
    for (;;) {  // the earliest of all paths to this host first: they share its downlink
      Lane* earliest = nullptr;
      for (int from = 0; from < hosts(); ++from) {
        Lane& way = lane(from, to);
        if (way.under_way.empty() || way.under_way.front().due > now) continue;
        if (earliest == nullptr || way.under_way.front().due < earliest->under_way.front().due) earliest = &way;
      }
      if (earliest == nullptr) break;
      Parcel parcel = std::move(earliest->under_way.front());
      earliest->under_way.pop_front();
      if (earliest->path.cut) {
        ++earliest->counts.cut;
      } else {
        arrive(host, *earliest, std::move(parcel));
      }
    }
    while (!host.arriving.empty() && host.arriving.front().due <= now) {
      deliver(to, host.arriving.front().packet.view());
      host.arriving.pop_front();
    }
  }
}

std::optional<WanTime> WanEmulator::next_due() const {
  std::optional<WanTime> next;
  const auto consider = [&](const std::deque<Parcel>& parcels) {
    if (!parcels.empty() && (!next || parcels.front().due < *next)) next = parcels.front().due;
  };
  for (const Lane& lane : lanes_) consider(lane.under_way);
  for (const Host& host : hosts_) consider(host.arriving);
  return next;
}

}  // namespace atl::wan
