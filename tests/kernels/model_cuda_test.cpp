// The model's CUDA kernels, but attention and the optimizer's, against the same operations in fp64
// (net/step/operation.h). What a bound counts are the roundings to fp32 on the longest way to a result: n - 1 for a sum
// of n in whatever order, 4 for expf (2 units in the last place, CUDA C++ Programming Guide, 14.1), 2 for logf and
// sqrtf.
#include "kernels/model/model_cuda.h"

#include <algorithm>
#include <numeric>

#include "net/step/operation.h"
#include "tests/kernels/device_values.h"

using namespace atl;
using namespace atl::cuda;

class ModelCudaTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { skip_without_device(); }
  void embed_copies_the_rows_of_the_tokens_data() { shapes({{7, 40}, {5, 1030}, {3, 7}}); }
  void embed_copies_the_rows_of_the_tokens();
  void embed_backward_adds_in_ascending_order_of_rows_data() { shapes({{70, 40}, {40, 520}, {33, 7}}); }
  void embed_backward_adds_in_ascending_order_of_rows();
  void rms_norm_follows_fp64_data() { shapes({{3, 64}, {2, 1032}, {2, 3000}, {1, 8200}, {1, 16400}, {4, 37}}); }
  void rms_norm_follows_fp64();
  void rms_norm_backward_follows_fp64_data() {
    shapes({{3, 64}, {129, 40}, {3, 1032}, {3, 3000}, {3, 8200}, {1, 16400}, {66, 37}});
  }
  void rms_norm_backward_follows_fp64();
  void rope_turns_the_pairs_of_the_first_heads_data() { shapes({{5, 64}, {4, 6}, {3, 272}}); }
  void rope_turns_the_pairs_of_the_first_heads();
  void swiglu_and_its_gradient_follow_fp64_data() { shapes({{3, 64}, {2, 2056}, {5, 37}}); }
  void swiglu_and_its_gradient_follow_fp64();
  void cross_entropy_and_its_gradient_follow_fp64_data() { shapes({{3, 64}, {1, 9000}, {2, 4099}, {40, 3}}); }
  void cross_entropy_and_its_gradient_follow_fp64();
  void cross_entropy_of_a_nan_is_one();

 private:
  struct Shape {
    std::int64_t rows, columns;
  };
  // Each shape in both types, aligned and one element behind an aligned address.
  static void shapes(std::initializer_list<Shape> list);
};

void ModelCudaTest::shapes(std::initializer_list<Shape> list) {
  QTest::addColumn<bool>("bf16");
  QTest::addColumn<qint64>("rows");
  QTest::addColumn<qint64>("columns");
  QTest::addColumn<int>("shift");
  for (const bool bf16 : {false, true}) {
    for (const Shape& shape : list) {
      for (const int shift : {0, 1}) {
        QTest::addRow("%s %lld x %lld%s", bf16 ? "bf16" : "fp32", static_cast<long long>(shape.rows),
                      static_cast<long long>(shape.columns), shift == 0 ? "" : " shifted")
            << bf16 << qint64{shape.rows} << qint64{shape.columns} << shift;
      }
    }
  }
}

namespace {

struct Case {
  std::int64_t rows, columns;
  std::size_t shift;
  std::int64_t numel() const { return rows * columns; }
};

// Calls test(T{}, case) with the row's T.
template <class Test>
void with_case(const Test& test) {
  QFETCH(bool, bf16);
  QFETCH(qint64, rows);
  QFETCH(qint64, columns);
  QFETCH(int, shift);
  const Case of_row{rows, columns, static_cast<std::size_t>(shift)};
  if (bf16) {
    test(Bf16{}, of_row);
  } else {
    test(0.0f, of_row);
  }
}

std::size_t at(std::int64_t row, std::int64_t columns, std::int64_t column) {
  return static_cast<std::size_t>(row * columns + column);
}

std::vector<std::int32_t> some_tokens(std::int64_t rows) {
  std::vector<std::int32_t> tokens;
  // Token 3 in every second row, the others now and then, 2 never.
  for (std::int64_t r = 0; r < rows; ++r)
    tokens.push_back(static_cast<std::int32_t>(r % 2 == 0 ? 3 : (r * r) % 7 % 5 * 2 + 1));
  return tokens;
}
constexpr std::int64_t kTokens = 10;

}  // namespace

