// Attention's CUDA kernels against attention in fp64 (net/step/operation.h).
#include "kernels/model/attention_cuda.h"

#include <algorithm>

#include "tests/kernels/device_values.h"

using namespace atl;
using namespace atl::cuda;

class AttentionCudaTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { skip_without_device(); }
  void forward_follows_fp64_data() { shapes(); }
  void forward_follows_fp64();
  void backward_follows_fp64_data() { shapes(); }
  void backward_follows_fp64();
  void heads_that_no_keys_are_shared_among_evenly_are_refused();

 private:
  static void shapes();
};

// Lengths about a tile of 64, head sizes about a tile and two, both also without vectors; rows of more elements than
// needed; documents of a single token, over the edge of a tile, that begin with one, and so long that tiles before them
// are left out.
void AttentionCudaTest::shapes() {
  QTest::addColumn<bool>("bf16");
  QTest::addColumn<AttentionSizes>("sizes");
  QTest::addColumn<qint64>("more");
  QTest::addColumn<bool>("documents");
  struct Row {
    AttentionSizes sizes;
    qint64 more;
    bool documents = false;
  };
  const Row all[] = {
      {{.sequences = 2, .length = 70, .heads = 2, .key_value_heads = 1, .head_dim = 64}, 8},
      {{.sequences = 1, .length = 64, .heads = 1, .key_value_heads = 1, .head_dim = 16}, 0},
      {{.sequences = 2, .length = 5, .heads = 4, .key_value_heads = 2, .head_dim = 6}, 3},
      {{.sequences = 1, .length = 65, .heads = 1, .key_value_heads = 1, .head_dim = 80}, 1},
      {{.sequences = 1, .length = 3, .heads = 3, .key_value_heads = 1, .head_dim = 136}, 16},
      {{.sequences = 1, .length = 1, .heads = 1, .key_value_heads = 1, .head_dim = 2}, 0},
      {{.sequences = 2, .length = 200, .heads = 2, .key_value_heads = 1, .head_dim = 6}, 3, true},
      {{.sequences = 1, .length = 70, .heads = 1, .key_value_heads = 1, .head_dim = 80}, 0, true},
  };
  for (const bool bf16 : {false, true}) {
    for (const auto& [sizes, more, documents] : all) {
      QTest::addRow("%s %lld sequences of %lld%s, %lld heads of %lld, %lld keys", bf16 ? "bf16" : "fp32",
                    static_cast<long long>(sizes.sequences), static_cast<long long>(sizes.length),
                    documents ? " with documents" : "", static_cast<long long>(sizes.heads),
                    static_cast<long long>(sizes.head_dim), static_cast<long long>(sizes.key_value_heads))
          << bf16 << sizes << more << documents;
    }
  }
}

namespace {

using Starts = std::vector<std::int32_t>;

// The second sequence's last document is longer than two tiles.
Starts starts_of(const AttentionSizes& sizes) {
  Starts starts;
  for (std::int64_t row = 0; row < sizes.sequences * sizes.length; ++row) {
    const auto place = static_cast<std::int32_t>(row % sizes.length);
    const bool begins =
        row < sizes.length ? place == 1 || place == 2 || place == 60 || place == 128 || place == 190 : place == 63;
    starts.push_back(place == 0 || begins ? place : starts.back());
  }
  return starts;
}

template <class Test>
void with_case(const Test& test) {
  QFETCH(bool, bf16);
  QFETCH(AttentionSizes, sizes);
  QFETCH(qint64, more);
  QFETCH(bool, documents);
  const Starts starts = documents ? starts_of(sizes) : Starts{};
  if (bf16) {
    test(Bf16{}, sizes, std::int64_t{more}, starts);
  } else {
    test(0.0f, sizes, std::int64_t{more}, starts);
  }
}

// A matrix in fp64 whose rows are `stride` apart.
struct Matrix {
  std::vector<double> values;
  std::int64_t stride;
  double& operator()(std::int64_t row, std::int64_t column) {
    return values[static_cast<std::size_t>(row * stride + column)];
  }
  double operator()(std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * stride + column)];
  }
};
template <class T>
Matrix matrix_of(const std::vector<T>& values, std::int64_t stride) {
  return {exactly(values), stride};
}
Matrix same_size(const Matrix& other) { return {std::vector<double>(other.values.size()), other.stride}; }

