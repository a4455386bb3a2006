// The CUDA kernels of the optimizer, and those that are one pass over an array, against the same in fp64
// (net/step/operation.h).
#include <algorithm>

#include "kernels/model/model_cuda.h"
#include "net/step/operation.h"
#include "tests/kernels/device_values.h"

using namespace atl;
using namespace atl::cuda;

class OptimizerCudaTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { skip_without_device(); }
  void fill_convert_and_add_round_once_data();
  void fill_convert_and_add_round_once();
  void arrays_larger_than_a_grid_are_done_to_the_end();
  void squared_norm_is_of_parts_whatever_the_alignment();
  void adamw_follows_fp64_and_rounds_its_parameters_data();
  void adamw_follows_fp64_and_rounds_its_parameters();
  void adamw_does_nothing_where_it_does_not_apply();
  void clip_scale_says_whether_all_is_finite_data();
  void clip_scale_says_whether_all_is_finite();
};

namespace {

// Whether every value is what one rounding makes it.
template <class T>
bool fill_convert_and_add(std::int64_t numel, std::size_t shift) {
  auto from = uniform<float>(numel, 1);
  // Halfway between two bf16, both ways; the smallest; what is no number.
  const float special[] = {1.00390625f,
                           1.01171875f,
                           -1e-40f,
                           std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN(),
                           3.4e38f};
  for (std::size_t i = 0; i < std::min(from.size(), std::size(special)); ++i) from[from.size() - 1 - i] = special[i];
  const auto sum = uniform<float>(numel, 2);
  const auto [filled, converted, added] = repeatable([&] {
    const DeviceArray<T> x(std::vector<T>(from.size()), shift);
    const DeviceArray<float> source(from, shift);
    const DeviceArray<Bf16> to(std::vector<Bf16>(from.size()), shift);
    const DeviceArray<float> into(sum, shift);
    if (launch_fill(x.get(), numel, 0.3f, nullptr) != cudaSuccess) qFatal("launch_fill");
    if (launch_convert(source.get(), to.get(), numel, nullptr) != cudaSuccess) qFatal("launch_convert");
    if (launch_add(into.get(), source.get(), numel, nullptr) != cudaSuccess) qFatal("launch_add");
    return std::tuple(x.to_host(), to.to_host(), into.to_host());
  });
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool right = widened(filled[i]) == widened(rounded_to<T>(0.3f)) &&
                       converted[i].bits == rounded_to<Bf16>(from[i]).bits &&
                       (added[i] == sum[i] + from[i] || std::isnan(from[i]));
    if (!right) return false;
  }
  return true;
}

}  // namespace

void OptimizerCudaTest::fill_convert_and_add_round_once_data() {
  QTest::addColumn<qint64>("numel");
  QTest::addColumn<int>("shift");
  for (const qint64 numel : {1, 1001, 4096}) {
    for (const int shift : {0, 1})
      QTest::addRow("%lld from %d", static_cast<long long>(numel), shift) << numel << shift;
  }
}

void OptimizerCudaTest::fill_convert_and_add_round_once() {
  QFETCH(qint64, numel);
  QFETCH(int, shift);
  QVERIFY(fill_convert_and_add<float>(numel, static_cast<std::size_t>(shift)));
  QVERIFY(fill_convert_and_add<Bf16>(numel, static_cast<std::size_t>(shift)));
}

void OptimizerCudaTest::arrays_larger_than_a_grid_are_done_to_the_end() {
  // 2,048 blocks of 256 threads of four values are a grid.
  const std::vector<float> ones(2048 * 256 * 4 * 2 + 1027, 1.0f);
  const DeviceArray<float> sum(ones);
  const DeviceArray<float> values(ones);

  QCOMPARE(launch_add(sum.get(), values.get(), std::ssize(ones), nullptr), cudaSuccess);

  QVERIFY(std::ranges::all_of(sum.to_host(), [](float value) { return value == 2; }));
}

