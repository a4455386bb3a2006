// Every operation on this processor as its definition has it (net/step/operation.h), in both types, with the same bits
// from any number of threads, but for the library's products of fp32; and nothing is written but what an operation says
// that it writes.
#include "trainer/device/cpu_device.h"

#include <QtTest>
#include <limits>

#include "net/step/traits.h"
#include "tests/trainer/operation_lab.h"
#include "trainer/device/cpu_device_group.h"
#include "trainer/engine/rank_threads.h"

Q_DECLARE_METATYPE(atl::DType)

namespace {

using namespace atl;
using namespace atl::test;

// Rows and values are divided among threads by 64 and 65,536: these are neither.
constexpr std::int64_t kRows = 150, kValues = 140'000;

// Of two sequences, whose documents begin at these places.
Tensor document_starts(Lab& lab) {
  std::vector<double> starts;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const auto place = static_cast<double>(row % (kRows / 2));
    const bool begins = place == 0 || place == 1 || place == (row < kRows / 2 ? 30 : 66);
    starts.push_back(begins ? place : starts.back());
  }
  return lab.add(DType::kInt32, 1, kRows, starts);
}

// fp32 sums of some hundred terms, each of 6e-8; in bf16 the one rounding of what is written, and so many more inside.
double tolerance_of(DType dtype, int inner_roundings = 0) {
  return dtype == DType::kBfloat16 ? (1 + inner_roundings) * 0x1p-8 : 1e-5;
}

#define QVERIFY_NOTHING_WRONG(check)                \
  do {                                              \
    const QString wrong_ = (check);                 \
    QVERIFY2(wrong_.isEmpty(), qPrintable(wrong_)); \
  } while (false)

}  // namespace

class CpuDeviceTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void values_are_filled_and_rounded();
  void rows_are_embedded_and_added_up_data() { both_types(); }
  void rows_are_embedded_and_added_up();
  void rows_are_normalised_data() { both_types(); }
  void rows_are_normalised();
  void norms_go_backward_data() { both_types(); }
  void norms_go_backward();
  void matrices_are_multiplied_data();
  void matrices_are_multiplied();
  void pairs_are_turned_data() { both_types(); }
  void pairs_are_turned();
  void attention_and_its_gradient_follow_their_formulas_data() { both_types(); }
  void attention_and_its_gradient_follow_their_formulas();
  void gates_and_their_gradient_follow_their_formulas_data() { both_types(); }
  void gates_and_their_gradient_follow_their_formulas();
  void losses_are_added_up_data() { both_types(); }
  void losses_are_added_up();
  void clipping_bounds_the_norm_and_never_enlarges_data();
  void clipping_bounds_the_norm_and_never_enlarges();
  void adamw_follows_its_equations_data();
  void adamw_follows_its_equations();
  void a_step_that_is_not_applied_changes_nothing();
  void ranks_share_and_add();
  void memory_that_there_is_not_is_refused();

 private:
  static void both_types() {
    QTest::addColumn<DType>("type");
    QTest::newRow("fp32") << DType::kFloat32;
    QTest::newRow("bf16") << DType::kBfloat16;
  }
};

void CpuDeviceTest::values_are_filled_and_rounded() {
  Lab lab;
  const Tensor x = lab.random(DType::kFloat32, 1, kValues);
  const Tensor rounded = lab.random(DType::kBfloat16, 1, kValues);
  const Tensor sums = lab.random(DType::kFloat64, 1, 3);

  QVERIFY_NOTHING_WRONG(lab.check(Fill{x.view(5, 1, 1000), 2.5f}, {x}, 0));
  QVERIFY_NOTHING_WRONG(lab.check(Fill{rounded.view(5, 1, 1000)}, {rounded}, 0));
  QVERIFY_NOTHING_WRONG(lab.check(Fill{sums}, {sums}, 0));
  QVERIFY_NOTHING_WRONG(lab.check(Convert{x, rounded}, {rounded}, tolerance_of(DType::kBfloat16)));
}

