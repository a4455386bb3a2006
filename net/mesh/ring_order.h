// In which order islands form the ring: rank r sends to rank r + 1 (mod N). The slowest edge sets the pace of all, so
// the ring is the one whose slowest edge is fastest (the bottleneck travelling salesman, over directed edges), and of
// those one with the least sum of round-trip times. Exact to kExactRing islands, a heuristic above. Pure and
// deterministic; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace atl {

inline constexpr int kExactRing = 16;
inline constexpr int kMaxRing = 128;

struct RingEdge {  // from one island to another
  double bytes_per_second = 1;
  double rtt_seconds = 0;
  bool dead = false;  // both ends live, and they do not reach each other; says it of either direction
};

struct RingQuestion {
  explicit RingQuestion(int count)
      : islands(count),
        dialable(static_cast<std::size_t>(count), true),
        tokens(dialable.size(), 0),
        edges(dialable.size() * dialable.size()) {}

  RingEdge& edge(int from, int to) { return edges[place(from, to)]; }
  const RingEdge& edge(int from, int to) const { return edges[place(from, to)]; }
  // One end can be dialled, and they are not known not to reach each other.
  bool may_be_neighbours(int a, int b) const;

  std::size_t place(int from, int to) const {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(islands) + static_cast<std::size_t>(to);
  }

  int islands;
  std::vector<bool> dialable;         // from outside; either end of an edge may dial
  std::vector<std::uint64_t> tokens;  // this round, or what stands for them; who has fewer sits out when somebody must
  std::vector<RingEdge> edges;        // by from * islands + to
};

struct RingOrder {
  std::vector<int> order;               // by rank
  std::vector<bool> next_dials;         // by rank: rank r + 1 dials rank r; else rank r dials it
  std::vector<int> sits_out;            // no ring holds all of them; these are left out, in this order
  double slowest_bytes_per_second = 0;  // 0 for one island alone
  double rtt_sum_seconds = 0;
};

// Of 1 to kMaxRing islands. Where no ring holds all islands, one end of an edge that cannot be sits out: the one with
// fewer tokens (of equals the later), until a ring is found. Above kExactRing islands a ring may exist that is not
// found.
RingOrder order_ring(const RingQuestion& question);

// The slowest edge of a given order, 0 if an edge of it cannot be; infinite for one island alone.
double slowest_edge(const RingQuestion& question, const std::vector<int>& order);

// No ring's slowest edge is faster than this. Not always reached.
double slowest_edge_bound(const RingQuestion& question);

}  // namespace atl
