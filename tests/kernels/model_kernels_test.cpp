// The model's operations on the CPU, of every instruction set that this processor has, in fp32 and bf16, against their
// formulas (net/step/operation.h) in double. Bounds: what the roundings in fp32 can add up to, plus half an ulp of what
// is written.
#include "kernels/model/model_kernels.h"

#include <QtTest>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "tests/kernels/model_values.h"

using namespace atl;

namespace {

constexpr double kU = 0x1p-24;        // of one rounding in fp32
constexpr double kExpError = 4 * kU;  // of e^x, which is within 1.3 ulp
constexpr double kTiny = 0x1p-126;    // what a result below the normal numbers may be off by
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A sum of n products: at least 16 partial sums, each of some n / 16 terms; what is left over, the fold, the products
// themselves.
double sum_error(std::size_t n) { return (static_cast<double>(n) / 16 + 12) * kU; }

std::int64_t i64(std::size_t x) { return static_cast<std::int64_t>(x); }

}  // namespace

class ModelKernelsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void rms_norm_divides_each_row_by_its_root_mean_square();
  void rms_norm_backward_is_the_derivative_of_rms_norm();
  void rms_norm_backward_may_write_over_the_residual();
  void swiglu_is_silu_of_the_gate_times_up();
  void swiglu_backward_is_the_derivative_of_swiglu();
  void swiglu_of_extreme_gates_is_their_limit();
  void rope_turns_pairs_by_the_angle_and_back();
  void cross_entropy_and_its_gradient_follow_their_formulas();
  void cross_entropy_without_gradient_leaves_the_logits();
  void a_row_without_a_label_counts_for_nothing();
  void the_first_of_the_largest_logits_gets_the_max_z_gradient();
  void a_masked_logit_has_probability_zero();
  void one_bad_logit_makes_the_loss_not_finite();
  void one_nan_makes_its_row_not_finite();
  void embed_copies_and_its_backward_adds_rows_in_order();
  void adamw_follows_its_equations();
  void adamw_leaves_padding_zero();
  void bf16_is_rounded_as_on_the_wire_and_widened_exactly();
  void sum_of_squares_is_the_same_bits_from_every_instruction_set();
  void add_is_one_fp32_addition_a_value();
};

void ModelKernelsTest::rms_norm_divides_each_row_by_its_root_mean_square() {
  with_every_width([](auto type, const auto& kernels, std::size_t n) {
    using T = decltype(type);
    constexpr std::size_t kRows = 3;
    auto x = Buffer<T>::random(kRows * n, 1), weight = Buffer<T>::random(n, 2);
    Buffer<T> y(kRows * n);
    Buffer<float> inverse(kRows);

    kernels.rms_norm(x.data(), weight.data(), 1e-5f, kRows, i64(n), y.data(), inverse.data());

    const double error = sum_error(n) / 2 + 3 * kU;  // of the inverse, relative: a root halves it
    for (std::size_t row = 0; row < kRows; ++row) {
      double squares = 0;
      for (std::size_t i = 0; i < n; ++i) squares += x.at(row * n + i) * x.at(row * n + i);
      const double expected = 1 / std::sqrt(squares / static_cast<double>(n) + static_cast<double>(1e-5f));
      QVERIFY(near(inverse[row], expected, error * expected));
      for (std::size_t i = 0; i < n; ++i) {
        const double out = weight.at(i) * x.at(row * n + i) * expected;
        QVERIFY(near(y[row * n + i], out, (error + 2 * kU) * std::abs(out)));
      }
    }
    QVERIFY(y.intact() && inverse.intact());
  });
}