void CpuDeviceTest::rows_are_embedded_and_added_up() {
  QFETCH(const DType, type);
  Lab lab;
  const Tensor table = lab.random(type, 30, 48), tokens = lab.integers(kRows, 30), order = lab.order_of(tokens);
  const Tensor x = lab.random(type, kRows, 48), gradient = lab.random(DType::kFloat32, 30, 48);

  QVERIFY_NOTHING_WRONG(lab.check(Embed{table, tokens, x}, {x}, 0));
  QVERIFY_NOTHING_WRONG(lab.check(EmbedBackward{x, tokens, order, gradient}, {gradient}, 1e-6));
}

void CpuDeviceTest::rows_are_normalised() {
  QFETCH(const DType, type);
  Lab lab;
  const Tensor x = lab.random(type, kRows, 48, 0.1), weight = lab.random(type, 1, 48);
  const Tensor y = lab.random(type, kRows, 48), inverse = lab.random(DType::kFloat32, 1, kRows);

  QVERIFY_NOTHING_WRONG(lab.check(RmsNorm{x, weight, y, inverse, 1e-3f}, {inverse}, 1e-6));
  QVERIFY_NOTHING_WRONG(lab.check(RmsNorm{x, weight, y, inverse, 1e-3f}, {y}, tolerance_of(type)));
}

void CpuDeviceTest::norms_go_backward() {
  QFETCH(const DType, type);
  Lab lab;
  const Tensor dy = lab.random(type, kRows, 48), x = lab.random(type, kRows, 48), weight = lab.random(type, 1, 48);
  const Tensor inverse = lab.positive(DType::kFloat32, 1, kRows), residual = lab.random(type, kRows, 48);
  const Tensor dx = lab.random(type, kRows, 48), dweight = lab.random(DType::kFloat32, 1, 48);
  const Tensor partial = lab.random(DType::kFloat32, norm_parts(kRows), 48), y = lab.random(type, kRows, 48);
  lab.prepare(RmsNorm{x, weight, y, inverse, 1e-3f});

  for (const bool accumulate : {true, false}) {
    const RmsNormBackward plain{dy, x, weight, inverse, std::nullopt, dx, dweight, partial, accumulate};
    QVERIFY_NOTHING_WRONG(lab.check(plain, {dx}, tolerance_of(type)));
    QVERIFY_NOTHING_WRONG(lab.check(plain, {dweight}, 1e-5));
    RmsNormBackward with = plain;
    with.residual = residual;
    QVERIFY_NOTHING_WRONG(lab.check(with, {dx}, tolerance_of(type)));
    with.dx = residual;
    QVERIFY_NOTHING_WRONG(lab.check(with, {residual}, tolerance_of(type)));
  }
}

void CpuDeviceTest::matrices_are_multiplied_data() {
  QTest::addColumn<DType>("type");
  QTest::addColumn<DType>("out");
  QTest::newRow("fp32") << DType::kFloat32 << DType::kFloat32;
  QTest::newRow("bf16") << DType::kBfloat16 << DType::kBfloat16;
  QTest::newRow("bf16 to fp32") << DType::kBfloat16 << DType::kFloat32;
}

// All transpositions, of whole matrices and of columns of wider ones.
void CpuDeviceTest::matrices_are_multiplied() {
  QFETCH(const DType, type);
  QFETCH(const DType, out);
  constexpr std::int64_t kM = 70, kN = 37, kK = 53;
  for (const bool a_turned : {false, true}) {
    for (const bool b_turned : {false, true}) {
      for (const std::int64_t beside : {0, 5}) {
        Lab lab;
        const auto matrix = [&](DType dtype, std::int64_t rows, std::int64_t columns) {
          return lab.random(dtype, rows, columns + beside).column_range(beside, columns);
        };
        const Tensor a = a_turned ? matrix(type, kK, kM) : matrix(type, kM, kK);
        const Tensor b = b_turned ? matrix(type, kN, kK) : matrix(type, kK, kN);
        const Tensor product = matrix(out, kM, kN), add = matrix(out, kM, kN);
        MatMul multiply{a, b, product, std::nullopt, a_turned, b_turned, false};

        QVERIFY_NOTHING_WRONG(lab.check(multiply, {product}, tolerance_of(out)));
        multiply.add = add;
        QVERIFY_NOTHING_WRONG(lab.check(multiply, {product}, tolerance_of(out)));
        multiply.add.reset();
        multiply.accumulate = true;
        QVERIFY_NOTHING_WRONG(lab.check(multiply, {product}, tolerance_of(out)));
      }
    }
  }
}