void ModelCudaTest::embed_copies_the_rows_of_the_tokens() {
  with_case([]<class T>(T, const Case& c) {
    const auto table = uniform<T>(kTokens * c.columns, 1);
    const auto tokens = some_tokens(c.rows);
    const auto [x] = repeatable([&] {
      const DeviceArray<T> from(table, c.shift);
      const DeviceArray<std::int32_t> of(tokens);
      const DeviceArray<T> to(std::vector<T>(static_cast<std::size_t>(c.numel())), c.shift);
      if (launch_embed(from.get(), of.get(), c.rows, c.columns, to.get(), nullptr) != cudaSuccess)
        qFatal("launch_embed");
      return std::tuple(to.to_host());
    });
    for (std::int64_t r = 0; r < c.rows; ++r) {
      for (std::int64_t i = 0; i < c.columns; ++i) {
        QCOMPARE(widened(x[at(r, c.columns, i)]),
                 widened(table[at(tokens[static_cast<std::size_t>(r)], c.columns, i)]));
      }
    }
  });
}

void ModelCudaTest::embed_backward_adds_in_ascending_order_of_rows() {
  with_case([]<class T>(T, const Case& c) {
    const auto dx = uniform<T>(c.numel(), 1);
    const auto before = uniform<float>(kTokens * c.columns, 2);
    const auto tokens = some_tokens(c.rows);
    std::vector<std::int32_t> order(tokens.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
      return tokens[static_cast<std::size_t>(a)] < tokens[static_cast<std::size_t>(b)];
    });
    const auto [gradient] = repeatable([&] {
      const DeviceArray<T> from(dx, c.shift);
      const DeviceArray<std::int32_t> of(tokens);
      const DeviceArray<std::int32_t> sorted(order);
      const DeviceArray<float> to(before, c.shift);
      if (launch_embed_backward(from.get(), of.get(), sorted.get(), c.rows, c.columns, to.get(), nullptr) !=
          cudaSuccess) {
        qFatal("launch_embed_backward");
      }
      return std::tuple(to.to_host());
    });
    auto expected = before;
    for (std::int64_t r = 0; r < c.rows; ++r) {
      for (std::int64_t i = 0; i < c.columns; ++i) {
        expected[at(tokens[static_cast<std::size_t>(r)], c.columns, i)] += widened(dx[at(r, c.columns, i)]);
      }
    }
    QVERIFY(same_bits(gradient, expected));
  });
}

void ModelCudaTest::rms_norm_follows_fp64() {
  with_case([]<class T>(T, const Case& c) {
    const auto x = uniform<T>(c.numel(), 1, -3, 3);
    const auto weight = uniform<T>(c.columns, 2, 0.5f, 1.5f);
    const float epsilon = 1e-5f;
    const auto [y, inverse_rms] = repeatable([&] {
      const DeviceArray<T> from(x, c.shift);
      const DeviceArray<T> scale(weight, c.shift);
      const DeviceArray<T> to(std::vector<T>(x.size()), c.shift);
      const DeviceArray<float> inverse(std::vector<float>(static_cast<std::size_t>(c.rows)));
      if (launch_rms_norm(from.get(), scale.get(), epsilon, c.rows, c.columns, to.get(), inverse.get(), nullptr) !=
          cudaSuccess) {
        qFatal("launch_rms_norm");
      }
      return std::tuple(to.to_host(), inverse.to_host());
    });
    const auto exact_x = exactly(x);
    std::vector<double> exact_y;
    std::vector<double> exact_inverse;
    for (std::int64_t r = 0; r < c.rows; ++r) {
      double squares = 0;
      for (std::int64_t i = 0; i < c.columns; ++i)
        squares += exact_x[at(r, c.columns, i)] * exact_x[at(r, c.columns, i)];
      exact_inverse.push_back(1 / std::sqrt(squares / static_cast<double>(c.columns) + static_cast<double>(epsilon)));
      for (std::int64_t i = 0; i < c.columns; ++i) {
        exact_y.push_back(exact_x[at(r, c.columns, i)] * exact_inverse.back() *
                          static_cast<double>(widened(weight[static_cast<std::size_t>(i)])));
      }
    }
    // The root halves what the squares, their sum, quotient and epsilon's addition have lost; root and reciprocal: 3.
    const double roundings = static_cast<double>(c.columns + 2) / 2 + 3;
    ATOLL_WITHIN(inverse_rms, exact_inverse, roundings);
    ATOLL_WITHIN(y, exact_y, roundings + 2);
  });
}