void ModelKernelsTest::rms_norm_backward_is_the_derivative_of_rms_norm() {
  with_every_width([](auto type, const auto& kernels, std::size_t n) {
    using T = decltype(type);
    constexpr std::size_t kRows = 3;
    auto dy = Buffer<T>::random(kRows * n, 1), x = Buffer<T>::random(kRows * n, 2),
         residual = Buffer<T>::random(kRows * n, 3);
    auto weight = Buffer<T>::random(n, 4);
    Buffer<float> inverse(kRows, 0.75f);
    for (const bool with_residual : {false, true}) {
      Buffer<T> dx(kRows * n);
      Buffer<float> partial(n, kNaN);
      std::vector<double> sums(n), magnitudes(n);

      kernels.rms_norm_backward(dy.data(), x.data(), weight.data(), inverse.data(),
                                with_residual ? residual.data() : nullptr, kRows, i64(n), dx.data(), partial.data());

      for (std::size_t row = 0; row < kRows; ++row) {
        double projection = 0, magnitude = 0;
        for (std::size_t i = row * n; i < (row + 1) * n; ++i) {
          projection += dy.at(i) * weight.at(i % n) * x.at(i);
          magnitude += std::abs(dy.at(i) * weight.at(i % n) * x.at(i));
        }
        const double shrink = 0.75 * 0.75 / static_cast<double>(n);
        for (std::size_t i = row * n; i < (row + 1) * n; ++i) {
          const double direct = dy.at(i) * weight.at(i % n) * 0.75;
          const double back = x.at(i) * 0.75 * shrink * projection;
          const double added = with_residual ? residual.at(i) : 0;
          const double from_sum = std::abs(x.at(i)) * 0.75 * shrink * sum_error(n) * magnitude;
          const double roundings = kU * (4 * std::abs(direct) + 8 * std::abs(back) + 2 * std::abs(added));
          QVERIFY(near(dx[i], direct - back + added, from_sum + roundings));
          sums[i % n] += dy.at(i) * x.at(i) * 0.75;
          magnitudes[i % n] += std::abs(dy.at(i) * x.at(i) * 0.75);
        }
      }
      for (std::size_t i = 0; i < n; ++i) QVERIFY(near(partial[i], sums[i], (kRows + 2) * kU * magnitudes[i]));
      QVERIFY(dx.intact() && partial.intact());
    }
  });
}

void ModelKernelsTest::rms_norm_backward_may_write_over_the_residual() {
  with_every_width([](auto type, const auto& kernels, std::size_t n) {
    using T = decltype(type);
    auto dy = Buffer<T>::random(2 * n, 1), x = Buffer<T>::random(2 * n, 2), residual = Buffer<T>::random(2 * n, 3);
    auto weight = Buffer<T>::random(n, 4);
    Buffer<float> inverse(2, 0.75f), partial(n);
    Buffer<T> apart(2 * n), in_place = residual;

    kernels.rms_norm_backward(dy.data(), x.data(), weight.data(), inverse.data(), residual.data(), 2, i64(n),
                              apart.data(), partial.data());
    kernels.rms_norm_backward(dy.data(), x.data(), weight.data(), inverse.data(), in_place.data(), 2, i64(n),
                              in_place.data(), partial.data());

    QVERIFY(in_place.same_bits(apart));
  });
}

void ModelKernelsTest::swiglu_is_silu_of_the_gate_times_up() {
  with_every_width([](auto type, const auto& kernels, std::size_t n) {
    using T = decltype(type);
    auto gate_up = Buffer<T>::random(2 * 2 * n, 1, 20.0f);  // gates of 4 deviations are where e^-gate ends
    Buffer<T> out(2 * n);

    kernels.swiglu(gate_up.data(), 2, i64(n), out.data());

    for (std::size_t i = 0; i < 2 * n; ++i) {
      const std::size_t at = i / n * 2 * n + i % n;
      const double gate = gate_up.at(at), up = gate_up.at(at + n);
      const double expected = gate / (1 + std::exp(-gate)) * up;
      QVERIFY(near(out[i], expected, (kExpError + 4 * kU) * std::abs(expected) + kTiny * std::abs(gate * up)));
    }
    QVERIFY(out.intact());
  });
}

