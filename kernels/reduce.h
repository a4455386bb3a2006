// Passes over plain fp32 vectors around an all-reduce: pre-scaling by the own weight, and what is asked of a
// pseudo-gradient before it may travel. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <span>

namespace atl {

// out[i] <- factor * x[i]. Sizes equal; out may be x itself, else no overlap.
void scaled_copy(std::span<const float> x, float factor, std::span<float> out);

// out[i] <- factor * (x[i] + y[i]). Sizes equal; out may be x or y itself, else no overlap.
void scaled_sum_copy(std::span<const float> x, std::span<const float> y, float factor, std::span<float> out);

// No NaN and no infinity.
bool all_finite(std::span<const float> x);

// Sum of x[i]^2 in double. The order of the additions is fixed by the size alone (kSquaredNormLanes partial sums,
// folded in halves), so that the result is the same on every machine.
inline constexpr std::size_t kSquaredNormLanes = 16;
double squared_norm(std::span<const float> x);

}  // namespace atl