void CpuDeviceTest::pairs_are_turned() {
  QFETCH(const DType, type);
  Lab lab;
  const Tensor x = lab.random(type, kRows, 5 * 8);  // two heads of values are left alone
  const Tensor cosines = lab.random(DType::kFloat32, 75, 4), sines = lab.random(DType::kFloat32, 75, 4);
  const Tensor starts = document_starts(lab);

  for (const float direction : {1.0f, -1.0f}) {
    QVERIFY_NOTHING_WRONG(lab.check(Rope{x, cosines, sines, 3, 8, 75, direction}, {x}, tolerance_of(type)));
    QVERIFY_NOTHING_WRONG(lab.check(Rope{x, cosines, sines, 3, 8, 75, direction, starts}, {x}, tolerance_of(type)));
  }
}

// Probabilities, and the gradients of scores, are rounded as operands of the products that follow.
void CpuDeviceTest::attention_and_its_gradient_follow_their_formulas() {
  QFETCH(const DType, type);
  const AttentionShape shape{2, kRows / 2, 4, 2, 16};
  Lab lab;
  const std::int64_t bytes = cpu_step_traits(3).attention_scratch(shape, type, 3);
  const Tensor scratch = lab.add(DType::kInt32, 1, bytes / 4, std::vector<double>(static_cast<std::size_t>(bytes / 4)));
  const Tensor qkv = lab.random(type, kRows, shape.qkv_columns()), dqkv = lab.random(type, kRows, shape.qkv_columns());
  const Tensor out = lab.random(type, kRows, 64), dout = lab.random(type, kRows, 64);
  const Tensor logsumexp = lab.random(DType::kFloat32, 2 * 4, kRows / 2);

  for (const std::optional<Tensor>& starts : {std::optional<Tensor>(), std::optional(document_starts(lab))}) {
    const Attention forward{qkv, out, logsumexp, scratch, shape, starts};
    const AttentionBackward backward{dout, qkv, out, logsumexp, dqkv, scratch, shape, starts};

    QVERIFY_NOTHING_WRONG(lab.check(forward, {logsumexp}, 1e-5));
    QVERIFY_NOTHING_WRONG(lab.check(forward, {out}, tolerance_of(type, 1)));
    lab.prepare(forward);
    QVERIFY_NOTHING_WRONG(lab.check(backward, {dqkv}, tolerance_of(type, 2)));
  }
}

void CpuDeviceTest::gates_and_their_gradient_follow_their_formulas() {
  QFETCH(const DType, type);
  Lab lab;
  const Tensor gate_up = lab.random(type, kRows, 2 * 40), dgate_up = lab.random(type, kRows, 2 * 40);
  const Tensor out = lab.random(type, kRows, 40), dout = lab.random(type, kRows, 40);

  QVERIFY_NOTHING_WRONG(lab.check(Swiglu{gate_up, out}, {out}, tolerance_of(type)));
  QVERIFY_NOTHING_WRONG(lab.check(SwigluBackward{dout, gate_up, dgate_up}, {dgate_up}, tolerance_of(type)));
}

void CpuDeviceTest::losses_are_added_up() {
  QFETCH(const DType, type);
  Lab lab;
  const Tensor logits = lab.random(type, kRows, 300, 2);
  std::vector<double> of_rows;  // some have none
  for (std::int64_t row = 0; row < kRows; ++row) of_rows.push_back(row % 7 == 3 ? kNoLabel : row * 37 % 300);
  const Tensor labels = lab.add(DType::kInt32, 1, kRows, of_rows);
  const Tensor scale = lab.add(DType::kFloat32, 1, 1, {1.0 / 400}), sums = lab.random(DType::kFloat64, 1, 2);
  const Tensor row_sums = lab.random(DType::kFloat32, 2, kRows);

  for (const bool gradient : {true, false}) {
    const CrossEntropy loss{logits, labels, scale, sums, row_sums, 1e-2f, gradient};
    QVERIFY_NOTHING_WRONG(lab.check(loss, {sums}, 1e-6));
    QVERIFY_NOTHING_WRONG(lab.check(loss, {logits}, gradient ? tolerance_of(type) : 0));
  }
}

