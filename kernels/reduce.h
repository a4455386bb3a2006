// Passes over plain fp32 vectors around an all-reduce: pre-scaling by the own weight, and what is asked of a
// pseudo-gradient before it may travel. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace atl {

// out[i] <- factor * x[i]. Sizes equal; out may be x itself, else no overlap.
void scaled_copy(std::span<const float> x, float factor, std::span<float> out);

// out[i] <- factor * (x[i] + y[i]). Sizes equal; out may be x or y itself, else no overlap.
void scaled_sum_copy(std::span<const float> x, std::span<const float> y, float factor, std::span<float> out);

// No NaN and no infinity.
bool all_finite(std::span<const float> x);

// Sum of x[i]^2 in double. The order of the additions is fixed by the size alone, so that the result is the same on
// every machine, by any number of threads, and on a GPU: each row of kNormRowNumel values is summed in kNormLanes
// interleaved sums, which are folded in halves; the sums of rows are summed as rows in the same way, until one is left.
// A NaN or an infinity anywhere makes the result one, and no finite values do: their squares are small beside the
// largest double.
inline constexpr std::size_t kNormLanes = 16;
inline constexpr std::size_t kNormRowNumel = 4096;
double squared_norm(std::span<const float> x);

// squared_norm in parts, for who has the values row by row: of one row, and of all rows in their order (changed by it).
double row_squared_norm(std::span<const float> row);  // at most kNormRowNumel values
// row[i] <- outer[i] - row[i], and row_squared_norm of what they are then. Sizes equal; no overlap.
double subtract_row(std::span<const float> outer, std::span<float> row);
double fold_row_norms(std::vector<double> rows);

// all_finite and squared_norm in one pass: nothing where a value is NaN or infinite.
std::optional<double> finite_squared_norm(std::span<const float> x);

}  // namespace atl