void OptimizerCudaTest::squared_norm_is_of_parts_whatever_the_alignment() {
  for (const std::int64_t numel : {std::int64_t{0}, std::int64_t{1}, std::int64_t{4096}, 2 * kSquarePart + 777}) {
    const auto x = uniform<float>(numel, 1);
    const auto run = [&](std::size_t shift, std::int64_t part) {
      return repeatable([&] {
        const DeviceArray<float> from(x, shift);
        const DeviceArray<double> scratch(std::vector<double>(static_cast<std::size_t>((numel + part - 1) / part)));
        const DeviceArray<double> sum(std::vector<double>{-1.0});
        if (launch_squared_norm(from.get(), numel, part, scratch.get(), sum.get(), nullptr) != cudaSuccess) {
          qFatal("launch_squared_norm");
        }
        return std::tuple(sum.to_host());
      });
    };
    double exact = 0;
    for (const float value : x) exact += static_cast<double>(value) * static_cast<double>(value);

    const auto [aligned] = run(0, kSquarePart);
    const auto [shifted] = run(1, kSquarePart);
    const auto [small_parts] = run(0, 1024);

    // Two sums of numel values each, in different orders.
    const double bound = 2 * 0x1p-53 * static_cast<double>(numel) * exact;
    QVERIFY(std::abs(aligned[0] - exact) <= bound);
    QVERIFY(std::abs(small_parts[0] - exact) <= bound);
    QVERIFY(same_bits(aligned, shifted));
  }
}

void OptimizerCudaTest::adamw_follows_fp64_and_rounds_its_parameters_data() {
  QTest::addColumn<qint64>("numel");
  QTest::addColumn<int>("shift");
  QTest::addColumn<bool>("with_rounded");
  for (const qint64 numel : {1, 1001, 4096}) {
    for (const int shift : {0, 1}) {
      QTest::addRow("%lld from %d", static_cast<long long>(numel), shift)
          << numel << shift << (shift == 0 || numel == 1);
    }
  }
}

namespace {

struct AdamWState {
  std::vector<float> p, g, m, v;
  std::vector<Bf16> rounded;
};
AdamWState adamw_state(std::int64_t numel) {
  return {uniform<float>(numel, 1), uniform<float>(numel, 2, -3, 3), uniform<float>(numel, 3),
          uniform<float>(numel, 4, 0, 2), std::vector<Bf16>(static_cast<std::size_t>(numel))};
}
// Of decay, step size, inverse correction, gradient scale; then whether it applies.
constexpr float kScalars[] = {0.99f, 0.01f, 1.5f, 0.5f};
constexpr float kBeta1 = 0.9f, kBeta2 = 0.95f, kEpsilon = 1e-3f;

auto run_adamw(const AdamWState& state, std::size_t shift, bool with_rounded, bool apply) {
  return repeatable([&] {
    const DeviceArray<float> p(state.p, shift), g(state.g, shift), m(state.m, shift), v(state.v, shift);
    const DeviceArray<Bf16> rounded(state.rounded, shift);
    const DeviceArray<float> s({kScalars[0], kScalars[1], kScalars[2], kScalars[3], apply ? 1.0f : 0.0f});
    const AdamWArrays arrays{
        p.get(), g.get(), m.get(), v.get(), with_rounded ? rounded.get() : nullptr, std::ssize(state.p)};
    const AdamWScalars scalars{s.get(), s.get() + 1, s.get() + 2, s.get() + 3, s.get() + 4};
    if (launch_adamw(arrays, scalars, kBeta1, kBeta2, kEpsilon, nullptr) != cudaSuccess) qFatal("launch_adamw");
    return std::tuple(p.to_host(), m.to_host(), v.to_host(), rounded.to_host());
  });
}

}  // namespace