void ModelKernelsTest::swiglu_backward_is_the_derivative_of_swiglu() {
  with_every_width([](auto type, const auto& kernels, std::size_t n) {
    using T = decltype(type);
    auto gate_up = Buffer<T>::random(2 * 2 * n, 1, 20.0f), dout = Buffer<T>::random(2 * n, 2);
    Buffer<T> dgate_up(2 * 2 * n);

    kernels.swiglu_backward(dout.data(), gate_up.data(), 2, i64(n), dgate_up.data());

    for (std::size_t i = 0; i < 2 * n; ++i) {
      const std::size_t at = i / n * 2 * n + i % n;
      const double gate = gate_up.at(at), up = gate_up.at(at + n), d = dout.at(i);
      const double sigmoid = 1 / (1 + std::exp(-gate)), silu = gate * sigmoid;
      const double slope = sigmoid + silu / (1 + std::exp(gate));
      // sigmoid: e^x, sum, quotient; silu one more; 1 - sigmoid is off by what sigmoid is off by, and multiplied by
      // silu
      const double slope_error = (kExpError + 3 * kU) * sigmoid + (2 * kExpError + 8 * kU) * std::abs(silu);
      const double gate_error =
          std::abs(d * up) * (slope_error + 2 * kU * std::abs(slope) + kTiny * (1 + std::abs(gate)));
      QVERIFY(near(dgate_up[at], d * up * slope, gate_error));
      const double up_error = (kExpError + 4 * kU) * std::abs(d * silu) + kTiny * std::abs(d * gate);
      QVERIFY(near(dgate_up[at + n], d * silu, up_error));
    }
    QVERIFY(dgate_up.intact());
  });
}

void ModelKernelsTest::swiglu_of_extreme_gates_is_their_limit() {
  with_every_implementation([](auto type, const auto& kernels) {
    using T = decltype(type);
    Buffer<T> gate_up(6, 1.0f), dout(3, 1.0f), out(3), dgate_up(6);
    gate_up[0] = as<T>(-1e38f);
    gate_up[1] = as<T>(1e38f);

    kernels.swiglu(gate_up.data(), 1, 3, out.data());
    kernels.swiglu_backward(dout.data(), gate_up.data(), 1, 3, dgate_up.data());

    QVERIFY(out.at(0) == 0);
    QVERIFY(out.at(1) == gate_up.at(1));
    QVERIFY(dgate_up.at(0) == 0);
    QVERIFY(dgate_up.at(1) == 1);
  });
}

void ModelKernelsTest::rope_turns_pairs_by_the_angle_and_back() {
  with_every_width([](auto type, const auto& kernels, std::size_t half) {
    using T = decltype(type);
    constexpr std::size_t kHeads = 3;
    Buffer<float> cosines(half), sines(half);
    for (std::size_t i = 0; i < half; ++i) {
      cosines[i] = std::cos(0.37f * static_cast<float>(i));
      sines[i] = std::sin(0.37f * static_cast<float>(i));
    }
    for (const float direction : {1.0f, -1.0f}) {
      const auto x = Buffer<T>::random(kHeads * 2 * half, 1);
      Buffer<T> turned = x;

      kernels.rope_row(turned.data(), cosines.data(), sines.data(), kHeads, i64(2 * half), direction);

      for (std::size_t i = 0; i < kHeads * half; ++i) {
        const std::size_t at = i / half * 2 * half + i % half;
        const double a = x.at(at), b = x.at(at + half), c = cosines.at(i % half);
        const double s = static_cast<double>(direction) * sines.at(i % half);
        QVERIFY(near(turned[at], a * c - b * s, 2 * kU * (std::abs(a * c) + std::abs(b * s))));
        QVERIFY(near(turned[at + half], b * c + a * s, 2 * kU * (std::abs(b * c) + std::abs(a * s))));
      }
      QVERIFY(turned.intact());
    }
  });
}

