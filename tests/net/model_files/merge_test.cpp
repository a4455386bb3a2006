// Models are merged as mergekit merges them (tests/golden/make_model_files.py), whatever their size, and only models of
// one shape.
#include "net/model_files/merge.h"

#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "net/base/file.h"
#include "net/model_files/end_tokens.h"
#include "net/model_files/merge_models.h"
#include "net/model_files/model_reader.h"

namespace {

using namespace atl;

// mergekit computes in fp32: of values below 2, each of some ten operations is off by at most half a unit in the last
// place, 2^-24 of them.
constexpr float kTolerance = 1e-6f;

const SafetensorsFile& golden() {
  static const SafetensorsFile file =
      SafetensorsFile::open(std::filesystem::path(ATOLL_TEST_DATA_DIR) / "model_files/merges.safetensors").value();
  return file;
}

using Tensors = std::vector<std::vector<float>>;

// The last one is the base, where there is one.
std::vector<float> merged(const MergeRecipe& recipe, const Tensors& inputs, std::size_t index = 0) {
  const MergeInput input = [&](std::size_t which, std::int64_t first, std::span<float> out) {
    std::copy_n(inputs[which].begin() + first, out.size(), out.begin());
  };
  const auto numel = static_cast<std::int64_t>(inputs[0].size());
  const ParameterMerge merge(recipe, input, numel, index);
  std::vector<float> out(inputs[0].size());
  for (std::int64_t first = 0; first < numel; first += ParameterMerge::kPieceNumel) {
    merge.merge(first, std::span(out).subspan(static_cast<std::size_t>(first),
                                              std::min<std::size_t>(ParameterMerge::kPieceNumel, out.size() - first)));
  }
  return out;
}

float furthest(std::span<const float> a, std::span<const float> b) {
  float most = a.size() == b.size() ? 0.0f : INFINITY;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

// Numbers between -1 and 1 that repeat seldom, different with each `salt`.
std::vector<float> numbers(std::size_t count, std::uint64_t salt) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = (i + 1) * 0x9e3779b97f4a7c15u ^ (salt * 0xd1342543de82ef95u);
    values[i] = static_cast<float>((bits * bits * 0x2545f4914f6cdd1du) >> 40) * 0x1p-23f - 1.0f;
  }
  return values;
}

}  // namespace

class MergeTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() { directory_ = std::make_unique<QTemporaryDir>(); }
  void merges_are_those_of_mergekit_data();
  void merges_are_those_of_mergekit();
  void ties_keeps_the_largest_of_many_pieces();
  void ties_keeps_exactly_its_part_where_values_are_equal();
  void a_density_of_one_keeps_all();
  void dare_keeps_its_part_and_the_absolute_sum();
  void dare_draws_by_seed_model_and_parameter();
  void slerp_ends_at_its_models();
  void recipes_that_mean_nothing_are_refused();
  void whole_models_are_merged_in_shards();
  void models_that_differ_are_refused_with_what_differs();
  void tokens_that_end_a_text_may_differ();
  void a_merge_ends_texts_where_its_first_model_does();
  void a_merge_keeps_within_documents_where_all_its_models_do();
  void an_input_is_never_written_over();
  void a_merge_that_is_aborted_leaves_nothing();

 private:
  std::filesystem::path path(const std::string& name) const { return directory_->filePath(name.c_str()).toStdString(); }
  ModelConfig config() const;
  std::vector<float> write(const std::string& name, std::uint64_t salt, const ModelFilesOptions& options = {}) const;
  Result<std::int64_t> merge(const ModelMerge& merge) const {
    return merge_models(
        merge, AbortSignal(), [](std::int64_t, std::int64_t) {}, [this](const std::string& note) { notes_ += note; });
  }

  std::unique_ptr<QTemporaryDir> directory_;
  mutable std::string notes_;
};

void MergeTest::merges_are_those_of_mergekit_data() {
  QTest::addColumn<QString>("expected");
  QTest::addColumn<QString>("method");
  QTest::addColumn<double>("lambda");
  QTest::addColumn<double>("last_density");
  QTest::addColumn<int>("normalize");  // -1: as the method does
  QTest::newRow("linear") << "linear"
                          << "linear" << 1.0 << 0.7 << -1;
  QTest::newRow("linear, not divided") << "linear-plain"
                                       << "linear" << 1.0 << 0.7 << 0;
  for (const char* method : {"task-arithmetic", "ties", "dare-linear", "dare-ties"}) {
    QTest::newRow(method) << method << method << 1.0 << 0.7 << -1;
    QTest::addRow("%s, lambda and the other normalize", method)
        << QString("%1-other").arg(method) << method << 0.6 << 1.0 << (std::string_view(method) == "ties" ? 0 : 1);
  }
}

