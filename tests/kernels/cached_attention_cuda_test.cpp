// The CUDA kernels of inference against fp64 (net/step/operation.h): attention over a cache, and the probabilities of
// labels.
#include "kernels/model/cached_attention_cuda.h"

#include <algorithm>

#include "kernels/model/cached_attention_split.h"
#include "kernels/model/model_cuda.h"
#include "tests/kernels/device_values.h"

using namespace atl;
using namespace atl::cuda;

namespace {

struct Sizes {
  qint64 heads, key_value_heads, head_dim, capacity;
};
// Rows of one slot that follow each other, from a position on; a slot of -1: rows that are not there.
struct Run {
  std::int32_t slot, position, count;
};
using Runs = std::vector<Run>;
constexpr std::int64_t kSlots = 3;

}  // namespace

Q_DECLARE_METATYPE(Sizes)
Q_DECLARE_METATYPE(Runs)

class CachedAttentionCudaTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { skip_without_device(); }
  void attention_over_a_cache_follows_fp64_data();
  void attention_over_a_cache_follows_fp64();
  void keys_are_divided_where_rows_are_few();
  void what_cannot_be_computed_is_refused();
  void log_probabilities_follow_fp64_data();
  void log_probabilities_follow_fp64();
  void beside_a_nan_no_label_is_the_likeliest();
};

// Head sizes of each way to divide a warp, also without vectors; 1, 3 and more heads a key than a block has; rows of a
// prompt that see each other, beside texts that are written, and rows that are not there; texts so long that their keys
// are divided, one of them too short for all parts; a prompt of so many rows that they are not.
void CachedAttentionCudaTest::attention_over_a_cache_follows_fp64_data() {
  QTest::addColumn<bool>("bf16");
  QTest::addColumn<Sizes>("sizes");
  QTest::addColumn<Runs>("runs");
  const Runs mixed{{1, 0, 5}, {-1, 0, 1}, {0, 7, 3}, {2, 40, 1}, {-1, 0, 2}};
  const Runs one{{2, 699, 1}};
  const Runs two{{0, 300, 2}, {1, 3, 1}, {-1, 0, 1}};
  const std::tuple<const char*, Sizes, Runs> all[] = {
      {"heads of 64", {4, 2, 64, 41}, mixed},
      {"heads of 80, three a key", {3, 1, 80, 43}, mixed},
      {"heads of 128, five a key", {5, 1, 128, 41}, mixed},
      {"heads of 256, a key each", {2, 2, 256, 41}, mixed},
      {"heads of 264", {2, 1, 264, 41}, mixed},
      {"heads of 6", {4, 2, 6, 41}, mixed},
      {"heads of 130", {2, 1, 130, 41}, mixed},
      {"a long text", {4, 1, 64, 701}, one},
      {"a long text, heads of 10", {2, 2, 10, 701}, one},
      {"long texts beside a short one", {6, 2, 16, 700}, two},
      {"a prompt", {2, 1, 16, 310}, {{1, 5, 300}}},
  };
  for (const bool bf16 : {false, true}) {
    for (const auto& [name, sizes, runs] : all) {
      QTest::addRow("%s %s", bf16 ? "bf16" : "fp32", name) << bf16 << sizes << runs;
    }
  }
}

namespace {

template <class T>
struct Case {
  Sizes sizes;
  std::vector<std::int32_t> slot_of, position_of;
  std::vector<T> qkv, keys, values;

