#include "net/mesh/ring_graph.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace atl {

RingGraph::RingGraph(const RingQuestion& question, double slowest)
    : successors_(as_index(question.islands)), predecessors_(as_index(question.islands)) {
  for (int from = 0; from < question.islands; ++from) {
    for (int to = 0; to < question.islands; ++to) {
      if (!question.may_be_neighbours(from, to) || question.edge(from, to).bytes_per_second < slowest) continue;
      successors_[as_index(from)].set(as_index(to));
      predecessors_[as_index(to)].set(as_index(from));
    }
  }
}

RingGraph::Row RingGraph::reached(const std::vector<Row>& next) const {
  Row seen;
  seen.set(0);
  std::vector<int> open{0};
  while (!open.empty()) {
    const Row fresh = next[as_index(open.back())] & ~seen;
    open.pop_back();
    seen |= fresh;
    for (int to = 0; to < islands(); ++to) {
      if (fresh[as_index(to)]) open.push_back(to);
    }
  }
  return seen;
}

bool RingGraph::may_have_ring() const {
  if (islands() == 1) return true;
  std::mt19937 any(1);
  return reached(successors_).count() == successors_.size() && reached(predecessors_).count() == successors_.size() &&
         cycle_cover(any).has_value();
}

// A bipartite matching of islands and their successors by augmenting paths (Kuhn 1955).
bool RingGraph::augment(int from, Row& visited, std::vector<int>& predecessor, const std::vector<int>& order) const {
  const Row open = successors_[as_index(from)] & ~visited;
  if (open.none()) return false;
  for (const bool only_free : {true, false}) {
    for (const int to : order) {
      if (!open[as_index(to)] || visited[as_index(to)] || (only_free && predecessor[as_index(to)] >= 0)) continue;
      visited.set(as_index(to));
      if (predecessor[as_index(to)] >= 0 && !augment(predecessor[as_index(to)], visited, predecessor, order)) continue;
      predecessor[as_index(to)] = from;
      return true;
    }
  }
  return false;
}

std::optional<std::vector<int>> RingGraph::cycle_cover(std::mt19937& random) const {
  std::vector<int> order(successors_.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<int> targets = order;
  std::shuffle(order.begin(), order.end(), random);
  std::shuffle(targets.begin(), targets.end(), random);
  std::vector<int> predecessor(successors_.size(), -1);
  for (const int from : order) {
    Row visited;
    if (!augment(from, visited, predecessor, targets)) return std::nullopt;
  }
  std::vector<int> successor(successors_.size());
  for (int to = 0; to < islands(); ++to) successor[as_index(predecessor[as_index(to)])] = to;
  return successor;
}

// ---- exact

bool has_ring(const RingGraph& graph) {
  const int n = graph.islands();
  if (n == 1) return true;
  // ends[set]: where paths from island 0 through exactly the islands of `set` (bit i: island i + 1) can end.
  const int others = n - 1;
  std::vector<std::uint32_t> ends(std::size_t{1} << others);
  std::vector<std::uint32_t> into(as_index(others));  // into[i]: from which of the others island i + 1 can be reached
  for (int i = 0; i < others; ++i) {
    for (int j = 0; j < others; ++j) into[as_index(i)] |= graph.has(j + 1, i + 1) ? 1u << j : 0u;
    if (graph.has(0, i + 1)) ends[std::size_t{1} << i] = 1u << i;
  }
  for (std::size_t set = 1; set < ends.size(); ++set) {
    for (int i = 0; i < others && (set & (set - 1)) != 0; ++i) {
      const std::size_t without = set & ~(std::size_t{1} << i);
      if (without != set && (ends[without] & into[as_index(i)]) != 0) ends[set] |= 1u << i;
    }
  }
  for (int i = 0; i < others; ++i) {
    if ((ends.back() >> i & 1) != 0 && graph.has(i + 1, 0)) return true;
  }
  return false;
}

std::vector<int> shortest_ring(const RingGraph& graph, const RingQuestion& question) {
  const int n = graph.islands();
  if (n == 1) return {0};
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const int others = n - 1;
  const std::size_t sets = std::size_t{1} << others;
  std::vector<double> least(sets * as_index(others), kNone);  // from island 0 through `set`, ending at i + 1
  std::vector<std::int16_t> before(sets * as_index(others), -1);
  const auto rtt = [&](int from, int to) { return graph.has(from, to) ? question.edge(from, to).rtt_seconds : kNone; };
  for (int i = 0; i < others; ++i) least[(std::size_t{1} << i) * as_index(others) + as_index(i)] = rtt(0, i + 1);
  for (std::size_t set = 1; set < sets; ++set) {
    for (int end = 0; end < others; ++end) {
      const double so_far = least[set * as_index(others) + as_index(end)];
      if (so_far == kNone) continue;
      for (int to = 0; to < others; ++to) {
        if ((set >> to & 1) != 0) continue;
        const std::size_t slot = (set | std::size_t{1} << to) * as_index(others) + as_index(to);
        const double sum = so_far + rtt(end + 1, to + 1);
        if (sum >= least[slot]) continue;
        least[slot] = sum;
        before[slot] = static_cast<std::int16_t>(end);
      }
    }
  }
  int end = -1;
  double best = kNone;
  for (int i = 0; i < others; ++i) {
    const double sum = least[(sets - 1) * as_index(others) + as_index(i)] + rtt(i + 1, 0);
    if (sum < best) {
      best = sum;
      end = i;
    }
  }
  std::vector<int> ring;
  for (std::size_t set = sets - 1; end >= 0;) {
    ring.push_back(end + 1);
    const auto previous = static_cast<int>(before[set * as_index(others) + as_index(end)]);  // -1: none is before it
    set &= ~(std::size_t{1} << end);
    end = previous;
  }
  if (ring.empty()) return {};
  ring.push_back(0);
  std::ranges::reverse(ring);
  return ring;
}

}  // namespace atl