void MergeTest::merges_are_those_of_mergekit() {
  QFETCH(const QString, expected);
  QFETCH(const QString, method);
  QFETCH(const double, lambda);
  QFETCH(const double, last_density);
  QFETCH(const int, normalize);
  MergeRecipe recipe{.method = *parse_merge_method(method.toStdString()),
                     .weights = {0.5, 0.3, 0.8},
                     .densities = {0.4, 0.25, last_density},
                     .lambda = lambda,
                     .seed = 7};
  if (normalize >= 0) recipe.normalize = normalize == 1;
  QVERIFY(recipe.validate().ok());
  Tensors inputs;
  for (const char* name : {"a", "b", "c", "base"}) inputs.push_back(golden().floats(name).value());

  const float apart = furthest(merged(recipe, inputs), golden().floats(expected.toStdString()).value());

  QVERIFY2(apart <= kTolerance, std::to_string(apart).c_str());
}

void MergeTest::slerp_ends_at_its_models() {
  const auto tensor = [](const char* name) { return golden().floats(name).value(); };
  MergeRecipe recipe{.method = MergeMethod::kSlerp, .weights = {1, 1}, .t = 0.3};
  std::vector<float> near = tensor("base");
  for (float& value : near) value *= 1.01f;

  QVERIFY(furthest(merged(recipe, {tensor("a"), tensor("far")}), tensor("slerp")) <= kTolerance);
  QVERIFY(furthest(merged(recipe, {tensor("base"), near}), tensor("slerp-near")) <= kTolerance);
  recipe.t = 0;
  QVERIFY(furthest(merged(recipe, {tensor("a"), tensor("far")}), tensor("a")) <= kTolerance);
  recipe.t = 1;
  QVERIFY(furthest(merged(recipe, {tensor("a"), tensor("far")}), tensor("far")) <= kTolerance);
}

// Sorted by another algorithm.
void MergeTest::ties_keeps_the_largest_of_many_pieces() {
  const std::size_t count = 2 * ParameterMerge::kPieceNumel + 12345;
  const Tensors inputs{numbers(count, 1), std::vector<float>(count)};
  const MergeRecipe recipe{.method = MergeMethod::kTies, .weights = {1}, .densities = {0.3}};
  std::vector<float> sorted(count);
  std::ranges::transform(inputs[0], sorted.begin(), [](float value) { return std::abs(value); });
  std::ranges::sort(sorted, std::greater{});
  const auto kept = static_cast<std::size_t>(0.3 * static_cast<double>(count));
  const float least = sorted[kept - 1];

  const std::vector<float> out = merged(recipe, inputs);

  QCOMPARE(static_cast<std::size_t>(std::ranges::count_if(out, [](float value) { return value != 0; })), kept);
  for (std::size_t i = 0; i < count; ++i) {
    if (std::abs(inputs[0][i]) > least) QCOMPARE(out[i], inputs[0][i]);
    if (std::abs(inputs[0][i]) < least) QCOMPARE(out[i], 0.0f);
  }
}

void MergeTest::ties_keeps_exactly_its_part_where_values_are_equal() {
  const std::size_t count = 2 * ParameterMerge::kPieceNumel + 5;
  const Tensors inputs{std::vector<float>(count, -0.5f), std::vector<float>(count)};

  const std::vector<float> out = merged({.method = MergeMethod::kTies, .weights = {1}, .densities = {0.75}}, inputs);

  const auto kept = static_cast<std::size_t>(0.75 * static_cast<double>(count));
  QCOMPARE(static_cast<std::size_t>(std::ranges::count(out, -0.5f)), kept);
  QCOMPARE(static_cast<std::size_t>(std::ranges::count(std::span(out).first(kept), -0.5f)), kept);
}

void MergeTest::a_density_of_one_keeps_all() {
  const Tensors inputs{numbers(1000, 1), numbers(1000, 2), numbers(1000, 3)};
  const MergeRecipe plain{.method = MergeMethod::kTaskArithmetic, .weights = {0.5, 0.25}};
  const MergeRecipe dare{.method = MergeMethod::kDareLinear, .weights = {0.5, 0.25}, .densities = {1, 1}};

  QCOMPARE(merged(dare, inputs), merged(plain, inputs));
}

