// The edges of a ring question that are fast enough, as bits: what the searches of ring_order work on. Pure; any
// thread.
#pragma once

#include <bitset>
#include <optional>
#include <random>
#include <vector>

#include "net/mesh/ring_order.h"

namespace atl {

// Of an island, as containers want it.
inline std::size_t as_index(int island) { return static_cast<std::size_t>(island); }

class RingGraph {
 public:
  using Row = std::bitset<kMaxRing>;

  // Edges that may be, of at least this rate.
  RingGraph(const RingQuestion& question, double slowest);

  int islands() const { return static_cast<int>(successors_.size()); }
  bool has(int from, int to) const { return successors_[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)]; }

  // What every graph with a ring has: everyone reaches everyone, and there is a cycle cover.
  bool may_have_ring() const;
  // A successor for each island, all different: cycles that together hold everybody. `random` chooses among many.
  std::optional<std::vector<int>> cycle_cover(std::mt19937& random) const;

 private:
  Row reached(const std::vector<Row>& next) const;
  bool augment(int from, Row& visited, std::vector<int>& predecessor, const std::vector<int>& order) const;

  std::vector<Row> successors_;
  std::vector<Row> predecessors_;
};

// Exact, for at most kExactRing islands, by dynamic programming over sets of visited islands.
bool has_ring(const RingGraph& graph);
// The ring of least rtt sum, from island 0; empty where there is none (Held & Karp 1962).
std::vector<int> shortest_ring(const RingGraph& graph, const RingQuestion& question);

// For any number of islands: joins the cycles of random covers by exchanging successors, and splits one at random where
// no exchange joins. Empty when `tries` covers led to no ring.
std::vector<int> find_ring(const RingGraph& graph, std::mt19937& random, int tries);
// Moves short runs of islands elsewhere while that lessens the rtt sum; every edge stays in the graph.
void shorten_ring(const RingGraph& graph, const RingQuestion& question, std::vector<int>& ring);

}  // namespace atl