void CpuDeviceTest::clipping_bounds_the_norm_and_never_enlarges_data() {
  QTest::addColumn<double>("clip_norm");
  QTest::addColumn<double>("squares");
  QTest::addColumn<double>("loss");
  QTest::newRow("longer") << 1.0 << 16.0 << 3.0;
  QTest::newRow("shorter") << 1.0 << 0.25 << 3.0;
  QTest::newRow("nothing") << 1.0 << 0.0 << 3.0;
  QTest::newRow("never clipped") << 0.0 << 1e4 << 3.0;
  QTest::newRow("gradient not finite") << 1.0 << std::numeric_limits<double>::quiet_NaN() << 3.0;
  QTest::newRow("loss not finite") << 1.0 << 16.0 << std::numeric_limits<double>::infinity();
}

void CpuDeviceTest::clipping_bounds_the_norm_and_never_enlarges() {
  QFETCH(const double, clip_norm);
  QFETCH(const double, squares);
  QFETCH(const double, loss);
  Lab lab;
  const Tensor sums = lab.add(DType::kFloat64, 1, kStepSums, {loss, 1, squares});
  const Tensor scalars = lab.scalars({{StepScalar::kDecay, 0.9}});
  QVERIFY_NOTHING_WRONG(lab.check(ClipScale{sums, scalars, static_cast<float>(clip_norm)}, {scalars}, 1e-7));

  const auto after = decoded(lab.run(ClipScale{sums, scalars, static_cast<float>(clip_norm)}, 1)[1], DType::kFloat32);

  const double scale = after[static_cast<std::size_t>(StepScalar::kGradientScale)];
  const bool finite = std::isfinite(squares) && std::isfinite(loss);
  QCOMPARE(after[static_cast<std::size_t>(StepScalar::kApply)], finite ? 1.0 : 0.0);
  QVERIFY(scale <= 1 && scale >= 0);
  if (finite && clip_norm > 0) QVERIFY(scale * std::sqrt(squares) <= clip_norm * (1 + 1e-6));  // rounded to fp32
  if (finite && std::sqrt(squares) < clip_norm) QCOMPARE(scale, 1.0);
}

void CpuDeviceTest::adamw_follows_its_equations_data() {
  QTest::addColumn<bool>("rounds");
  QTest::newRow("fp32") << false;
  QTest::newRow("with bf16 weights") << true;
}

void CpuDeviceTest::adamw_follows_its_equations() {
  QFETCH(const bool, rounds);
  Lab lab;
  const Tensor p = lab.random(DType::kFloat32, 1, kValues), g = lab.random(DType::kFloat32, 1, kValues);
  const Tensor m = lab.random(DType::kFloat32, 1, kValues), v = lab.positive(DType::kFloat32, 1, kValues);
  const Tensor rounded = lab.random(DType::kBfloat16, 1, kValues);
  const Tensor scalars = lab.scalars({{StepScalar::kDecay, 0.99},
                                      {StepScalar::kStepSize, 0.03},
                                      {StepScalar::kInverseCorrection2, 1.7},
                                      {StepScalar::kGradientScale, 0.4},
                                      {StepScalar::kApply, 1}});
  const Tensor squares = lab.random(DType::kFloat64, 1, 1);
  const Tensor scratch = lab.random(DType::kFloat64, 1, square_parts(kValues));
  AdamW adamw{p, g, m, v, std::nullopt, scalars, 0.9f, 0.95f, 1e-8f};
  if (rounds) adamw.rounded = rounded;

  QVERIFY_NOTHING_WRONG(lab.check(adamw, {p, m, v}, 1e-6));
  QVERIFY_NOTHING_WRONG(lab.check(adamw, {rounded}, rounds ? tolerance_of(DType::kBfloat16) : 0));
  // Squares are added in double.
  QVERIFY_NOTHING_WRONG(lab.check(SquaredNorm{g, squares, scratch}, {squares}, 1e-12));
}

