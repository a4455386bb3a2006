// Causal attention and its gradient against the textbook's formulas in fp64, by every kernel that this processor has.
#include "kernels/model/attention.h"

#include <QtTest>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <vector>

using namespace atl;

namespace {

constexpr double kUnit32 = 0x1p-24;  // half a unit in the last place of fp32, relative
template <class T>
constexpr double kUnit = sizeof(T) == 2 ? 0x1p-8 : kUnit32;

double value_of(float x) { return x; }
double value_of(Bf16 x) { return std::bit_cast<float>(std::uint32_t{x.bits} << 16); }
// To nearest even; NaN is not asked for.
template <class T>
T rounded(double value) {
  const auto single = static_cast<float>(value);
  if constexpr (std::is_same_v<T, Bf16>) {
    const auto bits = std::bit_cast<std::uint32_t>(single);
    return {static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
  } else {
    return single;
  }
}
template <class T>
T not_a_number() {
  if constexpr (std::is_same_v<T, Bf16>) return {0x7fc0};
  if constexpr (std::is_same_v<T, float>) return std::numeric_limits<float>::quiet_NaN();
}

// What an array should hold, and how far off each value may be, beside its rounding to T.
struct Expected {
  explicit Expected(std::int64_t numel)
      : values(static_cast<std::size_t>(numel)), bounds(static_cast<std::size_t>(numel)) {}
  void add(std::int64_t i, double value, double bound) {
    values[static_cast<std::size_t>(i)] += value;
    bounds[static_cast<std::size_t>(i)] += bound;
  }
  template <class T>
  QString difference(const std::vector<T>& computed) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double error = std::abs(value_of(computed[i]) - values[i]);
      // 1.05: what is of higher order in the units.
      const double bound = 1.05 * (bounds[i] + kUnit<T> * std::abs(values[i]));
      if (!(error <= bound)) return QString("[%1] is %2 off %3, not %4").arg(i).arg(error).arg(values[i]).arg(bound);
    }
    return {};
  }
  std::vector<double> values, bounds;
};

// A row of the scores' softmax in fp64, with what bounds the error of one in fp32.
struct SoftmaxRow {
  std::vector<double> p;
  double logsumexp = 0;
  // Of an exponent in the row, absolute: its score's sum, scaling, the largest score and logsumexp subtracted.
  double exponent_error = 0;
};

template <class T>
struct Problem {
  // document_begins: of each sequence, beside 0, as far as it reaches; none: each is one document.
  Problem(std::int64_t sequence_count, AttentionSizes of, std::uint32_t seed,
          const std::vector<std::int32_t>& document_begins = {})
      : sizes(of), sequences(sequence_count), rows(sequence_count * of.length) {
    for (std::int64_t i = 0; !document_begins.empty() && i < rows; ++i) {
      const auto place = static_cast<std::int32_t>(i % of.length);
      const bool begins = place == 0 || std::ranges::count(document_begins, place) > 0;
      starts.push_back(begins ? place : starts.back());
    }
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (std::int64_t i = 0; i < rows * sizes.qkv_columns(); ++i) qkv.push_back(rounded<T>(normal(random)));
    for (std::int64_t i = 0; i < rows * sizes.columns(); ++i) dout.push_back(rounded<T>(normal(random)));
    out.assign(dout.size(), not_a_number<T>());
    dqkv.assign(qkv.size(), not_a_number<T>());
    logsumexp.assign(static_cast<std::size_t>(sequences * sizes.heads * sizes.length), not_a_number<float>());
  }
  std::int64_t group() const { return sizes.heads / sizes.key_value_heads; }
  // Where head h's query of a row begins in qkv; its key and value.
  std::int64_t query(std::int64_t row, std::int64_t h) const { return row * sizes.qkv_columns() + h * sizes.head_dim; }
  std::int64_t key(std::int64_t row, std::int64_t h) const { return query(row, sizes.heads + h / group()); }
  std::int64_t value(std::int64_t row, std::int64_t h) const {
    return query(row, sizes.heads + sizes.key_value_heads + h / group());
  }
  std::int64_t output(std::int64_t row, std::int64_t h) const { return row * sizes.columns() + h * sizes.head_dim; }
  double at(std::int64_t i) const { return value_of(qkv[static_cast<std::size_t>(i)]); }
  double dout_at(std::int64_t i) const { return value_of(dout[static_cast<std::size_t>(i)]); }

