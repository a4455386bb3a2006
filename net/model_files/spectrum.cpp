#include "net/model_files/spectrum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "net/base/parallel.h"

namespace atl {
namespace {

constexpr double kQuartilesToDeviation = 1.349;  // of a normal distribution
constexpr std::size_t kSmall = 256;              // up to so many rows threads cost more than they save
constexpr int kMostSweeps = 60;                  // of QL for an eigenvalue; a few suffice

// A symmetric matrix, row-major [n, n].
struct Symmetric {
  std::size_t n = 0;
  std::vector<double> values;
  double& at(std::size_t i, std::size_t j) { return values[i * n + j]; }
  double at(std::size_t i, std::size_t j) const { return values[i * n + j]; }
};

// part(i) for i < count.
void for_rows(std::size_t count, const std::function<void(std::size_t)>& part) {
  if (count > kSmall) return parallel_for(count, part);
  for (std::size_t i = 0; i < count; ++i) part(i);
}

double dot(const float* a, const float* b, std::size_t count) {
  double sums[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] += static_cast<double>(a[i + lane]) * b[i + lane];
  }
  for (; i < count; ++i) sums[0] += static_cast<double>(a[i]) * b[i];
  return std::accumulate(std::begin(sums), std::end(sums), 0.0);
}

// The smaller of A A^T and A^T A.
Symmetric gram_of(std::span<const float> matrix, std::size_t rows, std::size_t columns) {
  std::vector<float> turned;
  if (rows > columns) {
    turned.resize(matrix.size());
    for_rows(columns, [&](std::size_t c) {
      for (std::size_t r = 0; r < rows; ++r) turned[c * rows + r] = matrix[r * columns + c];
    });
    matrix = turned;
    std::swap(rows, columns);
  }
  Symmetric gram{rows, std::vector<double>(rows * rows)};
  for_rows(rows, [&](std::size_t i) {
    for (std::size_t j = 0; j <= i; ++j) {
      gram.at(i, j) = dot(&matrix[i * columns], &matrix[j * columns], columns);
    }
  });
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < i; ++j) gram.at(j, i) = gram.at(i, j);
  }
  return gram;
}

struct Tridiagonal {
  std::vector<double> diagonal, beside;  // beside[i] is between i and i + 1; the last is 0
};

// By Householder's reflections (Golub and Van Loan, Matrix Computations, 8.3.1), the first column first.
Tridiagonal tridiagonal_of(Symmetric a) {
  const std::size_t n = a.n;
  Tridiagonal t{std::vector<double>(n), std::vector<double>(n)};
  std::vector<double> v(n), w(n);
  for (std::size_t k = 0; k + 1 < n; ++k) {
    t.diagonal[k] = a.at(k, k);
    const std::size_t first = k + 1;
    double squares = 0;
    for (std::size_t i = first; i < n; ++i) squares += a.at(k, i) * a.at(k, i);
    const double norm = std::sqrt(squares);
    if (norm == 0) continue;
    const double alpha = a.at(k, first) > 0 ? -norm : norm;
    t.beside[k] = alpha;
    for (std::size_t i = first; i < n; ++i) v[i] = a.at(k, i);
    v[first] -= alpha;
    const double length = squares - alpha * a.at(k, first);  // v . v / 2
    for_rows(n - first, [&](std::size_t r) {
      const double* row = &a.values[(first + r) * n];
      double sum = 0;
      for (std::size_t j = first; j < n; ++j) sum += row[j] * v[j];
      w[first + r] = sum / length;
    });
    double along = 0;
    for (std::size_t i = first; i < n; ++i) along += v[i] * w[i];
    for (std::size_t i = first; i < n; ++i) w[i] -= along / (2 * length) * v[i];
    for_rows(n - first, [&](std::size_t r) {
      double* row = &a.values[(first + r) * n];
      const double vi = v[first + r], wi = w[first + r];
      for (std::size_t j = first; j < n; ++j) row[j] -= vi * w[j] + wi * v[j];
    });
  }
  if (n > 0) t.diagonal[n - 1] = a.at(n - 1, n - 1);
  return t;
}

