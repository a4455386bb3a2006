// Pseudo-gradients that are small random vectors, and what islands say of them. A direction that all share, another
// each round, and noise of each one's own. For tests; one thread.
#pragma once

#include <cmath>
#include <map>
#include <random>

#include "net/mesh/work_findings.h"

namespace atl {

class RandomWork {
 public:
  // `shared`: the cosine between what two of them learn.
  explicit RandomWork(unsigned seed, double shared = 0.2) : random_(seed), shared_(shared) {}

  void begin_round() {
    common_ = direction();
    own_.clear();
  }
  // Of this round; of norm 1.
  const WorkSketch& of(const IslandId& island) {
    WorkSketch& its = own_[island];
    if (!its.empty()) return its;
    its = sum(std::sqrt(shared_), common_, std::sqrt(1 - shared_), direction());
    return its;
  }
  // What encoding loses of a vector, `part` of its length.
  WorkSketch with_loss(const WorkSketch& of, double part) {
    double squared = 0;
    for (const double value : of) squared += value * value;
    return sum(1, of, part * std::sqrt(squared), direction());
  }
  static WorkSketch sum(double a, const WorkSketch& x, double b, const WorkSketch& y) {
    WorkSketch made(kSketchNumel);
    for (std::size_t i = 0; i < kSketchNumel; ++i) made[i] = a * x[i] + b * y[i];
    return made;
  }
  bool chance(double of) { return std::uniform_real_distribution<>()(random_) < of; }

 private:
  WorkSketch direction() {
    std::normal_distribution<> normal(0, 1 / std::sqrt(double{kSketchNumel}));
    WorkSketch made(kSketchNumel);
    for (double& value : made) value = normal(random_);
    return made;
  }

  std::mt19937_64 random_;
  const double shared_;
  WorkSketch common_;
  std::map<IslandId, WorkSketch> own_;
};

}  // namespace atl
