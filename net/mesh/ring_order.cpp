#include "net/mesh/ring_order.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "net/mesh/ring_graph.h"

namespace atl {
namespace {

constexpr int kTries = 12;  // random covers for one rate
constexpr std::uint32_t kSeed = 20'231'108;

// The rates that a slowest edge can have, rising.
std::vector<double> rates_of(const RingQuestion& question) {
  std::vector<double> rates;
  for (int from = 0; from < question.islands; ++from) {
    for (int to = 0; to < question.islands; ++to) {
      if (question.may_be_neighbours(from, to)) rates.push_back(question.edge(from, to).bytes_per_second);
    }
  }
  std::ranges::sort(rates);
  rates.erase(std::unique(rates.begin(), rates.end()), rates.end());
  return rates;
}

// The index of the highest rate at which `possible` holds, -1 for none; it holds at all below one at which it does.
template <class Possible>
int highest(const std::vector<double>& rates, int known, Possible possible) {
  int low = known, high = static_cast<int>(rates.size());
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (possible(rates[as_index(middle)]) ? low : high) = middle;
  }
  return low;
}

// The best ring of all islands; empty when none was found.
std::vector<int> best_ring(const RingQuestion& question) {
  if (question.islands == 1) return {0};
  std::vector<double> rates = rates_of(question);
  if (question.islands <= kExactRing) {
    const int best = highest(rates, -1, [&](double rate) { return has_ring(RingGraph(question, rate)); });
    return best < 0 ? std::vector<int>{} : shortest_ring(RingGraph(question, rates[as_index(best)]), question);
  }
  const int bound = highest(rates, -1, [&](double rate) { return RingGraph(question, rate).may_have_ring(); });
  rates.resize(as_index(bound + 1));
  std::mt19937 random(kSeed);
  std::vector<int> ring;
  const auto search = [&](double rate) {
    std::vector<int> found = find_ring(RingGraph(question, rate), random, kTries);
    if (found.empty()) return false;
    ring = std::move(found);
    return true;
  };
  if (!rates.empty() && !search(rates.back())) {
    rates.pop_back();
    highest(rates, -1, search);
  }
  if (!ring.empty()) shorten_ring(RingGraph(question, slowest_edge(question, ring)), question, ring);
  return ring;
}

bool has_some_ring(const RingQuestion& question) {
  const RingGraph graph(question, -std::numeric_limits<double>::infinity());
  if (question.islands <= kExactRing) return has_ring(graph);
  std::mt19937 random(kSeed);
  return !find_ring(graph, random, kTries).empty();
}

RingQuestion without(const RingQuestion& question, int island) {
  RingQuestion rest(question.islands - 1);
  const auto old = [&](int index) { return index < island ? index : index + 1; };
  for (int i = 0; i < rest.islands; ++i) {
    rest.dialable[as_index(i)] = question.dialable[as_index(old(i))];
    rest.tokens[as_index(i)] = question.tokens[as_index(old(i))];
    for (int j = 0; j < rest.islands; ++j) rest.edge(i, j) = question.edge(old(i), old(j));
  }
  return rest;
}

// Who sits out when no ring holds all: of the ends of edges that cannot be, the first without whom there is a ring, by
// tokens; when one does not suffice, the one with the most such edges.
int choose_to_sit_out(const RingQuestion& question) {
  std::vector<int> ends;
  for (int i = 0; i < question.islands; ++i) {
    for (int j = 0; j < question.islands; ++j) {
      if (i == j || question.may_be_neighbours(i, j)) continue;
      ends.push_back(i);
      break;
    }
  }
  std::ranges::stable_sort(ends, [&](int a, int b) {
    const auto tokens_a = question.tokens[as_index(a)], tokens_b = question.tokens[as_index(b)];
    return tokens_a != tokens_b ? tokens_a < tokens_b : a > b;
  });
  const auto suffices = [&](int island) { return has_some_ring(without(question, island)); };
  const auto found = std::ranges::find_if(ends, suffices);
  if (found != ends.end()) return *found;
  const auto strangers = [&](int island) {
    int count = 0;
    for (int other = 0; other < question.islands; ++other) count += question.may_be_neighbours(island, other) ? 0 : 1;
    return count;
  };
  return *std::ranges::max_element(ends, {}, strangers);  // the first of several
}

}  // namespace

bool RingQuestion::may_be_neighbours(int a, int b) const {
  return a != b && (dialable[as_index(a)] || dialable[as_index(b)]) && !edge(a, b).dead && !edge(b, a).dead;
}

RingOrder order_ring(const RingQuestion& question) {
  RingOrder answer;
  RingQuestion rest = question;
  std::vector<int> names(as_index(question.islands));  // of the islands of `rest`
  std::iota(names.begin(), names.end(), 0);
  std::vector<int> ring = best_ring(rest);
  while (ring.empty()) {
    const int loser = choose_to_sit_out(rest);
    answer.sits_out.push_back(names[as_index(loser)]);
    names.erase(names.begin() + loser);
    rest = without(rest, loser);
    ring = best_ring(rest);
  }
  answer.slowest_bytes_per_second = ring.size() < 2 ? 0 : slowest_edge(rest, ring);
  for (std::size_t r = 0; r < ring.size(); ++r) {
    const int self = ring[r], next = ring[(r + 1) % ring.size()];
    answer.order.push_back(names[as_index(self)]);
    answer.next_dials.push_back(!rest.dialable[as_index(next)]);
    if (ring.size() > 1) answer.rtt_sum_seconds += rest.edge(self, next).rtt_seconds;
  }
  return answer;
}

double slowest_edge(const RingQuestion& question, const std::vector<int>& order) {
  double slowest = std::numeric_limits<double>::infinity();
  for (std::size_t r = 0; order.size() > 1 && r < order.size(); ++r) {
    const int from = order[r], to = order[(r + 1) % order.size()];
    if (!question.may_be_neighbours(from, to)) return 0;
    slowest = std::min(slowest, question.edge(from, to).bytes_per_second);
  }
  return slowest;
}

double slowest_edge_bound(const RingQuestion& question) {
  const std::vector<double> rates = rates_of(question);
  const int bound = highest(rates, -1, [&](double rate) { return RingGraph(question, rate).may_have_ring(); });
  return bound < 0 ? 0 : rates[as_index(bound)];
}

}  // namespace atl