namespace {

// size_*: the sums of the absolute values that are added up to the others.
struct ExactNormGradient {
  std::vector<double> dx, size_dx, dweight, size_dweight, partial, size_partial;
};
template <class T>
ExactNormGradient exact_norm_gradient(const Case& c, const std::vector<T>& dy, const std::vector<T>& x,
                                      const std::vector<T>& weight, const std::vector<float>& inverse_rms,
                                      const std::vector<T>& residual, const std::vector<float>& before) {
  ExactNormGradient exact;
  exact.dweight = exact.size_dweight = exactly(before);
  for (double& value : exact.size_dweight) value = std::abs(value);
  exact.partial.resize(static_cast<std::size_t>(norm_parts(c.rows) * c.columns));
  exact.size_partial = exact.partial;
  for (std::int64_t r = 0; r < c.rows; ++r) {
    const auto inverse = static_cast<double>(inverse_rms[static_cast<std::size_t>(r)]);
    const auto d_of = [&](std::int64_t i) { return static_cast<double>(widened(dy[at(r, c.columns, i)])); };
    const auto n_of = [&](std::int64_t i) { return static_cast<double>(widened(x[at(r, c.columns, i)])) * inverse; };
    const auto g_of = [&](std::int64_t i) {
      return d_of(i) * static_cast<double>(widened(weight[static_cast<std::size_t>(i)]));
    };
    double mean = 0;
    double size = 0;
    for (std::int64_t i = 0; i < c.columns; ++i) {
      mean += g_of(i) * n_of(i) / static_cast<double>(c.columns);
      size += std::abs(g_of(i) * n_of(i)) / static_cast<double>(c.columns);
    }
    for (std::int64_t i = 0; i < c.columns; ++i) {
      const auto more = static_cast<double>(widened(residual[at(r, c.columns, i)]));
      exact.dx.push_back(inverse * (g_of(i) - n_of(i) * mean) + more);
      exact.size_dx.push_back(inverse * (std::abs(g_of(i)) + std::abs(n_of(i)) * size) + std::abs(more));
      exact.partial[at(r / kNormPartRows, c.columns, i)] += d_of(i) * n_of(i);
      exact.size_partial[at(r / kNormPartRows, c.columns, i)] += std::abs(d_of(i) * n_of(i));
      exact.dweight[static_cast<std::size_t>(i)] += d_of(i) * n_of(i);
      exact.size_dweight[static_cast<std::size_t>(i)] += std::abs(d_of(i) * n_of(i));
    }
  }
  return exact;
}

}  // namespace

void ModelCudaTest::rms_norm_backward_follows_fp64() {
  with_case([]<class T>(T, const Case& c) {
    const auto dy = uniform<T>(c.numel(), 1);
    const auto x = uniform<T>(c.numel(), 2, -3, 3);
    const auto weight = uniform<T>(c.columns, 3, 0.5f, 1.5f);
    const auto residual = uniform<T>(c.numel(), 4);
    const auto inverse_rms = uniform<float>(c.rows, 5, 0.5f, 2);
    const auto before = uniform<float>(c.columns, 6);
    const std::vector<T> none(residual.size());
    const auto parts = static_cast<std::size_t>(norm_parts(c.rows) * c.columns);
    // With a residual, which dx replaces, and an addition to dweight; with neither.
    for (const bool full : {true, false}) {
      const auto [dx, dweight, partial] = repeatable([&] {
        const DeviceArray<T> d(dy, c.shift);
        const DeviceArray<T> of(x, c.shift);
        const DeviceArray<T> scale(weight, c.shift);
        const DeviceArray<float> inverse(inverse_rms);
        const DeviceArray<T> to(residual, c.shift);
        const DeviceArray<float> scratch(std::vector<float>(parts), c.shift);
        const DeviceArray<float> sum(before, c.shift);
        const RmsNormGradient<T> gradient{.dy = d.get(),
                                          .x = of.get(),
                                          .weight = scale.get(),
                                          .inverse_rms = inverse.get(),
                                          .residual = full ? to.get() : nullptr,
                                          .rows = c.rows,
                                          .hidden = c.columns,
                                          .part_rows = kNormPartRows,
                                          .dx = to.get(),
                                          .partial = scratch.get(),
                                          .dweight = sum.get(),
                                          .accumulate = full};
        if (launch_rms_norm_backward(gradient, nullptr) != cudaSuccess) qFatal("launch_rms_norm_backward");
        return std::tuple(to.to_host(), sum.to_host(), scratch.to_host());
      });
      const ExactNormGradient exact = exact_norm_gradient(c, dy, x, weight, inverse_rms, full ? residual : none,
                                                          full ? before : std::vector<float>(before.size()));
      // Of a term of the mean 3, of the sum columns - 1, of the quotient and what is made of it 6.
      ATOLL_WITHIN(dx, exact.dx, exact.size_dx, static_cast<double>(c.columns) + 8);
      ATOLL_WITHIN(partial, exact.partial, exact.size_partial, 2.0 + kNormPartRows);
      ATOLL_WITHIN(dweight, exact.dweight, exact.size_dweight, static_cast<double>(c.rows) + 3);
    }
  });
}