void MergeTest::dare_keeps_its_part_and_the_absolute_sum() {
  const std::size_t count = 2 * ParameterMerge::kPieceNumel + 999;
  const Tensors inputs{numbers(count, 1), std::vector<float>(count)};

  const std::vector<float> out =
      merged({.method = MergeMethod::kDareLinear, .weights = {1}, .densities = {0.2}}, inputs);

  // Binomial: five standard deviations of the number kept.
  const double n = static_cast<double>(count);
  const auto kept = static_cast<double>(std::ranges::count_if(out, [](float value) { return value != 0; }));
  QVERIFY(std::abs(kept - 0.2 * n) < 5 * std::sqrt(n * 0.2 * 0.8));
  const auto absolute = [](double sum, float value) { return sum + std::abs(double{value}); };
  const double before = std::accumulate(inputs[0].begin(), inputs[0].end(), 0.0, absolute);
  const double after = std::accumulate(out.begin(), out.end(), 0.0, absolute);
  QVERIFY(std::abs(after - before) <= 1e-6 * before);
}

void MergeTest::dare_draws_by_seed_model_and_parameter() {
  const std::vector<float> ones(2000, 1.0f);
  const Tensors inputs{ones, ones, std::vector<float>(2000)};
  const auto draw = [&](std::uint64_t seed, std::vector<double> weights, std::size_t parameter) {
    return merged({.method = MergeMethod::kDareLinear, .weights = weights, .densities = {0.5, 0.5}, .seed = seed},
                  inputs, parameter);
  };
  const std::vector<float> once = draw(1, {1, 0}, 0);

  QCOMPARE(draw(1, {1, 0}, 0), once);
  QVERIFY(draw(2, {1, 0}, 0) != once);
  QVERIFY(draw(1, {0, 1}, 0) != once);
  QVERIFY(draw(1, {1, 0}, 1) != once);
}

void MergeTest::recipes_that_mean_nothing_are_refused() {
  QVERIFY(!MergeRecipe{}.validate().ok());
  QVERIFY(!(MergeRecipe{.method = MergeMethod::kSlerp, .weights = {1, 1, 1}}).validate().ok());
  QVERIFY(!(MergeRecipe{.method = MergeMethod::kLinear, .weights = {1, -1}}).validate().ok());
  QVERIFY((MergeRecipe{.method = MergeMethod::kLinear, .weights = {1, -1}, .normalize = false}).validate().ok());
  QVERIFY(!(MergeRecipe{.method = MergeMethod::kLinear, .weights = {NAN}}).validate().ok());
  QVERIFY(!(MergeRecipe{.method = MergeMethod::kTies, .weights = {1}}).validate().ok());
  QVERIFY(!(MergeRecipe{.method = MergeMethod::kTies, .weights = {1}, .densities = {0}}).validate().ok());
  QVERIFY(!(MergeRecipe{.method = MergeMethod::kTies, .weights = {1}, .densities = {1.1}}).validate().ok());
}

ModelConfig MergeTest::config() const {
  ModelConfig config;
  config.vocab_size = 40;
  config.hidden_size = 8;
  config.intermediate_size = 16;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 4;
  return config;
}

std::vector<float> MergeTest::write(const std::string& name, std::uint64_t salt,
                                    const ModelFilesOptions& options) const {
  std::vector<float> values = numbers(static_cast<std::size_t>(canonical_layout(config()).numel), salt);
  if (!write_model_directory(path(name), config(), values, options).ok()) qFatal("cannot write %s", name.c_str());
  return values;
}

void MergeTest::whole_models_are_merged_in_shards() {
  const std::vector<float> a = write("a", 1, {.max_shard_bytes = 1500}), b = write("b", 2), base = write("base", 3);
  QVERIFY(write_file_atomically(path("base") / "tokenizer.json", "{}", FileMode::kPublic).ok());
  const MergeRecipe recipe{.method = MergeMethod::kTies, .weights = {0.5, 0.25}, .densities = {0.5, 0.5}};

  const auto numel = merge({.recipe = recipe,
                            .models = {path("a"), path("b")},
                            .base = path("base"),
                            .output = path("out"),
                            .files = {.dtype = ModelDtype::kFloat32, .max_shard_bytes = 2000}});

  QVERIFY2(numel.ok(), numel.ok() ? "" : numel.error().message.c_str());
  const ModelReader out = ModelReader::open(path("out")).value();
  QCOMPARE(*numel, out.layout().numel);
  QVERIFY(std::filesystem::exists(path("out") / kIndexFile));
  QCOMPARE(read_file(path("out") / "tokenizer.json").value(), std::string("{}"));
  QVERIFY(read_file(path("out") / "README.md")->find("| model | a, weight 0.5, density 0.5 |") != std::string::npos);
  for (std::size_t i = 0; i < out.layout().parameters.size(); ++i) {
    const ParameterInfo& info = out.layout().parameters[i];
    const auto part = [&](const std::vector<float>& values) {
      const auto first = values.begin() + info.offset;
      return std::vector<float>(first, first + info.numel);
    };
    std::vector<float> written(static_cast<std::size_t>(info.numel));
    out.read(info.offset, written);
    QCOMPARE(written, merged(recipe, {part(a), part(b), part(base)}, i));
  }
}

