// Matrix products in Bf16 and fp32, by every kernel that this processor has.
#include "kernels/model/gemm.h"

#include <QtTest>
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace atl;

namespace {

constexpr double kUnit32 = 0x1p-24;  // half a unit in the last place of fp32, relative
constexpr double kUnit16 = 0x1p-8;   // of Bf16

float widened(Bf16 value) { return std::bit_cast<float>(std::uint32_t{value.bits} << 16); }
float widened(float value) { return value; }
// To nearest even; NaN is not asked for.
template <class T>
T rounded(float value) {
  if constexpr (std::is_same_v<T, Bf16>) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return {static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
  } else {
    return value;
  }
}

// Rows of `columns` values, each row followed by three that are no part of the matrix.
template <class T>
struct Matrix {
  Matrix(std::int64_t row_count, std::int64_t column_count)
      : rows(row_count), columns(column_count), values(static_cast<std::size_t>(rows * ld()), rounded<T>(kOutside)) {}
  static constexpr float kOutside = 77;
  std::int64_t ld() const { return columns + 3; }
  T& at(std::int64_t i, std::int64_t j) { return values[static_cast<std::size_t>(i * ld() + j)]; }
  double value(std::int64_t i, std::int64_t j) const { return widened(values[static_cast<std::size_t>(i * ld() + j)]); }
  template <class Value>
  Matrix& fill(Value next) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) at(i, j) = rounded<T>(static_cast<float>(next()));
    }
    return *this;
  }
  bool outside_is_untouched() const {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = columns; j < ld(); ++j) {
        if (value(i, j) != kOutside) return false;
      }
    }
    return true;
  }

  std::int64_t rows, columns;
  std::vector<T> values;
};

enum class Plus { kNothing, kAdd, kHeld };

// Operands of one product; op(a) is [m, k], op(b) [k, n].
template <class T, class Out>
struct Case {
  template <class Value>
  Case(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, Plus what, Value next)
      : transposes_a(transpose_a),
        transposes_b(transpose_b),
        depth(k),
        plus(what),
        a(transpose_a ? k : m, transpose_a ? m : k),
        b(transpose_b ? n : k, transpose_b ? k : n),
        add(m, n),
        held(m, n),
        c(m, n) {
    a.fill(next);
    b.fill(next);
    add.fill(next);
    held.fill(next);
    c = held;
  }
  Gemm<T, Out> gemm() {
    return {.transpose_a = transposes_a,
            .transpose_b = transposes_b,
            .m = c.rows,
            .n = c.columns,
            .k = depth,
            .a = a.values.data(),
            .lda = a.ld(),
            .b = b.values.data(),
            .ldb = b.ld(),
            .c = c.values.data(),
            .ldc = c.ld(),
            .add = plus == Plus::kAdd ? add.values.data() : nullptr,
            .ld_add = add.ld(),
            .accumulate = plus == Plus::kHeld};
  }
  double product(std::int64_t i, std::int64_t j, std::int64_t p) const {
    return (transposes_a ? a.value(p, i) : a.value(i, p)) * (transposes_b ? b.value(j, p) : b.value(p, j));
  }
  double addend(std::int64_t i, std::int64_t j) const {
    return plus == Plus::kAdd ? add.value(i, j) : plus == Plus::kHeld ? held.value(i, j) : 0;
  }
  double exact(std::int64_t i, std::int64_t j) const {
    double sum = addend(i, j);
    for (std::int64_t p = 0; p < depth; ++p) sum += product(i, j, p);
    return sum;
  }
  // Products are exact in fp32 where operands are Bf16, else off by one unit; each then takes part in at most k
  // additions, and one more of the addend; with Out, the result is rounded once. Of higher order: one percent.
  double bound(std::int64_t i, std::int64_t j) const {
    double magnitudes = std::abs(addend(i, j));
    for (std::int64_t p = 0; p < depth; ++p) magnitudes += std::abs(product(i, j, p));
    const double sums = 1.01 * static_cast<double>(depth + 2) * kUnit32 * magnitudes;
    return sums + (sizeof(Out) == 2 ? kUnit16 * (std::abs(exact(i, j)) + sums) : 0);
  }
  QString difference() const {
    if (!c.outside_is_untouched()) return "written beyond a row";
    for (std::int64_t i = 0; i < c.rows; ++i) {
      for (std::int64_t j = 0; j < c.columns; ++j) {
        const double error = std::abs(c.value(i, j) - exact(i, j));
        if (!(error <= bound(i, j))) {
          return QString("[%1, %2] %3 is %4 off, not %5").arg(i).arg(j).arg(c.value(i, j)).arg(error).arg(bound(i, j));
        }
      }
    }
    return {};
  }