  std::int64_t rows() const { return static_cast<std::int64_t>(slot_of.size()); }
  std::int64_t columns() const { return (sizes.heads + 2 * sizes.key_value_heads) * sizes.head_dim; }
  std::size_t place(std::int64_t slot, std::int64_t head, std::int64_t position) const {
    return static_cast<std::size_t>(((slot * sizes.key_value_heads + head) * sizes.capacity + position) *
                                    sizes.head_dim);
  }
  CachedAttentionRows<T> on(const DeviceArray<T>& of_rows, const DeviceArray<std::int32_t>& of_slots,
                            const DeviceArray<std::int32_t>& of_positions, const DeviceArray<T>& cached_keys,
                            const DeviceArray<T>& cached_values, const DeviceArray<T>& out,
                            const DeviceArray<float>& scratch) const {
    return {.rows = rows(),
            .heads = sizes.heads,
            .key_value_heads = sizes.key_value_heads,
            .head_dim = sizes.head_dim,
            .capacity = sizes.capacity,
            .qkv = of_rows.get(),
            .slot_of = of_slots.get(),
            .position_of = of_positions.get(),
            .keys = cached_keys.get(),
            .values = cached_values.get(),
            .out = out.get(),
            .scratch = scratch.get()};
  }
};

// The cache holds what comes before the rows, and NaN wherever nobody is to look.
template <class T>
Case<T> case_of(const Sizes& sizes, const Runs& runs) {
  Case<T> c{sizes, {}, {}, {}, {}, {}};
  const std::int64_t cached = kSlots * sizes.key_value_heads * sizes.capacity * sizes.head_dim;
  c.keys = uniform<T>(cached, 2);
  c.values = uniform<T>(cached, 3);
  for (std::int64_t slot = 0; slot < kSlots; ++slot) {
    const auto run = std::ranges::find(runs, slot, &Run::slot);
    const std::int64_t held = run == runs.end() ? 0 : run->position;
    for (std::int64_t head = 0; head < sizes.key_value_heads; ++head) {
      for (std::size_t i = c.place(slot, head, held); i < c.place(slot, head, sizes.capacity); ++i) {
        c.keys[i] = c.values[i] = rounded_to<T>(std::nanf(""));
      }
    }
  }
  for (const Run& run : runs) {
    for (std::int32_t i = 0; i < run.count; ++i) {
      c.slot_of.push_back(run.slot);
      c.position_of.push_back(run.position + i);
    }
  }
  c.qkv = uniform<T>(c.rows() * c.columns(), 1, -2, 2);
  return c;
}

// What the cache holds once the rows are in it.
template <class T>
void write_rows(Case<T>& c) {
  const Sizes& s = c.sizes;
  for (std::int64_t row = 0; row < c.rows(); ++row) {
    const std::int64_t slot = c.slot_of[static_cast<std::size_t>(row)];
    for (std::int64_t head = 0; slot >= 0 && head < s.key_value_heads; ++head) {
      const auto key = c.qkv.begin() + row * c.columns() + (s.heads + head) * s.head_dim;
      const auto to = static_cast<std::ptrdiff_t>(c.place(slot, head, c.position_of[static_cast<std::size_t>(row)]));
      std::copy_n(key, s.head_dim, c.keys.begin() + to);
      std::copy_n(key + s.key_value_heads * s.head_dim, s.head_dim, c.values.begin() + to);
    }
  }
}

struct Exact {
  std::vector<double> out, size;  // size: sum of weight |value|
  double score_size = 0;          // the largest sum of a score's terms' absolute values
};

// One row and head of a cache that holds the row; a value a column at the end of out and size.
template <class T>
void attend(const Case<T>& c, std::int64_t row, std::int64_t head, Exact& exact) {
  const Sizes& s = c.sizes;
  const std::int64_t slot = c.slot_of[static_cast<std::size_t>(row)];
  const std::int64_t keys = slot < 0 ? 0 : c.position_of[static_cast<std::size_t>(row)] + std::int64_t{1};
  const auto query = static_cast<std::size_t>(row * c.columns() + head * s.head_dim);
  const std::int64_t key_head = head / (s.heads / s.key_value_heads);
  const auto width = static_cast<std::size_t>(s.head_dim);
  std::vector<double> scores;
  for (std::int64_t key = 0; key < keys; ++key) {
    double score = 0, size = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const double term = static_cast<double>(widened(c.qkv[query + i])) *
                          static_cast<double>(widened(c.keys[c.place(slot, key_head, key) + i])) /
                          std::sqrt(static_cast<double>(s.head_dim));
      score += term;
      size += std::abs(term);
    }
    scores.push_back(score);
    exact.score_size = std::max(exact.score_size, size);
  }
  const double largest = scores.empty() ? 0 : std::ranges::max(scores);
  double weights = 0;
  std::vector<double> out(width), sizes(width);
  for (std::size_t key = 0; key < scores.size(); ++key) {
    const double weight = std::exp(scores[key] - largest);
    weights += weight;
    for (std::size_t i = 0; i < width; ++i) {
      const auto place = c.place(slot, key_head, static_cast<std::int64_t>(key)) + i;
      const auto value = static_cast<double>(widened(c.values[place]));
      out[i] += weight * value;
      sizes[i] += weight * std::abs(value);
    }
  }
  for (std::size_t i = 0; i < width; ++i) {
    exact.out.push_back(weights == 0 ? 0 : out[i] / weights);
    exact.size.push_back(weights == 0 ? 0 : sizes[i] / weights);
  }
}