// The columns at which head `head` of queries begins, and those of the keys and values that it sees.
struct Columns {
  std::int64_t query, key, value;
};
Columns columns_of(const AttentionSizes& sizes, std::int64_t head) {
  const std::int64_t key_head = sizes.heads + head / (sizes.heads / sizes.key_value_heads);
  return {head * sizes.head_dim, key_head * sizes.head_dim, (key_head + sizes.key_value_heads) * sizes.head_dim};
}

struct Score {
  double value, size;  // size: the sum of its terms' absolute values
};
Score scaled_score(const AttentionSizes& sizes, const Matrix& qkv, const Columns& at, std::int64_t query,
                   std::int64_t key) {
  Score score{0, 0};
  for (std::int64_t i = 0; i < sizes.head_dim; ++i) {
    const double term =
        qkv(query, at.query + i) * qkv(key, at.key + i) / std::sqrt(static_cast<double>(sizes.head_dim));
    score.value += term;
    score.size += std::abs(term);
  }
  return score;
}

// Calls row(head, its document's first row, query) for each row of each head.
template <class Row>
void for_each_query(const AttentionSizes& sizes, const Starts& starts, const Row& row) {
  for (std::int64_t sequence = 0; sequence < sizes.sequences; ++sequence) {
    for (std::int64_t head = 0; head < sizes.heads; ++head) {
      for (std::int64_t i = 0; i < sizes.length; ++i) {
        const std::int64_t query = sequence * sizes.length + i;
        const std::int64_t start = starts.empty() ? 0 : starts[static_cast<std::size_t>(query)];
        row(head, sequence * sizes.length + start, query);
      }
    }
  }
}

std::size_t place_of(const AttentionSizes& sizes, std::int64_t head, std::int64_t row) {
  return static_cast<std::size_t>((row / sizes.length * sizes.heads + head) * sizes.length + row % sizes.length);
}

struct Forward {
  Matrix out, size_out;
  std::vector<double> logsumexp, size_logsumexp;
  double largest_score = 0;  // largest size of a score
};
Forward forward_in_fp64(const AttentionSizes& sizes, const Starts& starts, const Matrix& qkv, std::int64_t out_stride) {
  const auto rows = static_cast<std::size_t>(sizes.sequences * sizes.length);
  const Matrix zeros{std::vector<double>(rows * static_cast<std::size_t>(out_stride)), out_stride};
  Forward forward{zeros, zeros, std::vector<double>(rows * static_cast<std::size_t>(sizes.heads)), {}, 0};
  for_each_query(sizes, starts, [&](std::int64_t head, std::int64_t first, std::int64_t query) {
    const Columns at = columns_of(sizes, head);
    std::vector<double> weights;
    double sum = 0;
    for (std::int64_t key = first; key <= query; ++key) {
      const Score score = scaled_score(sizes, qkv, at, query, key);
      forward.largest_score = std::max(forward.largest_score, score.size);
      weights.push_back(std::exp(score.value));
      sum += weights.back();
    }
    forward.logsumexp[place_of(sizes, head, query)] = std::log(sum);
    for (std::int64_t key = first; key <= query; ++key) {
      for (std::int64_t i = 0; i < sizes.head_dim; ++i) {
        const double term = weights[static_cast<std::size_t>(key - first)] / sum * qkv(key, at.value + i);
        forward.out(query, at.query + i) += term;
        forward.size_out(query, at.query + i) += std::abs(term);
      }
    }
  });
  for (const double value : forward.logsumexp) forward.size_logsumexp.push_back(std::abs(value) + 1);
  return forward;
}

