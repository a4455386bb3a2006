// safetensors files are written so that others read them, and headers that lie are refused.
#include "net/model_files/safetensors.h"

#include <QTemporaryDir>
#include <QtTest>

#include <cstring>

#include "net/base/printable.h"
#include "net/model/layout.h"
#include "net/model_files/model_reader.h"
#include "net/model_files/model_writer.h"
#include "tests/net/model_files/safetensors_text.h"

namespace {

using namespace atl;
using namespace atl::test;

std::string file_with(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(data_bytes, '\1');
}

}  // namespace

class SafetensorsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void what_is_written_reads_back();
  void halves_are_widened();
  void lying_headers_are_refused_data();
  void lying_headers_are_refused();
  void a_truncated_file_is_refused();
  void a_missing_tensor_is_named();
  void a_model_with_tensors_that_nobody_computes_is_refused_data();
  void a_model_with_tensors_that_nobody_computes_is_refused();

 private:
  std::filesystem::path path(const char* name) const { return directory_.filePath(name).toStdString(); }
  QTemporaryDir directory_;
};

void SafetensorsTest::what_is_written_reads_back() {
  const std::vector<float> a{1.5f, -2.0f, 3.25f, 0.0f, 1e-30f, 7.0f};
  const std::vector<float> b{42.0f};
  const std::vector entries{fp32_tensor("a", {2, 3}, a), fp32_tensor("b", {}, b)};
  QVERIFY(write_tensors(path("whole"), entries).ok());

  const SafetensorsFile file = SafetensorsFile::open(path("whole")).value();

  QCOMPARE(file.floats("a").value(), a);
  QCOMPARE(file.tensor("a").value().shape, (std::vector<std::int64_t>{2, 3}));
  QCOMPARE(file.floats("b").value(), b);
}

void SafetensorsTest::halves_are_widened() {
  std::string content = file_with(
      R"({"f": {"dtype": "F16", "shape": [3], "data_offsets": [0, 6]}, "b": {"dtype": "BF16", "shape": [1], "data_offsets": [6, 8]}})",
      0);
  const std::uint16_t values[] = {0x3c00, 0xc500, 0x0001, 0x4049};  // 1, -5, the smallest subnormal; 3.140625
  content.append(reinterpret_cast<const char*>(values), sizeof values);
  QVERIFY(write_file_atomically(path("halves"), content, FileMode::kPublic).ok());

  const SafetensorsFile file = SafetensorsFile::open(path("halves")).value();

  QCOMPARE(file.floats("f").value(), (std::vector<float>{1.0f, -5.0f, 0x1p-24f}));
  QCOMPARE(file.floats("b").value(), (std::vector<float>{3.140625f}));
}

void SafetensorsTest::lying_headers_are_refused_data() {
  QTest::addColumn<QString>("header");
  const char* tensor = R"({"a": {"dtype": "F32", "shape": %1, "data_offsets": %2}})";
  const auto with = [&](const char* shape, const char* offsets) { return QString(tensor).arg(shape, offsets); };
  QTest::newRow("beyond the end") << with("[3]", "[0, 12]");
  QTest::newRow("backwards") << with("[2]", "[8, 0]");
  QTest::newRow("shape and length differ") << with("[1]", "[0, 8]");
  QTest::newRow("overflowing shape") << with("[4294967296, 4294967296, 2]", "[0, 8]");
  QTest::newRow("negative shape") << with("[-2]", "[0, 8]");
  QTest::newRow("bytes left over") << with("[1]", "[0, 4]");
  QTest::newRow("a hole at the beginning") << with("[1]", "[4, 8]");
  QTest::newRow("overlap") << R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                                  "b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})";
  QTest::newRow("unknown type") << R"({"a": {"dtype": "F99", "shape": [2], "data_offsets": [0, 8]}})";
  QTest::newRow("no offsets") << R"({"a": {"dtype": "F32", "shape": [2]}})";
  QTest::newRow("not an object") << "[]";
  QTest::newRow("not JSON") << "{";
  QTest::newRow("deep") << QString(10000, '[');
}