  bool transposes_a, transposes_b;
  std::int64_t depth;
  Plus plus;
  Matrix<T> a, b;
  Matrix<Out> add, held, c;
};

struct Sizes {
  std::int64_t m, n, k;
};
// About the edges of tiles of 6, 12 and 14 rows, of 8, 16 and 32 columns; pairs of k; more than one block of k or n.
constexpr Sizes kSizes[] = {{1, 1, 1},   {1, 33, 7},   {13, 15, 64},  {14, 32, 33},   {15, 31, 130},   {29, 17, 2},
                            {6, 16, 31}, {43, 257, 5}, {3, 530, 700}, {20, 40, 1025}, {300, 18, 1300}, {2, 4100, 129}};

void kernels() {
  QTest::addColumn<int>("kernel");
  const char* const names[] = {"plain", "avx2", "avx512", "avx512bf16"};
  for (const GemmKernel kernel : kGemmKernels)
    QTest::newRow(names[static_cast<int>(kernel)]) << static_cast<int>(kernel);
}

auto normal_values(std::uint32_t seed) {
  return [random = std::mt19937(seed), normal = std::normal_distribution<float>()]() mutable { return normal(random); };
}

// What product fails on what sizes, if one does. Multiply: on a Gemm.
template <class T, class Out, class Multiply>
QString first_difference(Multiply multiply_by) {
  std::uint32_t seed = 0;
  for (const Sizes& sizes : kSizes) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        const Plus plus = std::array{Plus::kNothing, Plus::kAdd, Plus::kHeld}[seed % 3];
        Case<T, Out> product(transpose_a, transpose_b, sizes.m, sizes.n, sizes.k, plus, normal_values(++seed));
        multiply_by(product.gemm());
        const QString difference = product.difference();
        if (difference.isEmpty()) continue;
        return QString("%1 x %2 x %3, transposed %4 %5: ")
                   .arg(sizes.m)
                   .arg(sizes.n)
                   .arg(sizes.k)
                   .arg(transpose_a)
                   .arg(transpose_b) +
               difference;
      }
    }
  }
  return {};
}

}  // namespace

#define SKIP_WHAT_IS_LACKING(kernel)               \
  QFETCH(int, kernel);                             \
  const auto by = static_cast<GemmKernel>(kernel); \
  if (!processor_has(by)) QSKIP("this processor lacks it")

class GemmTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void bf16_products_are_as_near_as_fp32_sums_can_be_data() { kernels(); }
  void bf16_products_are_as_near_as_fp32_sums_can_be();
  void fp32_products_add_what_they_are_given();
  void whole_numbers_are_rounded_once_to_nearest_even_data() { kernels(); }
  void whole_numbers_are_rounded_once_to_nearest_even();
  void dividing_rows_and_columns_changes_no_bit_data() { kernels(); }
  void dividing_rows_and_columns_changes_no_bit();
  void infinity_stays_in_its_row_and_column_data() { kernels(); }
  void infinity_stays_in_its_row_and_column();
  void a_product_over_nothing_is_what_is_added_data() { kernels(); }
  void a_product_over_nothing_is_what_is_added();
  void the_addend_may_be_the_output_data() { kernels(); }
  void the_addend_may_be_the_output();
};

void GemmTest::bf16_products_are_as_near_as_fp32_sums_can_be() {
  SKIP_WHAT_IS_LACKING(kernel);
  const auto multiply_by = [&](const auto& gemm) { multiply(gemm, by); };

  QCOMPARE((first_difference<Bf16, Bf16>(multiply_by)), QString());
  QCOMPARE((first_difference<Bf16, float>(multiply_by)), QString());
}

void GemmTest::fp32_products_add_what_they_are_given() {
  QCOMPARE((first_difference<float, float>([](const auto& gemm) { multiply(gemm, reference_sgemm); })), QString());
}