  // The first place of its sequence that a row sees.
  std::int64_t begin(std::int64_t row) const { return starts.empty() ? 0 : starts[static_cast<std::size_t>(row)]; }

  const std::int32_t* documents() const { return starts.empty() ? nullptr : starts.data(); }
  AttentionPass<T> pass() { return {sizes, qkv.data(), out.data(), logsumexp.data(), documents()}; }
  AttentionBackwardPass<T> backward_pass() {
    return {sizes, dout.data(), qkv.data(), out.data(), logsumexp.data(), dqkv.data(), documents()};
  }

  SoftmaxRow softmax(std::int64_t first, std::int64_t i, std::int64_t h) const {
    SoftmaxRow row;
    double most = -std::numeric_limits<double>::infinity();
    double magnitude = 0;
    const double scale = 1 / std::sqrt(static_cast<double>(sizes.head_dim));
    for (std::int64_t j = begin(first + i); j <= i; ++j) {
      double score = 0;
      double magnitudes = 0;
      for (std::int64_t d = 0; d < sizes.head_dim; ++d) {
        const double product = at(query(first + i, h) + d) * at(key(first + j, h) + d);
        score += product;
        magnitudes += std::abs(product);
      }
      row.p.push_back(score * scale);
      most = std::max(most, score * scale);
      magnitude = std::max(magnitude, magnitudes * scale);
    }
    double sum = 0;
    for (double& p : row.p) sum += p = std::exp(p - most);
    for (double& p : row.p) p /= sum;
    row.logsumexp = most + std::log(sum);
    row.exponent_error = kUnit32 * (static_cast<double>(sizes.head_dim + 4) * magnitude +
                                    3 * (std::abs(most) + std::abs(row.logsumexp)) + 1);
    return row;
  }

  AttentionSizes sizes;
  std::int64_t sequences, rows;
  std::vector<T> qkv, dout, out, dqkv;
  std::vector<float> logsumexp;
  std::vector<std::int32_t> starts;
};

struct Forward {
  Expected out, logsumexp;
};
// An exponent's error is a probability's relative one, with four units of the exponential's own; it enters by p and by
// their sum. Sums over keys are off by a unit an addition at most; with T, a probability is rounded once more.
template <class T>
Forward expected_forward(const Problem<T>& problem) {
  const AttentionSizes& sizes = problem.sizes;
  Forward expected{Expected(problem.rows * sizes.columns()), Expected(problem.sequences * sizes.heads * sizes.length)};
  for (std::int64_t sequence = 0; sequence < problem.sequences; ++sequence) {
    const std::int64_t first = sequence * sizes.length;
    for (std::int64_t h = 0; h < sizes.heads; ++h) {
      for (std::int64_t i = 0; i < sizes.length; ++i) {
        const SoftmaxRow row = problem.softmax(first, i, h);
        const double of_p = row.exponent_error + 4 * kUnit32;
        const double of_sum = static_cast<double>(i + 8) * kUnit32;
        const std::int64_t begin = problem.begin(first + i);
        for (std::int64_t j = begin; j <= i; ++j) {
          const double p = row.p[static_cast<std::size_t>(j - begin)];
          for (std::int64_t d = 0; d < sizes.head_dim; ++d) {
            const double part = p * problem.at(problem.value(first + j, h) + d);
            expected.out.add(problem.output(first + i, h) + d, part,
                             std::abs(part) * (2 * of_p + 2 * of_sum + (sizeof(T) == 2 ? kUnit<T> : 0)));
          }
        }
        expected.logsumexp.add((sequence * sizes.heads + h) * sizes.length + i, row.logsumexp, of_p + of_sum);
      }
    }
  }
  return expected;
}