void ModelCudaTest::rope_turns_the_pairs_of_the_first_heads() {
  with_case([]<class T>(T, const Case& c) {
    // Two heads of three are turned; rows have some elements more.
    const std::int64_t head_dim = c.columns, half = head_dim / 2, heads = 2, length = 3;
    const std::int64_t stride = 3 * head_dim + 16;
    const auto x = uniform<T>(c.rows * stride, 1);
    std::vector<float> cosines, sines;
    for (std::int64_t i = 0; i < length * half; ++i) {
      cosines.push_back(std::cos(static_cast<float>(i)));
      sines.push_back(std::sin(static_cast<float>(i)));
    }
    // The other way, with documents: of each sequence the second begins behind its first row.
    for (const bool documents : {false, true}) {
      const float direction = documents ? -1.0f : 1.0f;
      std::vector<std::int32_t> starts;
      for (std::int64_t r = 0; r < c.rows; ++r) starts.push_back(documents && r % length > 0 ? 1 : 0);
      const auto [turned] = repeatable([&] {
        const DeviceArray<T> in_place(x, c.shift);
        const DeviceArray<float> cosine(cosines);
        const DeviceArray<float> sine(sines);
        const DeviceArray<std::int32_t> start(starts);
        if (launch_rope(in_place.get(), stride, c.rows, cosine.get(), sine.get(), heads, head_dim, length,
                        documents ? start.get() : nullptr, direction, nullptr) != cudaSuccess) {
          qFatal("launch_rope");
        }
        return std::tuple(in_place.to_host());
      });
      auto exact = exactly(x);
      auto size = exactly(x);
      for (double& value : size) value = std::abs(value);
      for (std::int64_t r = 0; r < c.rows; ++r) {
        for (std::int64_t i = 0; i < heads * half; ++i) {
          const std::size_t a = at(r, stride, i / half * head_dim + i % half);
          const std::size_t b = a + static_cast<std::size_t>(half);
          const std::int64_t position = r % length - starts[static_cast<std::size_t>(r)];
          const auto cosine = static_cast<double>(cosines[at(position, half, i % half)]);
          const double sine = static_cast<double>(direction * sines[at(position, half, i % half)]);
          const double before_a = exact[a], before_b = exact[b];
          exact[a] = before_a * cosine - before_b * sine;
          exact[b] = before_b * cosine + before_a * sine;
          size[a] = std::abs(before_a * cosine) + std::abs(before_b * sine);
          size[b] = std::abs(before_b * cosine) + std::abs(before_a * sine);
        }
      }
      ATOLL_WITHIN(turned, exact, size, 2);
      for (std::int64_t r = 0; r < c.rows; ++r) {
        for (std::int64_t i = heads * head_dim; i < stride; ++i) {
          QCOMPARE(widened(turned[at(r, stride, i)]), widened(x[at(r, stride, i)]));
        }
      }
    }
  });
}

