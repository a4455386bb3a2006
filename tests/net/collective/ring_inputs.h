// What tests of averages share: values to average, and that every member has averaged them.
#pragma once

#include <QtTest>
#include <cstddef>
#include <random>
#include <vector>

#include "tests/net/collective/loopback_ring.h"

namespace atl {

using Inputs = std::vector<std::vector<float>>;  // by rank

inline Inputs normal_inputs(int world_size, std::size_t numel, unsigned seed = 42) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 1e-2f);
  Inputs inputs(static_cast<std::size_t>(world_size), std::vector<float>(numel));
  for (auto& input : inputs) {
    for (float& value : input) value = normal(random);
  }
  return inputs;
}

inline void verify_all_succeeded(const std::vector<MemberResult>& results) {
  for (const MemberResult& result : results) {
    QVERIFY2(result.ok(), result.ok() ? "" : result.failure().error.message.c_str());
  }
}

}  // namespace atl