// One row's gradient of the scores by the softmax's Jacobian, and how far off a computed one may be. The mean of p dp
// is computed from `out` as it was rounded to T, p from logsumexp; dp is a sum over head_dim.
struct ScoreGradientRow {
  std::vector<double> ds, bounds;
};
template <class T>
ScoreGradientRow score_gradients(const Problem<T>& problem, const SoftmaxRow& row, std::int64_t first, std::int64_t i,
                                 std::int64_t h) {
  const std::int64_t head_dim = problem.sizes.head_dim;
  const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
  const double of_sum = static_cast<double>(head_dim + 2) * kUnit32;
  std::vector<double> dp, dp_bounds;
  double mean = 0;
  double mean_bound = 0;
  const std::int64_t begin = problem.begin(first + i);
  for (std::int64_t j = begin; j <= i; ++j) {
    double sum = 0;
    double magnitudes = 0;
    for (std::int64_t d = 0; d < head_dim; ++d) {
      const double part =
          problem.dout_at(problem.output(first + i, h) + d) * problem.at(problem.value(first + j, h) + d);
      sum += part;
      magnitudes += std::abs(part);
    }
    dp.push_back(sum);
    dp_bounds.push_back(magnitudes * of_sum);
    mean += row.p[static_cast<std::size_t>(j - begin)] * sum;
  }
  for (std::int64_t d = 0; d < head_dim; ++d) {
    const auto o = static_cast<std::size_t>(problem.output(first + i, h) + d);
    mean_bound += std::abs(value_of(problem.dout[o]) * value_of(problem.out[o])) * (1.01 * kUnit<T> + of_sum);
  }
  ScoreGradientRow gradient;
  for (std::size_t j = 0; j < dp.size(); ++j) {
    const double p = row.p[j] * scale;
    gradient.ds.push_back(p * (dp[j] - mean));
    gradient.bounds.push_back(
        p * ((row.exponent_error + 8 * kUnit32 + kUnit<T>)*std::abs(dp[j] - mean) + dp_bounds[j] + mean_bound));
  }
  return gradient;
}

// With out and logsumexp of the problem as they should be, rounded.
template <class T>
Expected expected_backward(const Problem<T>& problem) {
  const AttentionSizes& sizes = problem.sizes;
  Expected dqkv(problem.rows * sizes.qkv_columns());
  // Additions on the way of one term into a sum: over keys, or over the rows of the group's heads.
  const double of_sum = static_cast<double>(problem.group() * sizes.length + 2) * kUnit32;
  for (std::int64_t sequence = 0; sequence < problem.sequences; ++sequence) {
    const std::int64_t first = sequence * sizes.length;
    for (std::int64_t h = 0; h < sizes.heads; ++h) {
      for (std::int64_t i = 0; i < sizes.length; ++i) {
        const SoftmaxRow row = problem.softmax(first, i, h);
        const ScoreGradientRow gradient = score_gradients(problem, row, first, i, h);
        const std::int64_t begin = problem.begin(first + i);
        for (std::int64_t j = begin; j <= i; ++j) {
          const double p = row.p[static_cast<std::size_t>(j - begin)];
          const double ds = gradient.ds[static_cast<std::size_t>(j - begin)];
          const double ds_bound = gradient.bounds[static_cast<std::size_t>(j - begin)] + std::abs(ds) * of_sum;
          const double p_bound = p * (row.exponent_error + 5 * kUnit32 + kUnit<T> + of_sum);
          for (std::int64_t d = 0; d < sizes.head_dim; ++d) {
            const double q = problem.at(problem.query(first + i, h) + d);
            const double k = problem.at(problem.key(first + j, h) + d);
            const double dout = problem.dout_at(problem.output(first + i, h) + d);
            dqkv.add(problem.query(first + i, h) + d, ds * k, ds_bound * std::abs(k));
            dqkv.add(problem.key(first + j, h) + d, ds * q, ds_bound * std::abs(q));
            dqkv.add(problem.value(first + j, h) + d, p * dout, p_bound * std::abs(dout));
          }
        }
      }
    }
  }
  return dqkv;
}