void ModelKernelsTest::cross_entropy_and_its_gradient_follow_their_formulas() {
  with_every_width([](auto type, const auto& kernels, std::size_t n) {
    using T = decltype(type);
    constexpr std::size_t kRows = 3;
    const double scale = 0.0625, max_z_loss = 0.03125;
    const auto logits = Buffer<T>::random(kRows * n, 1, 10.0f);
    Buffer<T> gradient = logits;
    const std::vector<std::int32_t> labels{0, static_cast<std::int32_t>(n - 1), static_cast<std::int32_t>(n / 2)};

    const LossSums sums = kernels.cross_entropy(gradient.data(), labels.data(), kRows, i64(n), 0.0625f, 0.03125f, true);

    double loss = 0, squares = 0, loss_error = 0;
    for (std::size_t row = 0; row < kRows; ++row) {
      const std::size_t first = row * n, label = first + static_cast<std::size_t>(labels[row]);
      std::size_t top = first;
      for (std::size_t i = first; i < first + n; ++i) top = logits.at(i) > logits.at(top) ? i : top;
      const double largest = logits.at(top);
      double total = 0, total_error = 0;
      for (std::size_t i = first; i < first + n; ++i) {
        const double exponent = logits.at(i) - largest;
        total += std::exp(exponent);
        total_error += std::exp(exponent) * (kExpError - exponent * kU);  // the difference is rounded
      }
      const double total_relative = total_error / total + sum_error(std::min(n, std::size_t{4096}));
      loss += std::log(total) + largest - logits.at(label);
      loss_error += total_relative + kU * (largest - logits.at(label)) + 1e-14 * loss;
      squares += largest * largest;
      for (std::size_t i = first; i < first + n; ++i) {
        const double exponent = logits.at(i) - largest, softmax = std::exp(exponent) / total;
        const double of_label = i == label ? scale : 0, of_largest = i == top ? 2 * scale * max_z_loss * largest : 0;
        const double error = scale * softmax * (kExpError - exponent * kU + total_relative + 3 * kU) +
                             3 * kU * (of_label + std::abs(of_largest)) + kTiny;
        QVERIFY(near(gradient[i], scale * softmax - of_label + of_largest, error));
      }
    }
    QVERIFY(std::abs(sums.cross_entropy - loss) <= loss_error);
    QVERIFY(std::abs(sums.squared_max_logit - squares) <= 1e-14 * squares);  // in fp64
    QVERIFY(gradient.intact());
  });
}

void ModelKernelsTest::cross_entropy_without_gradient_leaves_the_logits() {
  with_every_width([](auto type, const auto& kernels, std::size_t n) {
    using T = decltype(type);
    const auto before = Buffer<T>::random(2 * n, 1);
    Buffer<T> logits = before, gradient = before;
    const std::vector<std::int32_t> labels(2, 0);

    const LossSums without = kernels.cross_entropy(logits.data(), labels.data(), 2, i64(n), 1.0f, 0.5f, false);
    const LossSums with = kernels.cross_entropy(gradient.data(), labels.data(), 2, i64(n), 1.0f, 0.5f, true);

    QVERIFY(logits.same_bits(before));
    QVERIFY(without.cross_entropy == with.cross_entropy);
    QVERIFY(without.squared_max_logit == with.squared_max_logit);
  });
}

void ModelKernelsTest::a_row_without_a_label_counts_for_nothing() {
  with_every_width([](auto type, const auto& kernels, std::size_t n) {
    using T = decltype(type);
    const auto logits = Buffer<T>::random(2 * n, 1);
    Buffer<T> both = logits, first = logits;
    const std::vector<std::int32_t> labels{0, -1};

    const LossSums of_both = kernels.cross_entropy(both.data(), labels.data(), 2, i64(n), 1.0f, 0.5f, true);
    const LossSums of_first = kernels.cross_entropy(first.data(), labels.data(), 1, i64(n), 1.0f, 0.5f, true);

    QVERIFY(of_both.cross_entropy == of_first.cross_entropy);
    QVERIFY(of_both.squared_max_logit == of_first.squared_max_logit);
    for (std::size_t i = 0; i < n; ++i) {
      QVERIFY(both.at(i) == first.at(i));
      QVERIFY(both.at(n + i) == 0);
    }
    QVERIFY(both.intact());
  });
}