// Sums of whole numbers below 2^24 are exact in any order, so that there is one right result.
void GemmTest::whole_numbers_are_rounded_once_to_nearest_even() {
  SKIP_WHAT_IS_LACKING(kernel);
  std::mt19937 random(5);
  const auto whole = [&] { return static_cast<float>(static_cast<int>(random() % 17) - 8); };
  for (const Plus plus : {Plus::kNothing, Plus::kAdd, Plus::kHeld}) {
    for (const std::int64_t k : {3, 61, 2100}) {
      Case<Bf16, Bf16> product(false, true, 31, 45, k, plus, whole);

      multiply(product.gemm(), by);

      for (std::int64_t i = 0; i < 31; ++i) {
        for (std::int64_t j = 0; j < 45; ++j) {
          QCOMPARE(product.c.at(i, j).bits, rounded<Bf16>(static_cast<float>(product.exact(i, j))).bits);
        }
      }
    }
  }
}

// As many rows, columns and values of k as are cut into blocks where the whole is multiplied, but not in all parts.
void GemmTest::dividing_rows_and_columns_changes_no_bit() {
  SKIP_WHAT_IS_LACKING(kernel);
  for (const bool transpose_a : {false, true}) {
    Case<Bf16, Bf16> product(transpose_a, false, 450, 500, 1101, Plus::kHeld, normal_values(9));
    const Gemm<Bf16, Bf16> whole = product.gemm();
    multiply(whole, by);
    const Matrix<Bf16> expected = product.c;

    product.c = product.held;
    for (const auto& [m0, m1] : {std::pair{0, 5}, std::pair{5, 230}, std::pair{230, 450}}) {
      for (const auto& [n0, n1] : {std::pair{0, 35}, std::pair{35, 36}, std::pair{36, 500}}) {
        Gemm<Bf16, Bf16> part = whole;
        part.m = m1 - m0;
        part.n = n1 - n0;
        part.a += transpose_a ? m0 : m0 * part.lda;
        part.b += n0;
        part.c = product.c.values.data() + m0 * part.ldc + n0;
        multiply(part, by);
      }
    }

    QVERIFY(std::ranges::equal(product.c.values, expected.values, {}, &Bf16::bits, &Bf16::bits));
  }
}

// Padding of tiles and of pairs must not meet a value: infinity times its zeros would be NaN.
void GemmTest::infinity_stays_in_its_row_and_column() {
  SKIP_WHAT_IS_LACKING(kernel);
  for (const bool transposed : {false, true}) {
    Case<Bf16, float> product(transposed, transposed, 15, 33, 7, Plus::kNothing, normal_values(11));
    const float infinity = std::numeric_limits<float>::infinity();
    (transposed ? product.a.at(6, 14) : product.a.at(14, 6)) = rounded<Bf16>(infinity);
    (transposed ? product.b.at(32, 6) : product.b.at(6, 32)) = rounded<Bf16>(infinity);

    multiply(product.gemm(), by);

    for (std::int64_t i = 0; i < 15; ++i) {
      for (std::int64_t j = 0; j < 33; ++j) QCOMPARE(std::isinf(product.c.at(i, j)), i == 14 || j == 32);
    }
  }
}

void GemmTest::a_product_over_nothing_is_what_is_added() {
  SKIP_WHAT_IS_LACKING(kernel);
  for (const Plus plus : {Plus::kNothing, Plus::kAdd, Plus::kHeld}) {
    Case<Bf16, Bf16> product(false, false, 9, 35, 0, plus, normal_values(12));

    multiply(product.gemm(), by);

    for (std::int64_t i = 0; i < 9; ++i) {
      for (std::int64_t j = 0; j < 35; ++j) QCOMPARE(product.c.value(i, j), product.addend(i, j));
    }
  }
}

void GemmTest::the_addend_may_be_the_output() {
  SKIP_WHAT_IS_LACKING(kernel);
  for (const std::int64_t k : {40, 1500}) {
    Case<Bf16, Bf16> product(false, false, 33, 50, k, Plus::kAdd, normal_values(13));
    multiply(product.gemm(), by);
    const Matrix<Bf16> expected = product.c;

    product.c = product.add;
    Gemm<Bf16, Bf16> in_place = product.gemm();
    in_place.add = in_place.c;
    multiply(in_place, by);

    for (std::int64_t i = 0; i < 33; ++i) {
      for (std::int64_t j = 0; j < 50; ++j) QCOMPARE(product.c.value(i, j), expected.value(i, j));
    }
  }
}

QTEST_APPLESS_MAIN(GemmTest)
#include "gemm_test.moc"
