// Singular values, and which matrices have most signal for their noise.
#include "net/model_files/spectrum.h"

#include <QtTest>
#include <cmath>
#include <numeric>
#include <random>

using namespace atl;

namespace {

std::vector<float> noise(std::size_t count, unsigned seed, float deviation) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// So many directions over noise.
std::vector<float> with_signal(std::int64_t rows, std::int64_t columns, int directions, unsigned seed,
                               float deviation) {
  std::vector<float> matrix = noise(static_cast<std::size_t>(rows * columns), seed, deviation);
  for (int i = 0; i < directions; ++i) {
    const auto left = noise(static_cast<std::size_t>(rows), seed + 1 + 2 * i, 1);
    const auto right = noise(static_cast<std::size_t>(columns), seed + 2 + 2 * i, 1);
    for (std::size_t r = 0; r < left.size(); ++r) {
      for (std::size_t c = 0; c < right.size(); ++c) matrix[r * right.size() + c] += left[r] * right[c];
    }
  }
  return matrix;
}

}  // namespace

class SpectrumTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void known_singular_values_are_found();
  void their_powers_are_those_of_the_matrix_data();
  void their_powers_are_those_of_the_matrix();
  void signal_stands_out_of_noise();
  void the_best_of_each_kind_are_named();
};

void SpectrumTest::known_singular_values_are_found() {
  const auto close = [](const std::vector<double>& found, const std::vector<double>& expected) {
    if (found.size() != expected.size()) return false;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (std::abs(found[i] - expected[i]) > 1e-7) return false;
    }
    return true;
  };

  QVERIFY(close(singular_values(std::vector<float>{3, 0, 0, 0, -2, 0, 0, 0, 1}, 3, 3), {3, 2, 1}));
  QVERIFY(close(singular_values(std::vector<float>{3, 0, 4, 5}, 2, 2), {3 * std::sqrt(5.0), std::sqrt(5.0)}));
  QVERIFY(close(singular_values(std::vector<float>{3, 4, 0}, 1, 3), {5}));
  QVERIFY(close(singular_values(std::vector<float>(12), 3, 4), {0, 0, 0}));
}

void SpectrumTest::their_powers_are_those_of_the_matrix_data() {
  QTest::addColumn<int>("rows");
  QTest::addColumn<int>("columns");
  for (const auto& [rows, columns] : {std::pair{1, 5}, {40, 70}, {70, 40}, {128, 128}, {300, 500}, {500, 300}}) {
    QTest::addRow("%d x %d", rows, columns) << rows << columns;
  }
}

// The sum of squares is the matrix's, that of fourth powers its Gram matrix's: fp64 sums, some 1e-13 of them.
void SpectrumTest::their_powers_are_those_of_the_matrix() {
  QFETCH(const int, rows);
  QFETCH(const int, columns);
  const auto matrix = noise(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns), 1, 1);
  double squares = 0, fourths = 0;
  for (const float value : matrix) squares += static_cast<double>(value) * value;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < rows; ++j) {
      double dot = 0;
      for (int c = 0; c < columns; ++c) dot += static_cast<double>(matrix[i * columns + c]) * matrix[j * columns + c];
      fourths += dot * dot;
    }
  }

  const auto values = singular_values(matrix, rows, columns);

  QCOMPARE(values.size(), static_cast<std::size_t>(std::min(rows, columns)));
  QVERIFY(std::ranges::is_sorted(values, std::ranges::greater()));
  double of_squares = 0, of_fourths = 0;
  for (const double value : values) of_squares += value * value, of_fourths += std::pow(value, 4);
  QVERIFY(std::abs(of_squares / squares - 1) < 1e-10);
  QVERIFY(std::abs(of_fourths / fourths - 1) < 1e-10);
}

void SpectrumTest::signal_stands_out_of_noise() {
  const auto ratio = [](const std::vector<float>& matrix, bool per_largest = true) {
    const auto values = singular_values(matrix, 120, 200);
    return signal_to_noise(values, 120, 200) * (per_largest ? 1 : values.front());
  };
  // By hand: of 4, 3, 2, 1 the quartiles are 1.75 and 3.25; the bound 1.5 / 1.349 * 2 = 2.22.
  QVERIFY(std::abs(signal_to_noise(std::vector<double>{4, 3, 2, 1}, 4, 4) - 7.0 / 3 / 4) < 1e-12);
  QCOMPARE(signal_to_noise(std::vector<double>{0, 0}, 2, 2), 0.0);

  QVERIFY(ratio(with_signal(120, 200, 8, 3, 0.01f), false) > 100 * ratio(noise(120 * 200, 3, 0.01f), false));
}

void SpectrumTest::the_best_of_each_kind_are_named() {
  ModelConfig config;
  config.vocab_size = 64, config.hidden_size = 32, config.intermediate_size = 48, config.num_hidden_layers = 4;
  config.num_attention_heads = 4, config.num_key_value_heads = 2, config.head_dim = 8;
  const ParameterLayout layout = canonical_layout(config);
  std::vector<float> parameters = noise(static_cast<std::size_t>(layout.numel), 5, 0.01f);
  const auto give_signal = [&](const std::string& name, unsigned seed) {
    const auto& parameter = *std::ranges::find(layout.parameters, name, &ParameterInfo::name);
    std::ranges::copy(with_signal(parameter.shape[0], parameter.shape[1], 6, seed, 0.001f),
                      parameters.begin() + parameter.offset);
  };
  // Several directions of one size over little noise, fewer than a quarter of all: the quartiles are the noise's.
  give_signal("model.layers.2.self_attn.q_proj.weight", 100);
  give_signal("model.layers.1.mlp.down_proj.weight", 200);
  const ReadParameters read = [&](std::int64_t offset, std::span<float> values) {
    std::copy_n(parameters.begin() + offset, values.size(), values.begin());
    return ok_status();
  };

  const auto best = best_by_signal_to_noise(layout, 0.25, read, {}).value();

  QCOMPARE(best.size(), std::size_t{7});  // one of four, of seven kinds
  QVERIFY(std::ranges::find(best, "model.layers.2.self_attn.q_proj.weight") != best.end());
  QVERIFY(std::ranges::find(best, "model.layers.1.mlp.down_proj.weight") != best.end());
  QCOMPARE(best_by_signal_to_noise(layout, 1, read, {}).value().size(), std::size_t{28});
  const ReadParameters fails = [](std::int64_t, std::span<float>) { return Error{ErrorCode::kAborted, "Ctrl-C"}; };
  QCOMPARE(best_by_signal_to_noise(layout, 0.5, fails, {}).error().code, ErrorCode::kAborted);
}

QTEST_APPLESS_MAIN(SpectrumTest)
#include "spectrum_test.moc"
