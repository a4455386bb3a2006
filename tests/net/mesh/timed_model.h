// The model that the islands of a TimedMesh train: a few numbers, whose loss is the distance from where it is least.
// What an island learns is a step towards it, with noise of its own. Pure values.
#pragma once

#include <array>
#include <cmath>
#include <random>

namespace atl {

using TimedValues = std::array<double, 16>;

inline double dot(const TimedValues& a, const TimedValues& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
inline double norm_of(const TimedValues& values) { return std::sqrt(dot(values, values)); }
inline void add(TimedValues& to, const TimedValues& what, double times) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += times * what[i];
}

struct TimedModel {
  TimedValues parameters{}, momentum{};

  static TimedModel initial() {
    TimedModel model;
    model.parameters.fill(1.5);  // at a distance of 6
    return model;
  }
  double loss() const { return 2 + norm_of(parameters); }
  // Outer parameters - local ones, after an inner phase.
  TimedValues pseudo_gradient(std::mt19937& random) const {
    const double distance = norm_of(parameters);
    const double signal = 0.06 * std::min(1.0, distance);  // as one that learns for long, it does not slow down soon
    std::normal_distribution<double> noise(0, 0.06 / std::sqrt(static_cast<double>(parameters.size())));
    TimedValues gradient;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = (distance > 0 ? signal * parameters[i] / distance : 0) + noise(random);
    }
    return gradient;
  }
  TimedModel after(const TimedValues& average, double learning_rate, double mu) const {
    TimedModel next = *this;
    for (std::size_t i = 0; i < average.size(); ++i) {
      next.momentum[i] = mu * momentum[i] + average[i];
      next.parameters[i] -= learning_rate * (average[i] + mu * next.momentum[i]);
    }
    return next;
  }
};

}  // namespace atl
