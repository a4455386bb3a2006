// How many tokens the island has trained in its run, which is an axis of its history: a trainer counts from its own
// start, the history goes on. Learned from the history's points of the same inner step. Plain values; one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace atl {

class TokenCount {
 public:
  // Of each event with a state.
  void take(std::int64_t trainer, double step, std::uint64_t tokens);
  // A point of the history.
  void learn(double step, double total);
  // At the last event taken; empty until it is known.
  std::optional<double> total() const;
  // The first step of which a point of the history would tell; empty: none yet.
  std::optional<double> known_since() const;
  void clear() { *this = TokenCount(); }

 private:
  static constexpr std::size_t kRemembered = 2048;
  struct Seen {
    double step = 0;
    std::uint64_t tokens = 0;
  };

  std::int64_t trainer_ = 0;
  std::uint64_t tokens_ = 0;       // of that trainer
  std::optional<double> earlier_;  // of those before it
  std::deque<Seen> seen_;          // of that trainer, as its steps came
};

}  // namespace atl