template <class T>
void check(const Sizes& sizes, const Runs& runs) {
  Case<T> c = case_of<T>(sizes, runs);
  const std::int64_t scratch =
      cached_scratch_numel(c.rows(), sizes.heads, sizes.key_value_heads, sizes.head_dim, sizes.capacity);
  const auto [out, keys, values] = repeatable([&] {
    const DeviceArray<T> of_rows(c.qkv), cached_keys(c.keys), cached_values(c.values);
    const DeviceArray<std::int32_t> of_slots(c.slot_of), of_positions(c.position_of);
    const DeviceArray<T> to(
        std::vector<T>(static_cast<std::size_t>(c.rows() * sizes.heads * sizes.head_dim), rounded_to<T>(7)));
    const DeviceArray<float> parts(std::vector<float>(static_cast<std::size_t>(scratch + 1), std::nanf("")));
    const auto on = c.on(of_rows, of_slots, of_positions, cached_keys, cached_values, to, parts);
    if (launch_cached_attention(on, nullptr) != cudaSuccess) qFatal("launch_cached_attention");
    return std::tuple(to.to_host(), cached_keys.to_host(), cached_values.to_host());
  });
  write_rows(c);
  QVERIFY(same_bits(keys, c.keys));
  QVERIFY(same_bits(values, c.values));
  Exact exact;
  for (std::int64_t row = 0; row < c.rows(); ++row) {
    for (std::int64_t head = 0; head < sizes.heads; ++head) attend(c, row, head, exact);
  }
  // An error of a score is one of its weight, by its size, once above and once below the fraction; the keys' sums are
  // shrunk and added up as many times as there are keys.
  const auto longest = static_cast<double>(*std::ranges::max_element(c.position_of) + 1);
  const double roundings = 2 * (static_cast<double>(sizes.head_dim) + 4) * (exact.score_size + 1) + 4 * (longest + 16);
  ATOLL_WITHIN(out, exact.out, exact.size, roundings);
}

}  // namespace

void CachedAttentionCudaTest::attention_over_a_cache_follows_fp64() {
  QFETCH(bool, bf16);
  QFETCH(Sizes, sizes);
  QFETCH(Runs, runs);
  bf16 ? check<Bf16>(sizes, runs) : check<float>(sizes, runs);
}

void CachedAttentionCudaTest::keys_are_divided_where_rows_are_few() {
  // One text of a model of 32 heads that share 8 keys, its cache long or short.
  QCOMPARE(cached_splits(cached_groups(1, 32, 8), 8192), 64);
  QCOMPARE(cached_splits(cached_groups(1, 32, 8), 700), 11);
  QCOMPARE(cached_splits(cached_groups(1, 32, 8), 64), 1);
  QCOMPARE(cached_splits(cached_groups(32, 32, 8), 8192), 2);
  QCOMPARE(cached_splits(cached_groups(512, 32, 8), 8192), 1);
  QCOMPARE(cached_scratch_numel(512, 32, 8, 64, 8192), 0);
  QCOMPARE(cached_scratch_numel(1, 32, 8, 64, 8192), 32 * 64 * 66);
}

void CachedAttentionCudaTest::what_cannot_be_computed_is_refused() {
  const auto of = [](std::int64_t rows, std::int64_t heads, std::int64_t key_value_heads, std::int64_t head_dim) {
    CachedAttentionRows<float> pass{};
    pass.rows = rows;
    pass.heads = heads;
    pass.key_value_heads = key_value_heads;
    pass.head_dim = head_dim;
    pass.capacity = 4;
    return launch_cached_attention(pass, nullptr);
  };
  QCOMPARE(of(0, 2, 2, 4), cudaSuccess);
  QCOMPARE(of(1, 3, 2, 4), cudaErrorInvalidValue);
  QCOMPARE(of(1, 2, 2, kMostCachedHeadDim + 1), cudaErrorInvalidValue);
}