void MergeTest::models_that_differ_are_refused_with_what_differs() {
  write("a", 1);
  ModelConfig other = config();
  other.rope_theta = 500000;
  const std::vector<float> values(static_cast<std::size_t>(canonical_layout(other).numel));
  QVERIFY(write_model_directory(path("b"), other, values).ok());

  const auto numel = merge({.recipe = {.method = MergeMethod::kLinear, .weights = {1, 1}},
                            .models = {path("a"), path("b")},
                            .output = path("out")});

  QCOMPARE(numel.error().code, ErrorCode::kInvalidArgument);
  QVERIFY(numel.error().message.find("rope") != std::string::npos);
  QVERIFY(numel.error().message.find("500000") != std::string::npos);
  QVERIFY(!std::filesystem::exists(path("out")));
}

void MergeTest::tokens_that_end_a_text_may_differ() {
  write("a", 1);
  ModelConfig other = config();
  other.eos_token_ids = {3};
  const std::vector<float> values(static_cast<std::size_t>(canonical_layout(other).numel));
  QVERIFY(write_model_directory(path("b"), other, values).ok());

  QVERIFY(merge({.recipe = {.method = MergeMethod::kLinear, .weights = {1, 1}},
                 .models = {path("b"), path("a")},
                 .output = path("out")})
              .ok());

  QVERIFY(ModelReader::open(path("out"))->config().eos_token_ids == other.eos_token_ids);
}

void MergeTest::a_merge_ends_texts_where_its_first_model_does() {
  write("a", 1);
  write("b", 2);
  QVERIFY(write_file_atomically(path("a") / "generation_config.json", R"({"eos_token_id": [5, 7]})", FileMode::kPublic)
              .ok());

  QVERIFY(merge({.recipe = {.method = MergeMethod::kLinear, .weights = {1, 1}},
                 .models = {path("a"), path("b")},
                 .output = path("out")})
              .ok());

  const auto ends = *end_tokens(path("out"), ModelReader::open(path("out"))->config());
  for (const std::int64_t end : {5, 7}) QVERIFY(std::ranges::find(ends, end) != ends.end());
}

void MergeTest::a_merge_keeps_within_documents_where_all_its_models_do() {
  write("a", 1, {.attention = AttentionScope::kDocument});
  write("b", 2, {.attention = AttentionScope::kDocument});
  write("packed", 3);
  const auto attention_of = [&](const std::vector<std::filesystem::path>& models) {
    std::filesystem::remove_all(path("out"));
    const auto merged =
        merge({.recipe = {.method = MergeMethod::kLinear, .weights = {1, 1}}, .models = models, .output = path("out")});
    return merged.ok() ? ModelReader::open(path("out"))->attention() : std::nullopt;
  };

  QVERIFY(attention_of({path("a"), path("b")}) == AttentionScope::kDocument);
  QVERIFY(!attention_of({path("a"), path("packed")}));
}

void MergeTest::an_input_is_never_written_over() {
  const std::vector<float> a = write("a", 1);
  write("b", 2);

  const auto numel = merge({.recipe = {.method = MergeMethod::kLinear, .weights = {1, 1}},
                            .models = {path("a"), path("b")},
                            .output = path("b/../a")});

  QCOMPARE(numel.error().code, ErrorCode::kInvalidArgument);
  QVERIFY(read_model_directory(path("a"))->parameters == a);
}

void MergeTest::a_merge_that_is_aborted_leaves_nothing() {
  write("a", 1);
  write("b", 2);
  AbortSignal abort;

  const auto numel = merge_models(
      {.recipe = {.method = MergeMethod::kLinear, .weights = {1, 1}},
       .models = {path("a"), path("b")},
       .output = path("out")},
      abort, [&](std::int64_t, std::int64_t) { abort.raise("enough"); }, [](const std::string&) {});

  QCOMPARE(numel.error().code, ErrorCode::kAborted);
  QVERIFY(std::filesystem::is_empty(path("out")));
}

QTEST_GUILESS_MAIN(MergeTest)
#include "merge_test.moc"