void ModelKernelsTest::the_first_of_the_largest_logits_gets_the_max_z_gradient() {
  with_every_implementation([](auto type, const auto& kernels) {
    using T = decltype(type);
    constexpr std::size_t kCount = 700;
    for (const std::size_t first : {0u, 5u, 300u, 698u}) {
      Buffer<T> plain(kCount, -1.0f);
      plain[first] = plain[kCount - 1] = as<T>(2.0f);
      Buffer<T> with_max_z = plain;
      const std::int32_t label = 5;

      kernels.cross_entropy(plain.data(), &label, 1, kCount, 1.0f, 0.0f, true);
      kernels.cross_entropy(with_max_z.data(), &label, 1, kCount, 1.0f, 0.25f, true);

      for (std::size_t i = 0; i < kCount; ++i) {
        if (i != first) QCOMPARE(bits_of(with_max_z[i]), bits_of(plain[i]));
      }
      // 2 * scale * coefficient * largest is 1; either gradient is rounded once, of a magnitude below 2
      const double bound = 2 * (std::is_same_v<T, float> ? 0x1p-24 : 0x1p-8) + 4 * kU;
      QVERIFY(std::abs(with_max_z.at(first) - plain.at(first) - 1) <= bound);
    }
  });
}

void ModelKernelsTest::a_masked_logit_has_probability_zero() {
  with_every_implementation([](auto type, const auto& kernels) {
    using T = decltype(type);
    Buffer<T> logits(37, -kInfinity);
    logits[3] = logits[36] = as<T>(1.0f);
    const std::int32_t label = 3;

    const LossSums sums = kernels.cross_entropy(logits.data(), &label, 1, 37, 1.0f, 0.0f, true);

    QVERIFY(std::abs(sums.cross_entropy - std::log(2.0)) <= 1e-15);
    for (std::size_t i = 0; i < 37; ++i) QVERIFY(logits.at(i) == (i == 3 ? -0.5 : i == 36 ? 0.5 : 0.0));
  });
}

void ModelKernelsTest::one_bad_logit_makes_the_loss_not_finite() {
  with_every_implementation([](auto type, const auto& kernels) {
    using T = decltype(type);
    for (const std::size_t n : {1u, 129u, 5000u}) {
      for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
        for (const float bad : {kNaN, -kNaN, kInfinity}) {
          auto logits = Buffer<T>::random(n, 1);
          logits[at] = as<T>(bad);
          const auto label = static_cast<std::int32_t>(n / 3);
          QVERIFY(
              !std::isfinite(kernels.cross_entropy(logits.data(), &label, 1, i64(n), 1.0f, 0.5f, false).cross_entropy));
          QVERIFY(
              !std::isfinite(kernels.cross_entropy(logits.data(), &label, 1, i64(n), 1.0f, 0.5f, true).cross_entropy));
          QVERIFY(logits.intact());
        }
      }
    }
  });
}