// As much as is asked for, full of NaN, with a guard behind it.
class Scratch {
 public:
  explicit Scratch(const AttentionSizes& sizes)
      : bytes_(attention_scratch_bytes(sizes)),
        data_(static_cast<std::byte*>(std::aligned_alloc(64, static_cast<std::size_t>(bytes_ + 64) / 64 * 64 + 64))) {
    std::fill_n(data_.get(), bytes_ + 64, std::byte{0xff});
  }
  std::byte* data() const { return data_.get(); }
  bool guard_is_untouched() const {
    return std::all_of(data() + bytes_, data() + bytes_ + 64, [](std::byte b) { return b == std::byte{0xff}; });
  }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::int64_t bytes_;
  std::unique_ptr<std::byte, Free> data_;
};

template <class T>
void run_forward(Problem<T>& problem, GemmKernel kernel, const Scratch& scratch) {
  for (std::int64_t sequence = 0; sequence < problem.sequences; ++sequence) {
    for (std::int64_t h = 0; h < problem.sizes.heads; ++h) {
      attention_head(problem.pass(), sequence, h, scratch.data(), reference_sgemm, kernel);
    }
  }
}
template <class T>
void run_backward(Problem<T>& problem, GemmKernel kernel, const Scratch& scratch) {
  for (std::int64_t sequence = 0; sequence < problem.sequences; ++sequence) {
    for (std::int64_t h = 0; h < problem.sizes.key_value_heads; ++h) {
      attention_backward_group(problem.backward_pass(), sequence, h, scratch.data(), reference_sgemm, kernel);
    }
  }
}

template <class T>
void take_forward(Problem<T>& problem, const Forward& expected) {
  std::ranges::transform(expected.out.values, problem.out.begin(), rounded<T>);
  std::ranges::transform(expected.logsumexp.values, problem.logsumexp.begin(), rounded<float>);
}

struct Shape {
  std::int64_t sequences;
  AttentionSizes sizes;
  std::vector<std::int32_t> document_begins = {};
};
// Lengths about the edges of tiles; groups of 1, 2 and 3 heads; dimensions of no, one and two vectors and a rest.
const Shape kShapes[] = {{2, {1, 2, 2, 8}},    {3, {5, 3, 1, 7}},    {1, {64, 4, 2, 32}},
                         {2, {129, 2, 1, 20}}, {1, {300, 3, 3, 24}}, {1, {300, 2, 1, 40}}};
// Of a single token, at the end too; of a tile of queries and one more; of the rest.
const Shape kDocuments{2, {200, 2, 1, 20}, {1, 2, 67, 132, 199}};
// More keys than one tile's.
const Shape kLong{1, {2 * kAttentionKeys + 77, 2, 1, 4}};
const Shape kLongDocument{1, {2 * kAttentionKeys + 77, 2, 1, 4}, {30}};

template <class T>
QString first_forward_difference(const Shape& shape, GemmKernel kernel) {
  Problem<T> problem(shape.sequences, shape.sizes, 3, shape.document_begins);
  const Forward expected = expected_forward(problem);
  const Scratch scratch(shape.sizes);
  run_forward(problem, kernel, scratch);
  if (!scratch.guard_is_untouched()) return "written beyond scratch";
  const QString difference = expected.out.difference(problem.out);
  return difference.isEmpty() ? expected.logsumexp.difference(problem.logsumexp) : "out" + difference;
}