// Zero parameters behind a unit stay zero: so are their gradients. And where kApply is 0 all stays as it is.
void CpuDeviceTest::a_step_that_is_not_applied_changes_nothing() {
  Lab lab;
  const std::vector<double> zeros(100, 0.0);
  const Tensor p = lab.random(DType::kFloat32, 1, 100), g = lab.random(DType::kFloat32, 1, 100);
  const Tensor m = lab.random(DType::kFloat32, 1, 100), v = lab.positive(DType::kFloat32, 1, 100);
  const Tensor scalars = lab.scalars({{StepScalar::kDecay, 0.99}, {StepScalar::kStepSize, 0.03}});
  QVERIFY_NOTHING_WRONG(lab.check(AdamW{p, g, m, v, std::nullopt, scalars, 0.9f, 0.95f, 1e-8f}, {p, m, v}, 0));

  Lab padding;
  const auto zero = [&] { return padding.add(DType::kFloat32, 1, 100, zeros); };
  const Tensor p0 = zero(), g0 = zero(), m0 = zero(), v0 = zero();
  const Tensor applied = padding.scalars({{StepScalar::kDecay, 0.99},
                                          {StepScalar::kStepSize, 0.03},
                                          {StepScalar::kInverseCorrection2, 1.7},
                                          {StepScalar::kGradientScale, 1},
                                          {StepScalar::kApply, 1}});
  const AdamW adamw{p0, g0, m0, v0, std::nullopt, applied, 0.9f, 0.95f, 1e-8f};

  QVERIFY(decoded(padding.run(adamw, 1)[0], DType::kFloat32) == zeros);
}

void CpuDeviceTest::ranks_share_and_add() {
  constexpr int kRanks = 3;
  CpuDeviceGroup group(kRanks, 1, std::chrono::minutes(5));
  RankThreads threads(group);
  std::array<std::vector<double>, kRanks> gathered, added, sums;
  const Status status = threads.run([&](LocalRank rank) {
    const auto r = static_cast<double>(rank.value);
    const auto device = group.device(rank);
    KeptBuffers kept;
    const Tensor shard = kept.add("", DType::kBfloat16, 1, 2), full = kept.add("", DType::kBfloat16, 1, 6);
    const Tensor whole = kept.add("", DType::kFloat32, 1, 6), part = kept.add("", DType::kFloat32, 1, 2);
    const Tensor values = kept.add("", DType::kFloat64, 1, 2);
    device->take_arena(Arena::kKept, kept.bytes());
    device->upload(shard, encoded({r, r + 10}, DType::kBfloat16));
    device->upload(whole, encoded({r, 2 * r, 3 * r, 4 * r, 5 * r, 6 * r}, DType::kFloat32));
    device->upload(part, encoded({100, 200}, DType::kFloat32));
    device->upload(values, encoded({r + 1, 10 * r}, DType::kFloat64));

    device->run(StreamId::kCollective, AllGather{shard, full});
    device->run(StreamId::kCollective, ReduceScatter{whole, part, std::nullopt, /*accumulate=*/rank.value != 1});
    device->run(StreamId::kCollective, AllReduce{values});

    const auto mine = static_cast<std::size_t>(rank.value);
    const auto read = [&](const Tensor& t) {
      Bytes bytes(static_cast<std::size_t>(t.extent_bytes()));
      device->download(t, bytes);
      return decoded(bytes, t.dtype);
    };
    gathered[mine] = read(full);
    added[mine] = read(part);
    sums[mine] = read(values);
  });

  QVERIFY(status.ok());
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    const double first = 2 * static_cast<double>(rank) + 1, before = rank == 1 ? 0 : 100;
    QVERIFY(gathered[rank] == std::vector<double>({0, 10, 1, 11, 2, 12}));
    QVERIFY(added[rank] == std::vector<double>({before + 3 * first, 2 * before + 3 * (first + 1)}));
    QVERIFY(sums[rank] == std::vector<double>({6, 30}));
  }
}

void CpuDeviceTest::memory_that_there_is_not_is_refused() {
  SharedMemoryGroup group(1, std::chrono::minutes(5));
  const auto communicator = group.communicator(LocalRank{0});
  CpuDevice device(*communicator, 1);

  QVERIFY_THROWS_EXCEPTION(std::runtime_error, device.take_arena(Arena::kStep, std::int64_t{1} << 60));
}

QTEST_GUILESS_MAIN(CpuDeviceTest)
#include "cpu_device_test.moc"