void CachedAttentionCudaTest::log_probabilities_follow_fp64_data() {
  QTest::addColumn<bool>("bf16");
  QTest::addColumn<qint64>("vocab");
  for (const bool bf16 : {false, true}) {
    for (const qint64 vocab : {1, 7, 331, 1032, 9001}) {
      QTest::addRow("%s %lld", bf16 ? "bf16" : "fp32", static_cast<long long>(vocab)) << bf16 << vocab;
    }
  }
}

namespace {

// Labels at the beginning, the end and between, the first of the largest, and a later one that is as large.
template <class T>
void check_log_probabilities(std::int64_t vocab) {
  constexpr std::int64_t kRows = 5;
  auto logits = uniform<T>(kRows * vocab, 4, -5, 5);
  std::vector<std::int32_t> labels{0, static_cast<std::int32_t>(vocab - 1), static_cast<std::int32_t>(vocab / 2)};
  const auto at = [&](std::int64_t row, std::int64_t column) { return static_cast<std::size_t>(row * vocab + column); };
  for (const std::int64_t row : {3, 4}) {
    logits[at(row, vocab / 3)] = logits[at(row, vocab - 1)] = rounded_to<T>(6);
    labels.push_back(static_cast<std::int32_t>(row == 3 ? vocab / 3 : vocab - 1));
  }
  const auto [log_probabilities, greedy] = repeatable([&] {
    const DeviceArray<T> from(logits);
    const DeviceArray<std::int32_t> of(labels), flags(std::vector<std::int32_t>(kRows, 7));
    const DeviceArray<float> to(std::vector<float>(kRows, 7));
    if (launch_log_probability(LogProbabilityRows<T>{from.get(), of.get(), kRows, vocab, to.get(), flags.get()},
                               nullptr) != cudaSuccess) {
      qFatal("launch_log_probability");
    }
    return std::tuple(to.to_host(), flags.to_host());
  });
  std::vector<double> exact, size;
  for (std::int64_t row = 0; row < kRows; ++row) {
    std::vector<double> of_row;
    for (std::int64_t i = 0; i < vocab; ++i) of_row.push_back(static_cast<double>(widened(logits[at(row, i)])));
    const auto largest = std::ranges::max_element(of_row);
    double sum = 0;
    for (const double logit : of_row) sum += std::exp(logit - *largest);
    const auto label = static_cast<std::size_t>(labels[static_cast<std::size_t>(row)]);
    exact.push_back(of_row[label] - *largest - std::log(sum));
    size.push_back(std::abs(of_row[label]) + std::abs(*largest) + std::log(sum) + 1);
    QCOMPARE(greedy[static_cast<std::size_t>(row)], largest - of_row.begin() == std::ptrdiff_t(label) ? 1 : 0);
  }
  // The sum's relative error is the logarithm's: an exponential of a difference of at most 12, and a thread's, a warp's
  // and a block's additions.
  ATOLL_WITHIN(log_probabilities, exact, size, static_cast<double>(vocab) / 1024 + 32 + 5 + 12 + 8);
}

}  // namespace

void CachedAttentionCudaTest::log_probabilities_follow_fp64() {
  QFETCH(bool, bf16);
  QFETCH(qint64, vocab);
  bf16 ? check_log_probabilities<Bf16>(vocab) : check_log_probabilities<float>(vocab);
}

void CachedAttentionCudaTest::beside_a_nan_no_label_is_the_likeliest() {
  const std::vector<float> logits{1, 5, std::nanf(""), 2};
  const DeviceArray<float> from(logits), to(std::vector<float>(1));
  const DeviceArray<std::int32_t> of(std::vector<std::int32_t>{1}), flags(std::vector<std::int32_t>{7});
  QCOMPARE(
      launch_log_probability(LogProbabilityRows<float>{from.get(), of.get(), 1, 4, to.get(), flags.get()}, nullptr),
      cudaSuccess);
  QVERIFY(std::isnan(to.to_host()[0]));
  QCOMPARE(flags.to_host()[0], 0);
}

QTEST_APPLESS_MAIN(CachedAttentionCudaTest)
#include "cached_attention_cuda_test.moc"