template <class T>
QString first_backward_difference(const Shape& shape, GemmKernel kernel) {
  Problem<T> problem(shape.sequences, shape.sizes, 4, shape.document_begins);
  take_forward(problem, expected_forward(problem));
  const Scratch scratch(shape.sizes);
  run_backward(problem, kernel, scratch);
  return scratch.guard_is_untouched() ? expected_backward(problem).difference(problem.dqkv) : "written beyond scratch";
}

void kernels() {
  QTest::addColumn<int>("kernel");
  const char* const names[] = {"plain", "avx2", "avx512", "avx512bf16"};
  for (const GemmKernel kernel : kGemmKernels)
    QTest::newRow(names[static_cast<int>(kernel)]) << static_cast<int>(kernel);
}

}  // namespace

#define SKIP_WHAT_IS_LACKING(kernel)               \
  QFETCH(int, kernel);                             \
  const auto by = static_cast<GemmKernel>(kernel); \
  if (!processor_has(by)) QSKIP("this processor lacks it")

class AttentionTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void output_and_logsumexp_are_as_near_as_their_sums_can_be_data() { kernels(); }
  void output_and_logsumexp_are_as_near_as_their_sums_can_be();
  void gradients_are_as_near_as_their_sums_can_be_data() { kernels(); }
  void gradients_are_as_near_as_their_sums_can_be();
  void many_keys_go_tile_by_tile_data() { kernels(); }
  void many_keys_go_tile_by_tile();
  void documents_see_nothing_of_each_other_data() { kernels(); }
  void documents_see_nothing_of_each_other();
  void a_document_is_computed_as_if_it_were_alone_data() { kernels(); }
  void a_document_is_computed_as_if_it_were_alone();
  void a_head_writes_nothing_but_its_own_data() { kernels(); }
  void a_head_writes_nothing_but_its_own();
  void what_comes_later_has_no_say_data() { kernels(); }
  void what_comes_later_has_no_say();
  void large_scores_do_not_overflow_data() { kernels(); }
  void large_scores_do_not_overflow();
};

void AttentionTest::output_and_logsumexp_are_as_near_as_their_sums_can_be() {
  SKIP_WHAT_IS_LACKING(kernel);
  for (const Shape& shape : kShapes) {
    QCOMPARE(first_forward_difference<float>(shape, by), QString());
    QCOMPARE(first_forward_difference<Bf16>(shape, by), QString());
  }
}

void AttentionTest::gradients_are_as_near_as_their_sums_can_be() {
  SKIP_WHAT_IS_LACKING(kernel);
  for (const Shape& shape : kShapes) {
    QCOMPARE(first_backward_difference<float>(shape, by), QString());
    QCOMPARE(first_backward_difference<Bf16>(shape, by), QString());
  }
}

void AttentionTest::many_keys_go_tile_by_tile() {
  SKIP_WHAT_IS_LACKING(kernel);
  QCOMPARE(first_forward_difference<float>(kLong, by), QString());
  QCOMPARE(first_forward_difference<Bf16>(kLong, by), QString());
  QCOMPARE(first_backward_difference<float>(kLong, by), QString());
  QCOMPARE(first_backward_difference<Bf16>(kLong, by), QString());
}

void AttentionTest::documents_see_nothing_of_each_other() {
  SKIP_WHAT_IS_LACKING(kernel);
  for (const Shape& shape : {kDocuments, kLongDocument}) {
    QCOMPARE(first_forward_difference<float>(shape, by), QString());
    QCOMPARE(first_forward_difference<Bf16>(shape, by), QString());
    QCOMPARE(first_backward_difference<float>(shape, by), QString());
    QCOMPARE(first_backward_difference<Bf16>(shape, by), QString());
  }
}