struct Backward {
  Matrix dqkv, size;
};
// From the logsumexp and out that the kernels get. size: what errors relative to P and to dS's terms come to.
Backward backward_in_fp64(const AttentionSizes& sizes, const Starts& starts, const Matrix& qkv, const Matrix& dout,
                          const Matrix& out, const std::vector<float>& logsumexp) {
  Backward backward{same_size(qkv), same_size(qkv)};
  const double scale = 1 / std::sqrt(static_cast<double>(sizes.head_dim));
  for_each_query(sizes, starts, [&](std::int64_t head, std::int64_t first, std::int64_t query) {
    const Columns at = columns_of(sizes, head);
    double dot = 0, size_dot = 0;
    for (std::int64_t i = 0; i < sizes.head_dim; ++i) {
      dot += dout(query, at.query + i) * out(query, at.query + i);
      size_dot += std::abs(dout(query, at.query + i) * out(query, at.query + i));
    }
    for (std::int64_t key = first; key <= query; ++key) {
      const double p = std::exp(scaled_score(sizes, qkv, at, query, key).value -
                                static_cast<double>(logsumexp[place_of(sizes, head, query)]));
      double dp = 0, size_dp = 0;
      for (std::int64_t i = 0; i < sizes.head_dim; ++i) {
        dp += dout(query, at.query + i) * qkv(key, at.value + i);
        size_dp += std::abs(dout(query, at.query + i) * qkv(key, at.value + i));
      }
      const double ds = scale * p * (dp - dot), size_ds = scale * p * (size_dp + size_dot);
      for (std::int64_t i = 0; i < sizes.head_dim; ++i) {
        const auto add = [&](std::int64_t row, std::int64_t column, double factor, double size_factor, double value) {
          backward.dqkv(row, column + i) += factor * value;
          backward.size(row, column + i) += size_factor * std::abs(value);
        };
        add(query, at.query, ds, size_ds, qkv(key, at.key + i));
        add(key, at.key, ds, size_ds, qkv(query, at.query + i));
        add(key, at.value, p, p, dout(query, at.query + i));
      }
    }
  });
  return backward;
}

// Roundings of an exponent, of which each is one of P: in a score's sum, scale, logsumexp or the largest score so far,
// and log2(e), whose own error counts as well.
double of_exponent(const AttentionSizes& sizes, double largest_score) {
  const double largest = largest_score + std::log(static_cast<double>(sizes.length));
  return (static_cast<double>(sizes.head_dim) + 6) * largest_score + 4 * largest;
}

std::int64_t qkv_stride(const AttentionSizes& sizes, std::int64_t more) {
  return (sizes.heads + 2 * sizes.key_value_heads) * sizes.head_dim + more;
}
std::int64_t out_stride(const AttentionSizes& sizes, std::int64_t more) { return sizes.heads * sizes.head_dim + more; }

template <class T>
std::vector<T> rounded_all(const std::vector<double>& values) {
  std::vector<T> all;
  for (const double value : values) all.push_back(rounded_to<T>(static_cast<float>(value)));
  return all;
}

}  // namespace

void AttentionCudaTest::forward_follows_fp64() {
  with_case([]<class T>(T, const AttentionSizes& sizes, std::int64_t more, const Starts& starts) {
    const std::int64_t rows = sizes.sequences * sizes.length;
    const auto qkv = uniform<T>(rows * qkv_stride(sizes, more), 1, -2, 2);
    const auto [out, logsumexp] = repeatable([&] {
      const DeviceArray<T> from(qkv);
      const DeviceArray<T> to(std::vector<T>(static_cast<std::size_t>(rows * out_stride(sizes, more))));
      const DeviceArray<float> sums(std::vector<float>(static_cast<std::size_t>(rows * sizes.heads)));
      const DeviceArray<std::int32_t> documents(starts);
      const AttentionForward<T> attention{.sizes = sizes,
                                          .qkv = from.get(),
                                          .qkv_stride = qkv_stride(sizes, more),
                                          .out = to.get(),
                                          .out_stride = out_stride(sizes, more),
                                          .logsumexp = sums.get(),
                                          .starts = starts.empty() ? nullptr : documents.get()};
      if (launch_attention(attention, nullptr) != cudaSuccess) qFatal("launch_attention");
      return std::tuple(to.to_host(), sums.to_host());
    });
    const Forward exact =
        forward_in_fp64(sizes, starts, matrix_of(qkv, qkv_stride(sizes, more)), out_stride(sizes, more));
    const double exponent = of_exponent(sizes, exact.largest_score);
    // Twice an exponential (4 roundings beside its exponent's), in P and in the sum, and as often again for each tile's
    // rescaling; additions of length terms to each.
    const double tiles = static_cast<double>(sizes.length) / 64 + 1;
    const double roundings = (2 + 2 * tiles) * (exponent + 5) + 2 * static_cast<double>(sizes.length) + 4;
    ATOLL_WITHIN(out, exact.out.values, exact.size_out.values, roundings);
    ATOLL_WITHIN(logsumexp, exact.logsumexp, exact.size_logsumexp, roundings);
  });
}