void ModelCudaTest::swiglu_and_its_gradient_follow_fp64() {
  with_case([]<class T>(T, const Case& c) {
    auto gate_up = uniform<T>(2 * c.numel(), 1, -8, 8);
    gate_up[0] = rounded_to<T>(-100);  // of which expf is infinite
    gate_up[1] = rounded_to<T>(100);
    const auto dout = uniform<T>(c.numel(), 2);
    const auto [out, dgate_up, in_place] = repeatable([&] {
      const DeviceArray<T> from(gate_up, c.shift);
      const DeviceArray<T> d(dout, c.shift);
      const DeviceArray<T> to(std::vector<T>(dout.size()), c.shift);
      const DeviceArray<T> gradient(std::vector<T>(gate_up.size()), c.shift);
      if (launch_swiglu(from.get(), c.rows, c.columns, to.get(), nullptr) != cudaSuccess) qFatal("launch_swiglu");
      for (T* const target : {gradient.get(), from.get()}) {
        if (launch_swiglu_backward(d.get(), from.get(), c.rows, c.columns, target, nullptr) != cudaSuccess) {
          qFatal("launch_swiglu_backward");
        }
      }
      return std::tuple(to.to_host(), gradient.to_host(), from.to_host());
    });
    std::vector<double> exact_out, exact_d(gate_up.size()), size_d(gate_up.size());
    for (std::int64_t r = 0; r < c.rows; ++r) {
      for (std::int64_t i = 0; i < c.columns; ++i) {
        const std::size_t of_gate = at(r, 2 * c.columns, i), of_up = of_gate + static_cast<std::size_t>(c.columns);
        const auto gate = static_cast<double>(widened(gate_up[of_gate]));
        const auto up = static_cast<double>(widened(gate_up[of_up]));
        const auto d = static_cast<double>(widened(dout[at(r, c.columns, i)]));
        const double s = 1 / (1 + std::exp(-gate));
        exact_out.push_back(gate * s * up);
        exact_d[of_gate] = d * up * s * (1 + gate * (1 - s));
        size_d[of_gate] = std::abs(d * up) * s * (1 + std::abs(gate));
        exact_d[of_up] = d * gate * s;
        size_d[of_up] = std::abs(exact_d[of_up]);
      }
    }
    // The sigmoid 6: expf, sum, quotient. dgate: of s (1 + gate (1 - s)) at most 6 + 7 + 3, times d up 3.
    ATOLL_WITHIN(out, exact_out, 8);
    ATOLL_WITHIN(dgate_up, exact_d, size_d, 19);
    QVERIFY(same_bits(in_place, dgate_up));
  });
}

namespace {

constexpr float kScale = 0.125f, kMaxZLoss = 0.01f;
constexpr double kRange = 9;  // the largest logit less the smallest

struct ExactLoss {
  double cross_entropy = 0, squared_largest = 0;
  std::vector<double> gradient, size_gradient;
};
template <class T>
ExactLoss exact_loss(const Case& c, const std::vector<T>& logits, const std::vector<std::int32_t>& labels) {
  ExactLoss exact;
  for (std::int64_t r = 0; r < c.rows; ++r) {
    const auto x = [&](std::int64_t i) { return static_cast<double>(widened(logits[at(r, c.columns, i)])); };
    const std::int64_t label = labels[static_cast<std::size_t>(r)];
    if (label < 0) {  // counts for nothing
      exact.gradient.resize(exact.gradient.size() + static_cast<std::size_t>(c.columns));
      exact.size_gradient.resize(exact.gradient.size());
      continue;
    }
    std::int64_t largest = 0;
    for (std::int64_t i = 1; i < c.columns; ++i) largest = x(i) > x(largest) ? i : largest;
    double sum = 0;
    for (std::int64_t i = 0; i < c.columns; ++i) sum += std::exp(x(i) - x(largest));
    exact.cross_entropy += std::log(sum) + x(largest) - x(label);
    exact.squared_largest += x(largest) * x(largest);
    for (std::int64_t i = 0; i < c.columns; ++i) {
      const double p = std::exp(x(i) - x(largest)) / sum;
      const double z = i == largest ? 2 * static_cast<double>(kMaxZLoss) * x(i) : 0.0;
      exact.gradient.push_back(static_cast<double>(kScale) * (p - (i == label ? 1 : 0) + z));
      exact.size_gradient.push_back(static_cast<double>(kScale) * (p + (i == label ? 1 : 0) + std::abs(z)));
    }
  }
  return exact;
}

}  // namespace

