// Which matrices of a model carry most signal, to train them alone (Spectrum, Hartford et al. 2024, arXiv:2406.06623):
// of each kind of projection the blocks whose matrix has the largest ratio of singular values above the
// Marchenko-Pastur bound of noise to those below it, divided by the largest. Singular values are the roots of the
// eigenvalues of the smaller Gram matrix, in fp64. Computes on all processors: a matrix [m, n], n <= m, takes m n^2 +
// 4/3 n^3 multiplications and 8 n^2 + 4 m n bytes. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "net/base/result.h"
#include "net/model/layout.h"

namespace atl {

// Of a row-major matrix [rows, columns], descending; min(rows, columns) of them.
std::vector<double> singular_values(std::span<const float> matrix, std::int64_t rows, std::int64_t columns);

// The sum of the values above the bound over that of those at most as large, over the largest; infinite where none is
// as small. The bound: (1 + sqrt(beta)) times their interquartile range over 1.349, beta the ratio of the smaller side
// to the larger one. `values`: descending, not empty.
double signal_to_noise(std::span<const double> values, std::int64_t rows, std::int64_t columns);

// Reads values of the canonical order.
using ReadParameters = std::function<Status(std::int64_t offset, std::span<float> values)>;

// The names of the matrices of the blocks that are among the best `share` (0 to 1) of their kind, at least one of each,
// in the canonical order. `done` is told each matrix. What `read` fails with.
Result<std::vector<std::string>> best_by_signal_to_noise(
    const ParameterLayout& layout, double share, const ReadParameters& read,
    const std::function<void(std::size_t done, std::size_t all)>& done);

}  // namespace atl