void OptimizerCudaTest::adamw_follows_fp64_and_rounds_its_parameters() {
  QFETCH(qint64, numel);
  QFETCH(int, shift);
  QFETCH(bool, with_rounded);
  const AdamWState state = adamw_state(numel);

  const auto [p, m, v, rounded] = run_adamw(state, static_cast<std::size_t>(shift), with_rounded, true);

  std::vector<double> exact_p, size_p, exact_m, size_m, exact_v;
  const double b1 = static_cast<double>(kBeta1), b2 = static_cast<double>(kBeta2);
  for (std::size_t i = 0; i < state.p.size(); ++i) {
    const double g = static_cast<double>(kScalars[3]) * static_cast<double>(state.g[i]);
    const auto m0 = static_cast<double>(state.m[i]);
    exact_m.push_back(m0 + (1 - b1) * (g - m0));
    size_m.push_back(std::abs(m0) + (1 - b1) * (std::abs(g) + std::abs(m0)));
    exact_v.push_back(b2 * static_cast<double>(state.v[i]) + (1 - b2) * g * g);
    const double step = static_cast<double>(kScalars[1]) /
                        (std::sqrt(exact_v.back()) * static_cast<double>(kScalars[2]) + static_cast<double>(kEpsilon));
    const double kept = static_cast<double>(state.p[i]) * static_cast<double>(kScalars[0]);
    exact_p.push_back(kept - step * exact_m.back());
    size_p.push_back(std::abs(kept) + step * size_m.back());
  }
  ATOLL_WITHIN(m, exact_m, size_m, 4);
  ATOLL_WITHIN(v, exact_v, 5);
  // m 4, the root 5 / 2 + 2, denominator 2, quotient 1, product and difference 2.
  ATOLL_WITHIN(p, exact_p, size_p, 14);
  for (std::size_t i = 0; i < p.size(); ++i) QCOMPARE(rounded[i].bits, with_rounded ? rounded_to<Bf16>(p[i]).bits : 0);
}

void OptimizerCudaTest::adamw_does_nothing_where_it_does_not_apply() {
  AdamWState state = adamw_state(1000);
  state.g[17] = std::numeric_limits<float>::quiet_NaN();

  const auto [p, m, v, rounded] = run_adamw(state, 0, true, false);

  QVERIFY(same_bits(p, state.p) && same_bits(m, state.m) && same_bits(v, state.v) && same_bits(rounded, state.rounded));
}

void OptimizerCudaTest::clip_scale_says_whether_all_is_finite_data() {
  QTest::addColumn<double>("cross_entropy");
  QTest::addColumn<double>("squared_largest");
  QTest::addColumn<double>("gradient_squares");
  QTest::addColumn<float>("clip_norm");
  QTest::addColumn<float>("apply");
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  QTest::newRow("clipped") << 10.0 << 20.0 << 9.0 << 1.0f << 1.0f;
  QTest::newRow("below the norm") << 10.0 << 20.0 << 0.25 << 1.0f << 1.0f;
  QTest::newRow("no gradient") << 10.0 << 20.0 << 0.0 << 1.0f << 1.0f;
  QTest::newRow("no clipping") << 10.0 << 20.0 << 9.0 << 0.0f << 1.0f;
  QTest::newRow("loss of infinity") << infinity << 20.0 << 9.0 << 1.0f << 0.0f;
  QTest::newRow("loss of NaN") << nan << 20.0 << 9.0 << 1.0f << 0.0f;
  QTest::newRow("largest logit of infinity") << 10.0 << infinity << 9.0 << 1.0f << 0.0f;
  QTest::newRow("gradient of NaN") << 10.0 << 20.0 << nan << 1.0f << 0.0f;
  QTest::newRow("gradient of infinity") << 10.0 << 20.0 << infinity << 1.0f << 0.0f;
}

void OptimizerCudaTest::clip_scale_says_whether_all_is_finite() {
  QFETCH(double, cross_entropy);
  QFETCH(double, squared_largest);
  QFETCH(double, gradient_squares);
  QFETCH(float, clip_norm);
  QFETCH(float, apply);
  const DeviceArray<double> sums({cross_entropy, squared_largest, gradient_squares});
  const DeviceArray<float> scalars({0.25f, -1.0f, -1.0f});
  const ClipScalars at_device{sums.get(),    sums.get() + 1,    sums.get() + 2,
                              scalars.get(), scalars.get() + 1, scalars.get() + 2};

  QCOMPARE(launch_clip_scale(at_device, clip_norm, nullptr), cudaSuccess);

  const auto got = scalars.to_host();
  QCOMPARE(got[2], apply);
  if (apply == 0) return;
  const double factor = static_cast<double>(clip_norm) / (std::sqrt(gradient_squares) + 1e-6);
  QCOMPARE(got[1], clip_norm > 0 && factor < 1 ? static_cast<float>(factor) : 1.0f);
}

QTEST_APPLESS_MAIN(OptimizerCudaTest)
#include "optimizer_cuda_test.moc"