void ModelCudaTest::cross_entropy_and_its_gradient_follow_fp64() {
  with_case([]<class T>(T, const Case& c) {
    auto logits = uniform<T>(c.numel(), 1, -4, 4);
    std::vector<std::int32_t> labels;
    for (std::int64_t r = 0; r < c.rows; ++r) labels.push_back(static_cast<std::int32_t>((r * 5 + 2) % c.columns));
    // The largest logit twice: at the end, and before that in even rows the label's, in odd ones the last but one.
    for (std::int64_t r = 0; r < c.rows; ++r) {
      logits[at(r, c.columns, r % 2 == 0 ? labels[static_cast<std::size_t>(r)] : c.columns - 2)] = rounded_to<T>(5);
      logits[at(r, c.columns, c.columns - 1)] = rounded_to<T>(5);
    }
    if (c.rows > 1) labels[1] = -1;
    for (const bool gradient : {true, false}) {
      const auto [after, sums] = repeatable([&] {
        const DeviceArray<T> x(logits, c.shift);
        const DeviceArray<std::int32_t> of(labels);
        const DeviceArray<float> factor(std::vector<float>{kScale});
        const DeviceArray<float> scratch(std::vector<float>(static_cast<std::size_t>(2 * c.rows)));
        const DeviceArray<double> total(std::vector<double>{1.5, 2.5});
        const CrossEntropyRows<T> loss{.logits = x.get(),
                                       .labels = of.get(),
                                       .scale = factor.get(),
                                       .rows = c.rows,
                                       .vocab = c.columns,
                                       .max_z_loss = kMaxZLoss,
                                       .gradient = gradient,
                                       .row_sums = scratch.get(),
                                       .cross_entropy = total.get(),
                                       .squared_largest = total.get() + 1};
        if (launch_cross_entropy(loss, nullptr) != cudaSuccess) qFatal("launch_cross_entropy");
        return std::tuple(x.to_host(), total.to_host());
      });
      // Of the sum of exponentials: on the way through a thread (its every addition may bring a rescaling), a warp and
      // the warps, 1 for an addition, 5 + kRange for a factor exp(x - y).
      const double depth = static_cast<double>(c.columns) / 1024 + 8 + 5 + 32;
      const double of_sum = depth * (1 + 5 + kRange);
      const ExactLoss exact = exact_loss(c, logits, labels);
      // Of a row's logarithm 2 and more, of the differences before and after it.
      const double bound = kUnit * (static_cast<double>(c.rows) * (of_sum + 2 * kRange) + 3 * exact.cross_entropy);
      const double cross_entropy = sums[0] - 1.5, squared = sums[1] - 2.5;
      QVERIFY2(std::abs(cross_entropy - exact.cross_entropy) <= bound * (1 + 0x1p-8),
               qPrintable(QString::number(cross_entropy - exact.cross_entropy)));
      QVERIFY(std::abs(squared - exact.squared_largest) <= kUnit * squared);
      if (gradient) {
        ATOLL_WITHIN(after, exact.gradient, exact.size_gradient, of_sum + 5 + kRange + 5);
      } else {
        QVERIFY(same_bits(after, logits));
      }
    }
  });
}

void ModelCudaTest::cross_entropy_of_a_nan_is_one() {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> logits(64, 1.0f);
    logits[40] = bad;
    const DeviceArray<float> x(logits);
    const DeviceArray<std::int32_t> labels(std::vector<std::int32_t>{3});
    const DeviceArray<float> scale(std::vector<float>{1.0f});
    const DeviceArray<float> scratch(std::vector<float>(2));
    const DeviceArray<double> sums(std::vector<double>(2));
    const CrossEntropyRows<float> loss{.logits = x.get(),
                                       .labels = labels.get(),
                                       .scale = scale.get(),
                                       .rows = 1,
                                       .vocab = 64,
                                       .max_z_loss = 0,
                                       .gradient = true,
                                       .row_sums = scratch.get(),
                                       .cross_entropy = sums.get(),
                                       .squared_largest = sums.get() + 1};

    QCOMPARE(launch_cross_entropy(loss, nullptr), cudaSuccess);

    QVERIFY(std::isnan(sums.to_host()[0]));
  }
}

QTEST_APPLESS_MAIN(ModelCudaTest)
#include "model_cuda_test.moc"