void ModelKernelsTest::one_nan_makes_its_row_not_finite() {
  with_every_width([](auto type, const auto& kernels, std::size_t n) {
    using T = decltype(type);
    const std::size_t bad = n + n / 2;  // in the second of two rows
    auto spoiled = Buffer<T>::random(2 * n, 1), sound = Buffer<T>::random(2 * n, 2), weight = Buffer<T>::random(n, 3);
    spoiled[bad] = as<T>(kNaN);
    Buffer<T> y(2 * n), dx(2 * n), activations(n), dgate_up(2 * n);
    Buffer<float> inverse(2), ones(2, 1.0f), partial(n);

    kernels.rms_norm(spoiled.data(), weight.data(), 1e-5f, 2, i64(n), y.data(), inverse.data());
    kernels.rms_norm_backward(spoiled.data(), sound.data(), weight.data(), ones.data(), nullptr, 2, i64(n), dx.data(),
                              partial.data());
    kernels.swiglu(spoiled.data(), 1, i64(n), activations.data());
    kernels.swiglu_backward(sound.data(), spoiled.data(), 1, i64(n), dgate_up.data());

    for (std::size_t i = 0; i < 2 * n; ++i) {
      QCOMPARE(std::isnan(y.at(i)), i >= n);
      QCOMPARE(std::isnan(dx.at(i)), i >= n);
    }
    for (std::size_t i = 0; i < n; ++i) {
      QCOMPARE(std::isnan(partial.at(i)), n + i == bad);
      QCOMPARE(std::isnan(activations.at(i)), n + i == bad);  // the spoiled one is an `up`
      QCOMPARE(std::isnan(dgate_up.at(i)), n + i == bad);
    }
  });
}

void ModelKernelsTest::embed_copies_and_its_backward_adds_rows_in_order() {
  with_every_width([](auto type, const auto& kernels, std::size_t n) {
    using T = decltype(type);
    const std::vector<std::int32_t> tokens{2, 0, 2, 2, 4};
    auto table = Buffer<T>::random(5 * n, 1), dx = Buffer<T>::random(5 * n, 2);
    Buffer<T> x(5 * n);
    auto gradient = Buffer<float>::random(5 * n, 3);
    Buffer<float> expected = gradient;
    for (std::size_t i = 0; i < 5 * n; ++i) {
      expected[static_cast<std::size_t>(tokens[i / n]) * n + i % n] += value_of(dx[i]);
    }

    kernels.embed(table.data(), tokens.data(), 5, i64(n), x.data());
    kernels.embed_backward(dx.data(), tokens.data(), 5, i64(n), gradient.data());

    for (std::size_t i = 0; i < 5 * n; ++i) {
      QCOMPARE(bits_of(x[i]), bits_of(table[static_cast<std::size_t>(tokens[i / n]) * n + i % n]));
    }
    QVERIFY(x.intact());
    QVERIFY(gradient.same_bits(expected));
  });
}

void ModelKernelsTest::adamw_follows_its_equations() {
  with_every_width([](auto, const auto& kernels, std::size_t n) {
    const AdamWStep step{0.999f, 0.02f, 1.5f, 0.5f, 0.9f, 0.95f, 1e-8f};
    const auto p = Buffer<float>::random(n, 1), g = Buffer<float>::random(n, 2), m = Buffer<float>::random(n, 3, 0.1f);
    Buffer<float> v = Buffer<float>::random(n, 4, 0.1f), gradients = g;
    for (std::size_t i = 0; i < n; ++i) v[i] = v[i] * v[i];
    Buffer<float> new_p = p, new_m = m, new_v = v, other_p = p, other_m = m, other_v = v;
    Buffer<Bf16> copy(n);

    kernels.adamw(new_p.data(), gradients.data(), new_m.data(), new_v.data(), copy.data(), i64(n), step);
    kernels.adamw(other_p.data(), gradients.data(), other_m.data(), other_v.data(), nullptr, i64(n), step);

    const double b1 = static_cast<double>(0.9f), b2 = static_cast<double>(0.95f);
    for (std::size_t i = 0; i < n; ++i) {
      const double gradient = 0.5 * g.at(i);
      const double first = m.at(i) + (1 - b1) * (gradient - m.at(i));
      const double second = b2 * v.at(i) + (1 - b2) * gradient * gradient;
      const double denominator = std::sqrt(second) * 1.5 + static_cast<double>(1e-8f);
      const double kept = p.at(i) * static_cast<double>(0.999f), rate = static_cast<double>(0.02f);
      const double first_error = 2 * kU * (std::abs(m.at(i)) + std::abs(gradient));
      QVERIFY(near(new_m[i], first, first_error));
      QVERIFY(near(new_v[i], second, 4 * kU * second));  // all its terms are positive
      const double update = rate * first / denominator;
      const double error = kU * std::abs(kept) + 9 * kU * std::abs(update) + rate * 2 * first_error / denominator;
      QVERIFY(near(new_p[i], kept - update, error));
      QCOMPARE(copy[i].bits, rounded(new_p[i]).bits);
    }
    QVERIFY(other_p.same_bits(new_p) && other_m.same_bits(new_m) && other_v.same_bits(new_v));
    QVERIFY(new_p.intact() && new_m.intact() && new_v.intact() && copy.intact());
  });
}