void AttentionCudaTest::backward_follows_fp64() {
  with_case([]<class T>(T, const AttentionSizes& sizes, std::int64_t more, const Starts& starts) {
    const std::int64_t rows = sizes.sequences * sizes.length;
    const auto qkv = uniform<T>(rows * qkv_stride(sizes, more), 1, -2, 2);
    const auto dout = uniform<T>(rows * out_stride(sizes, more), 2);
    const Matrix exact_qkv = matrix_of(qkv, qkv_stride(sizes, more));
    const Forward forward = forward_in_fp64(sizes, starts, exact_qkv, out_stride(sizes, more));
    const auto out = rounded_all<T>(forward.out.values);
    const auto logsumexp = rounded_all<float>(forward.logsumexp);
    const auto [dqkv] = repeatable([&] {
      const DeviceArray<T> d(dout), from(qkv), forward_out(out), to(std::vector<T>(qkv.size()));
      const DeviceArray<float> sums(logsumexp);
      const DeviceArray<std::int32_t> documents(starts);
      const DeviceArray<float> scratch(
          std::vector<float>(static_cast<std::size_t>(attention_backward_scratch_numel(sizes))));
      const AttentionGradient<T> attention{.sizes = sizes,
                                           .dout = d.get(),
                                           .dout_stride = out_stride(sizes, more),
                                           .qkv = from.get(),
                                           .qkv_stride = qkv_stride(sizes, more),
                                           .out = forward_out.get(),
                                           .out_stride = out_stride(sizes, more),
                                           .logsumexp = sums.get(),
                                           .dqkv = to.get(),
                                           .dqkv_stride = qkv_stride(sizes, more),
                                           .scratch = scratch.get(),
                                           .starts = starts.empty() ? nullptr : documents.get()};
      if (launch_attention_backward(attention, nullptr) != cudaSuccess) qFatal("launch_attention_backward");
      return std::tuple(to.to_host());
    });
    const Backward exact = backward_in_fp64(sizes, starts, exact_qkv, matrix_of(dout, out_stride(sizes, more)),
                                            matrix_of(out, out_stride(sizes, more)), logsumexp);
    // P: its exponent and 4; dP and D: head_dim each; a sum over length rows of each head that shares a key.
    const auto sharing = static_cast<double>(sizes.heads / sizes.key_value_heads);
    const double roundings = of_exponent(sizes, forward.largest_score) + 4 + static_cast<double>(sizes.head_dim) + 4 +
                             static_cast<double>(sizes.length) * sharing + 2;
    ATOLL_WITHIN(dqkv, exact.dqkv.values, exact.size.values, roundings);
  });
}

void AttentionCudaTest::heads_that_no_keys_are_shared_among_evenly_are_refused() {
  const AttentionForward<float> attention{
      .sizes = {.sequences = 1, .length = 1, .heads = 3, .key_value_heads = 2, .head_dim = 2},
      .qkv = nullptr,
      .qkv_stride = 14,
      .out = nullptr,
      .out_stride = 6,
      .logsumexp = nullptr};

  QCOMPARE(launch_attention(attention, nullptr), cudaErrorInvalidValue);
}

QTEST_APPLESS_MAIN(AttentionCudaTest)
#include "attention_cuda_test.moc"