void SafetensorsTest::lying_headers_are_refused() {
  QFETCH(QString, header);
  QVERIFY(write_file_atomically(path("lying"), file_with(header.toStdString(), 8), FileMode::kPublic).ok());

  const auto file = SafetensorsFile::open(path("lying"));

  QVERIFY(!file.ok());
  QCOMPARE(file.error().code, ErrorCode::kCorrupt);
}

void SafetensorsTest::a_truncated_file_is_refused() {
  const std::vector<float> values(100, 1.0f);
  const std::vector entries{fp32_tensor("values", {100}, values)};
  QVERIFY(write_tensors(path("whole"), entries).ok());
  const std::string whole = read_file(path("whole")).value();

  for (const std::size_t length : {std::size_t{0}, std::size_t{5}, std::size_t{8}, std::size_t{40}, whole.size() - 1}) {
    QVERIFY(write_file_atomically(path("cut"), whole.substr(0, length), FileMode::kPublic).ok());
    QVERIFY(!SafetensorsFile::open(path("cut")).ok());
  }
}

void SafetensorsTest::a_missing_tensor_is_named() {
  const std::vector<float> values{1.0f};
  const std::vector entries{fp32_tensor("present", {1}, values)};
  QVERIFY(write_tensors(path("one"), entries).ok());

  const auto missing = SafetensorsFile::open(path("one")).value().floats("absent");

  QCOMPARE(missing.error().code, ErrorCode::kNotFound);
  QVERIFY(missing.error().message.find("absent") != std::string::npos);
}

void SafetensorsTest::a_model_with_tensors_that_nobody_computes_is_refused_data() {
  QTest::addColumn<bool>("tied");
  QTest::addColumn<QString>("name");
  QTest::addColumn<bool>("accepted");
  QTest::newRow("a bias") << false << "model.layers.0.self_attn.q_proj.bias" << false;
  QTest::newRow("a layer more") << false << "model.layers.1.input_layernorm.weight" << false;
  QTest::newRow("a name to break the screen") << false << "\x1b[2J" << false;
  QTest::newRow("frequencies, which follow") << false << "model.layers.0.self_attn.rotary_emb.inv_freq" << true;
  QTest::newRow("a tied head of another shape") << true << "lm_head.weight" << false;
}

void SafetensorsTest::a_model_with_tensors_that_nobody_computes_is_refused() {
  QFETCH(const bool, tied);
  QFETCH(const QString, name);
  QFETCH(const bool, accepted);
  ModelConfig config;
  config.vocab_size = 5;
  config.hidden_size = 4;
  config.intermediate_size = 8;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 2;
  config.tie_word_embeddings = tied;
  const ParameterLayout layout = canonical_layout(config);
  const std::vector<float> values(static_cast<std::size_t>(layout.numel), 0.5f), more(3, 1.0f);
  QVERIFY(write_model_directory(path("model"), config, values).ok());
  QVERIFY(read_model_directory(path("model")).ok());
  std::vector<TensorText> entries;
  for (const ParameterInfo& parameter : layout.parameters) {
    entries.push_back(fp32_tensor(parameter.name, parameter.shape,
                                  std::span(values).first(static_cast<std::size_t>(parameter.numel))));
  }
  entries.push_back(fp32_tensor(name.toStdString(), {3}, more));
  QVERIFY(write_tensors(path("model") / "model.safetensors", entries).ok());

  const auto model = read_model_directory(path("model"));

  QCOMPARE(model.ok(), accepted);
  if (!accepted) {
    QCOMPARE(model.error().code, ErrorCode::kCorrupt);
    QVERIFY(model.error().message.find(printable(name.toStdString())) != std::string::npos);
  }
}

QTEST_GUILESS_MAIN(SafetensorsTest)
#include "safetensors_test.moc"
