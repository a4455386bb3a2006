// Rings too large to be found exactly.
#include <algorithm>
#include <array>
#include <numeric>

#include "net/mesh/ring_graph.h"

namespace atl {
namespace {

constexpr int kSplits = 60;  // of one cover, before the next is tried

// Cycles that together hold every island. Exchanging the successors of two islands joins their cycles when they are in
// different ones, and splits their cycle when they are in the same.
class Cycles {
 public:
  Cycles(const RingGraph& graph, std::vector<int> successor)
      : graph_(graph), successor_(std::move(successor)), predecessor_(successor_.size()), cycle_(successor_.size()) {
    for (int from = 0; from < graph_.islands(); ++from) predecessor_[as_index(successor_[as_index(from)])] = from;
    label();
  }

  int count() const { return count_; }

  // Begins looking at island `first`.
  bool join(int first) {
    for (int step = 0; step < graph_.islands(); ++step) {
      const int a = (first + step) % graph_.islands();
      for (int d = 0; d < graph_.islands(); ++d) {
        if (cycle_[as_index(a)] != cycle_[as_index(d)] && exchange(a, predecessor_[as_index(d)])) return true;
      }
    }
    return false;
  }
  bool split(std::mt19937& random) {
    const int n = graph_.islands();
    const int first = static_cast<int>(random() % static_cast<unsigned>(n));
    for (int step = 0; step < n; ++step) {
      const int a = (first + step) % n;
      const int shift = static_cast<int>(random() % static_cast<unsigned>(n));
      for (int i = 0; i < n; ++i) {
        const int c = (shift + i) % n;
        if (c != a && successor_[as_index(a)] != c && successor_[as_index(c)] != a &&
            cycle_[as_index(a)] == cycle_[as_index(c)] && exchange(a, c)) {
          return true;
        }
      }
    }
    return false;
  }
  std::vector<int> ring() const {
    std::vector<int> ring{0};
    while (std::ssize(ring) < graph_.islands()) ring.push_back(successor_[as_index(ring.back())]);
    return ring;
  }

 private:
  bool exchange(int a, int c) {
    const int b = successor_[as_index(a)], d = successor_[as_index(c)];
    if (!graph_.has(a, d) || !graph_.has(c, b)) return false;
    successor_[as_index(a)] = d;
    successor_[as_index(c)] = b;
    predecessor_[as_index(d)] = a;
    predecessor_[as_index(b)] = c;
    label();
    return true;
  }
  void label() {
    std::ranges::fill(cycle_, -1);
    count_ = 0;
    for (int start = 0; start < graph_.islands(); ++start) {
      if (cycle_[as_index(start)] >= 0) continue;
      for (int i = start; cycle_[as_index(i)] < 0; i = successor_[as_index(i)]) cycle_[as_index(i)] = count_;
      ++count_;
    }
  }

  const RingGraph& graph_;
  std::vector<int> successor_;
  std::vector<int> predecessor_;
  std::vector<int> cycle_;
  int count_ = 0;
};

}  // namespace

std::vector<int> find_ring(const RingGraph& graph, std::mt19937& random, int tries) {
  if (graph.islands() == 1) return {0};
  for (int i = 0; i < tries; ++i) {
    const auto cover = graph.cycle_cover(random);
    if (!cover) return {};
    Cycles cycles(graph, *cover);
    for (int splits = 0; splits <= kSplits; ++splits) {
      while (cycles.count() > 1 && cycles.join(static_cast<int>(random() % static_cast<unsigned>(graph.islands())))) {
      }
      if (cycles.count() == 1) return cycles.ring();
      if (!cycles.split(random)) break;
    }
  }
  return {};
}

// ring = ... a [b .. c] d ... e f ...  becomes  ... a d ... e [b .. c] f ...: no run is reversed, for edges are
// directed.
void shorten_ring(const RingGraph& graph, const RingQuestion& question, std::vector<int>& ring) {
  constexpr int kLongestRun = 3;
  constexpr int kMaxMoves = 1000;
  constexpr double kLeastGain = 1e-12;  // seconds: no endless circling among equals
  const int n = static_cast<int>(ring.size());
  const auto rtt = [&](int from, int to) { return question.edge(from, to).rtt_seconds; };
  const auto move_one = [&] {
    for (int begin = 0; begin < n; ++begin) {
      std::rotate(ring.begin(), ring.begin() + 1, ring.end());
      for (int run = 1; run <= std::min(kLongestRun, n - 3); ++run) {
        const int a = ring.back(), b = ring[0], c = ring[as_index(run - 1)], d = ring[as_index(run)];
        if (!graph.has(a, d)) continue;
        for (int i = run; i + 1 < n; ++i) {
          const int e = ring[as_index(i)], f = ring[as_index(i + 1)];
          if (!graph.has(e, b) || !graph.has(c, f)) continue;
          const double gain = rtt(a, b) + rtt(c, d) + rtt(e, f) - rtt(a, d) - rtt(e, b) - rtt(c, f);
          if (gain < kLeastGain) continue;
          std::rotate(ring.begin(), ring.begin() + run, ring.begin() + i + 1);
          return true;
        }
      }
    }
    return false;
  };
  for (int moves = 0; moves < kMaxMoves && move_one(); ++moves) {
  }
  std::rotate(ring.begin(), std::ranges::find(ring, 0), ring.end());
}

}  // namespace atl