// To the bit: rows 67 to 131 of the documents' shape as a sequence of their own.
void AttentionTest::a_document_is_computed_as_if_it_were_alone() {
  SKIP_WHAT_IS_LACKING(kernel);
  constexpr std::int64_t kBegin = 67, kCount = 65;
  Problem<Bf16> packed(1, kDocuments.sizes, 8, kDocuments.document_begins);
  Problem<Bf16> alone(1, {kCount, kDocuments.sizes.heads, kDocuments.sizes.key_value_heads, kDocuments.sizes.head_dim},
                      8);
  const std::int64_t qkv = packed.sizes.qkv_columns() * kBegin, out = packed.sizes.columns() * kBegin;
  std::copy_n(packed.qkv.begin() + qkv, alone.qkv.size(), alone.qkv.begin());
  std::copy_n(packed.dout.begin() + out, alone.dout.size(), alone.dout.begin());

  for (Problem<Bf16>* problem : {&packed, &alone}) {
    const Scratch scratch(problem->sizes);
    run_forward(*problem, by, scratch);
    run_backward(*problem, by, scratch);
  }

  const auto same = [](Bf16 a, Bf16 b) { return a.bits == b.bits; };
  QVERIFY(std::equal(alone.out.begin(), alone.out.end(), packed.out.begin() + out, same));
  QVERIFY(std::equal(alone.dqkv.begin(), alone.dqkv.end(), packed.dqkv.begin() + qkv, same));
}

// Head 1 of 3, key and value head 1 of 3, of the second of two sequences.
void AttentionTest::a_head_writes_nothing_but_its_own() {
  SKIP_WHAT_IS_LACKING(kernel);
  Problem<Bf16> problem(2, {70, 3, 3, 9}, 5);
  const Scratch scratch(problem.sizes);

  attention_head(problem.pass(), 1, 1, scratch.data(), reference_sgemm, by);
  attention_backward_group(problem.backward_pass(), 1, 1, scratch.data(), reference_sgemm, by);

  for (std::int64_t i = 0; i < std::ssize(problem.out); ++i) {
    const bool own = i / 27 >= 70 && i % 27 / 9 == 1;
    QCOMPARE(std::isnan(value_of(problem.out[static_cast<std::size_t>(i)])), !own);
  }
  for (std::int64_t i = 0; i < std::ssize(problem.dqkv); ++i) {
    const bool own = i / 81 >= 70 && i % 81 / 9 % 3 == 1;
    QCOMPARE(std::isnan(value_of(problem.dqkv[static_cast<std::size_t>(i)])), !own);
  }
  for (std::int64_t i = 0; i < std::ssize(problem.logsumexp); ++i) {
    QCOMPARE(std::isnan(problem.logsumexp[static_cast<std::size_t>(i)]), i / 70 != 4);
  }
}

void AttentionTest::what_comes_later_has_no_say() {
  SKIP_WHAT_IS_LACKING(kernel);
  Problem<Bf16> problem(1, {100, 1, 1, 16}, 6);
  const Scratch scratch(problem.sizes);
  run_forward(problem, by, scratch);
  const std::vector<Bf16> before = problem.out;

  std::ranges::fill(problem.qkv.begin() + 77 * 48, problem.qkv.end(), rounded<Bf16>(3));
  run_forward(problem, by, scratch);

  const auto same = [](Bf16 a, Bf16 b) { return a.bits == b.bits; };
  QVERIFY(std::equal(before.begin(), before.begin() + 77 * 16, problem.out.begin(), same));
  QVERIFY(!std::equal(before.begin() + 77 * 16, before.end(), problem.out.begin() + 77 * 16, same));
}

// Scores of some thousands: e to any of them is beyond fp32, unless the largest is subtracted first.
void AttentionTest::large_scores_do_not_overflow() {
  SKIP_WHAT_IS_LACKING(kernel);
  Problem<float> problem(1, {90, 1, 1, 16}, 7);
  for (float& x : problem.qkv) x *= 64;
  const Forward expected = expected_forward(problem);
  const Scratch scratch(problem.sizes);

  run_forward(problem, by, scratch);

  QCOMPARE(expected.out.difference(problem.out), QString());
  QCOMPARE(expected.logsumexp.difference(problem.logsumexp), QString());
}

QTEST_APPLESS_MAIN(AttentionTest)
#include "attention_test.moc"