// Implicit QL with Wilkinson's shift (Golub and Van Loan, 8.3.5), in place: the eigenvalues, in no order.
std::vector<double> eigenvalues_of(Tridiagonal t) {
  std::vector<double>& d = t.diagonal;
  std::vector<double>& e = t.beside;
  for (std::size_t l = 0; l < d.size(); ++l) {
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      std::size_t m = l;
      for (; m + 1 < d.size(); ++m) {
        const double scale = std::abs(d[m]) + std::abs(d[m + 1]);
        if (std::abs(e[m]) <= std::numeric_limits<double>::epsilon() * scale) break;
      }
      if (m == l) break;
      double g = (d[l + 1] - d[l]) / (2 * e[l]);
      double r = std::hypot(g, 1.0);
      g = d[m] - d[l] + e[l] / (g + std::copysign(r, g));
      double s = 1, c = 1, p = 0;
      bool split = false;
      for (std::size_t i = m; i-- > l;) {
        const double f = s * e[i], b = c * e[i];
        r = std::hypot(f, g);
        e[i + 1] = r;
        if (r == 0) {
          d[i + 1] -= p;
          e[m] = 0;
          split = true;
          break;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - p;
        r = (d[i] - g) * s + 2 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
      }
      if (split) continue;
      d[l] -= p;
      e[l] = g;
      e[m] = 0;
    }
  }
  return std::move(d);
}

// Of ascending values, between neighbours in proportion.
double quantile(std::span<const double> ascending, double share) {
  const double place = share * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, ascending.size() - 1);
  return ascending[below] + (place - static_cast<double>(below)) * (ascending[above] - ascending[below]);
}

// "self_attn.q_proj.weight" of a block's matrix; empty of what is none.
std::string kind_of(const ParameterInfo& parameter) {
  constexpr std::string_view kBlocks = "model.layers.";
  if (parameter.shape.size() != 2 || !parameter.name.starts_with(kBlocks)) return {};
  return parameter.name.substr(parameter.name.find('.', kBlocks.size()) + 1);
}

}  // namespace

std::vector<double> singular_values(std::span<const float> matrix, std::int64_t rows, std::int64_t columns) {
  Symmetric gram = gram_of(matrix, static_cast<std::size_t>(rows), static_cast<std::size_t>(columns));
  std::vector<double> values = eigenvalues_of(tridiagonal_of(std::move(gram)));
  for (double& value : values) value = std::sqrt(std::max(value, 0.0));
  std::ranges::sort(values, std::ranges::greater());
  return values;
}

double signal_to_noise(std::span<const double> values, std::int64_t rows, std::int64_t columns) {
  const std::vector<double> ascending(values.rbegin(), values.rend());
  const double beta = static_cast<double>(std::min(rows, columns)) / static_cast<double>(std::max(rows, columns));
  const double deviation = (quantile(ascending, 0.75) - quantile(ascending, 0.25)) / kQuartilesToDeviation;
  const double bound = deviation * (1 + std::sqrt(beta));
  double signal = 0, noise = 0;
  for (const double value : values) (value > bound ? signal : noise) += value;
  if (values.front() == 0) return 0;  // nothing is in it
  return noise == 0 ? std::numeric_limits<double>::infinity() : signal / noise / values.front();
}

Result<std::vector<std::string>> best_by_signal_to_noise(
    const ParameterLayout& layout, double share, const ReadParameters& read,
    const std::function<void(std::size_t done, std::size_t all)>& done) {
  std::map<std::string, std::vector<std::pair<double, std::size_t>>> kinds;  // ratio and parameter
  std::vector<std::size_t> matrices;
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    if (!kind_of(layout.parameters[i]).empty()) matrices.push_back(i);
  }
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const ParameterInfo& parameter = layout.parameters[matrices[i]];
    std::vector<float> values(static_cast<std::size_t>(parameter.numel));
    ATOLL_RETURN_IF_ERROR(read(parameter.offset, values));
    const std::int64_t rows = parameter.shape[0], columns = parameter.shape[1];
    kinds[kind_of(parameter)].emplace_back(signal_to_noise(singular_values(values, rows, columns), rows, columns),
                                           matrices[i]);
    if (done) done(i + 1, matrices.size());
  }
  std::vector<std::size_t> best;
  for (auto& [kind, ratios] : kinds) {
    const auto count = static_cast<std::size_t>(share * static_cast<double>(ratios.size()));
    std::ranges::stable_sort(ratios, std::ranges::greater(), &std::pair<double, std::size_t>::first);
    for (std::size_t i = 0; i < std::clamp<std::size_t>(count, 1, ratios.size()); ++i) best.push_back(ratios[i].second);
  }
  std::ranges::sort(best);
  std::vector<std::string> names;
  for (const std::size_t parameter : best) names.push_back(layout.parameters[parameter].name);
  return names;
}

}  // namespace atl
