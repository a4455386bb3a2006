// An attempt that failed because somebody lied (its members hold different averages, or one that is larger than its
// parts can be) is tried once more as it was, for accidents happen; then without one member after the other, the
// likeliest liar first, until one passes. Who was left out when it passed sits the round out; that alone is no proof
// against it. Pure values; not thread-safe; owned by RoundBlame.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "net/base/id.h"

namespace atl {

class LieSearch {
 public:
  // An attempt failed for a lie. `suspects`: its members that may be left out, likeliest first; nobody: too few are
  // left to check each other.
  void failed(const std::vector<IslandId>& suspects) {
    ++failures_;
    if (left_out_) tried_.insert(*left_out_);
    left_out_.reset();
    if (failures_ <= kAccidents) return;
    for (const IslandId& suspect : suspects) {
      if (tried_.contains(suspect)) continue;
      left_out_ = suspect;
      return;
    }
    exhausted_ = failures_ >= kMostFailures;
    tried_.clear();
  }
  void clear() { *this = LieSearch{}; }
  void spare() { left_out_.reset(); }  // it takes part after all

  const std::optional<IslandId>& left_out() const { return left_out_; }  // of the next attempt
  // Nobody is left to leave out: nobody can tell who lies.
  bool exhausted() const { return exhausted_; }

 private:
  static constexpr int kAccidents = 1;
  static constexpr int kMostFailures = 3;

  int failures_ = 0;
  std::set<IslandId> tried_;
  std::optional<IslandId> left_out_;
  bool exhausted_ = false;
};

}  // namespace atl