void ModelKernelsTest::adamw_leaves_padding_zero() {
  with_every_implementation([](auto, const auto& kernels) {
    Buffer<float> p(37), g(37), m(37), v(37);
    Buffer<Bf16> copy(37, 1.0f);

    kernels.adamw(p.data(), g.data(), m.data(), v.data(), copy.data(), 37,
                  {0.9f, 0.1f, 2.0f, 1.0f, 0.9f, 0.95f, 1e-8f});

    QVERIFY(p.same_bits(g) && m.same_bits(g) && v.same_bits(g));
    for (std::size_t i = 0; i < 37; ++i) QVERIFY(copy.at(i) == 0);
  });
}

void ModelKernelsTest::bf16_is_rounded_as_on_the_wire_and_widened_exactly() {
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t lower : {0x0u, 0x1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  values.push_back(1.0f);  // not a whole number of vectors
  for (const InstructionSet set : sets()) {
    Buffer<Bf16> halves(values.size());
    Buffer<float> widened(values.size());

    value_kernels(set).round_to_bf16(values.data(), i64(values.size()), halves.data());
    value_kernels(set).widen(halves.data(), i64(values.size()), widened.data());

    for (std::size_t i = 0; i < values.size(); ++i) {
      if (halves[i].bits != rounded(values[i]).bits) QCOMPARE(halves[i].bits, rounded(values[i]).bits);
      if (bits_of(widened[i]) >> 16 != halves[i].bits || (bits_of(widened[i]) & 0xffffu) != 0)
        QFAIL("not the same value");
    }
    QVERIFY(halves.intact() && widened.intact());
  }
}

void ModelKernelsTest::sum_of_squares_is_the_same_bits_from_every_instruction_set() {
  for (const std::size_t n : {0u, 1u, 15u, 16u, 17u, 10'007u}) {
    auto x = Buffer<float>::random(n, 1);
    double lanes[16] = {};
    for (std::size_t i = 0; i < n; ++i) lanes[i % 16] += x.at(i) * x.at(i);
    for (std::size_t half = 8; half > 0; half /= 2) {
      for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    }
    for (const InstructionSet set : sets()) {
      QCOMPARE(std::bit_cast<std::uint64_t>(value_kernels(set).sum_of_squares(x.data(), i64(n))),
               std::bit_cast<std::uint64_t>(lanes[0]));
    }
    if (n == 0) continue;
    x[n - 1] = kNaN;
    for (const InstructionSet set : sets()) QVERIFY(std::isnan(value_kernels(set).sum_of_squares(x.data(), i64(n))));
  }
}

void ModelKernelsTest::add_is_one_fp32_addition_a_value() {
  for (const InstructionSet set : sets()) {
    for (const std::size_t n : kWidths) {
      auto sum = Buffer<float>::random(n, 1), values = Buffer<float>::random(n, 2);
      Buffer<float> expected = sum;
      for (std::size_t i = 0; i < n; ++i) expected[i] += values[i];

      value_kernels(set).add(sum.data(), values.data(), i64(n));

      QVERIFY(sum.same_bits(expected));
    }
  }
}

QTEST_APPLESS_MAIN(ModelKernelsTest)
#include "model_kernels_test.moc"
