// Model directories of others are read piece by piece, and whatever in them lies is refused. What transformers saves is
// read as what it is (tests/golden/make_model_files.py).
#include "net/model_files/model_reader.h"

#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/model_files/end_tokens.h"
#include "net/model_files/model_writer.h"
#include "tests/net/model_files/safetensors_text.h"

namespace {

using namespace atl;
using namespace atl::test;
using nlohmann::json;

std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(ATOLL_TEST_DATA_DIR) / "model_files" / name;
}

ModelConfig small_model(bool tied) {
  ModelConfig config;
  config.vocab_size = 5;
  config.hidden_size = 4;
  config.intermediate_size = 8;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 2;
  config.tie_word_embeddings = tied;
  return config;
}

std::vector<float> counted(std::int64_t numel) {
  std::vector<float> values(static_cast<std::size_t>(numel));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return values;
}

}  // namespace

class ModelReaderTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() { directory_ = std::make_unique<QTemporaryDir>(); }
  void what_transformers_saves_in_shards_is_read_data();
  void what_transformers_saves_in_shards_is_read();
  void any_part_of_a_model_can_be_read_alone();
  void a_tied_head_is_not_asked_for();
  void a_head_of_its_own_is_kept_whatever_the_config_says_data();
  void a_head_of_its_own_is_kept_whatever_the_config_says();
  void a_head_alone_is_the_embedding_too();
  void a_single_file_goes_before_shards();
  void an_index_that_lies_is_refused_data();
  void an_index_that_lies_is_refused();
  void a_missing_shard_is_named();
  void a_tensor_in_two_shards_is_refused();
  void a_tensor_of_another_shape_is_refused();
  void a_missing_tensor_is_named();
  void whole_numbers_are_no_parameters();
  void texts_end_where_the_generation_config_says_else_the_config_data();
  void texts_end_where_the_generation_config_says_else_the_config();
  void a_generation_config_that_is_none_is_refused_data();
  void a_generation_config_that_is_none_is_refused();

 private:
  std::filesystem::path path() const { return directory_->path().toStdString(); }
  // An untied small model in shards, index and all; values counted.
  void write_shards() const;
  json index() const { return json::parse(read_file(path() / kIndexFile).value()); }
  void write_index(const json& index) const { write_text(kIndexFile, index.dump()); }
  void write_text(const std::string& name, const std::string& text) const {
    QVERIFY(write_file_atomically(path() / name, text, FileMode::kPublic).ok());
  }

  std::unique_ptr<QTemporaryDir> directory_;
};

void ModelReaderTest::write_shards() const {
  const ModelConfig config = small_model(false);
  QVERIFY(
      write_model_directory(path(), config, counted(canonical_layout(config).numel), {.max_shard_bytes = 600}).ok());
  QVERIFY(std::filesystem::exists(path() / "model-00002-of-00003.safetensors"));
}

void ModelReaderTest::what_transformers_saves_in_shards_is_read_data() {
  QTest::addColumn<QString>("type");
  for (const char* type : {"float32", "bfloat16", "float16"}) QTest::newRow(type) << type;
}

void ModelReaderTest::what_transformers_saves_in_shards_is_read() {
  QFETCH(const QString, type);
  const auto expected = SafetensorsFile::open(golden("expected.safetensors")).value().floats(type.toStdString());

  const auto reader = ModelReader::open(golden("sharded-" + type.toStdString()));

  QVERIFY2(reader.ok(), reader.ok() ? "" : reader.error().message.c_str());
  QCOMPARE(reader->is_bf16(), type == "bfloat16");
  std::vector<float> values(static_cast<std::size_t>(reader->layout().numel));
  reader->read(0, values);
  QVERIFY(values == expected.value());
}

void ModelReaderTest::any_part_of_a_model_can_be_read_alone() {
  write_shards();
  const ModelReader reader = ModelReader::open(path()).value();
  const std::vector<float> all = counted(reader.layout().numel);

  // Within a tensor, from one to the next, over several shards.
  for (const auto& [first, count] :
       {std::pair{0, 1}, {3, 7}, {19, 2}, {5, 300}, {static_cast<int>(all.size()) - 1, 1}}) {
    std::vector<float> part(static_cast<std::size_t>(count));
    reader.read(first, part);
    QVERIFY(std::ranges::equal(part, std::span(all).subspan(static_cast<std::size_t>(first), part.size())));
  }
}

void ModelReaderTest::a_tied_head_is_not_asked_for() {
  const ModelConfig config = small_model(true);
  const std::vector<float> values = counted(canonical_layout(config).numel);
  QVERIFY(write_model_directory(path(), config, values, {.max_shard_bytes = 600}).ok());

  const auto model = read_model_directory(path());

  QVERIFY(!index().at("weight_map").contains("lm_head.weight"));
  QVERIFY(model->parameters == values);
}

// As transformers 5 loads such a file.
void ModelReaderTest::a_head_of_its_own_is_kept_whatever_the_config_says_data() {
  QTest::addColumn<bool>("same");
  QTest::newRow("another matrix") << false;
  QTest::newRow("the embedding once more") << true;
}

void ModelReaderTest::a_head_of_its_own_is_kept_whatever_the_config_says() {
  QFETCH(const bool, same);
  const ModelConfig untied = small_model(false), tied = small_model(true);
  std::vector<float> values = counted(canonical_layout(untied).numel);
  const auto embedding = static_cast<std::ptrdiff_t>(canonical_layout(untied).parameters.front().numel);
  if (same) std::copy_n(values.begin(), embedding, values.end() - embedding);
  QVERIFY(write_model_directory(path(), untied, values).ok());
  write_text(kConfigFile, to_json(tied));

  const ModelReader reader = ModelReader::open(path()).value();

  QCOMPARE(reader.config().tie_word_embeddings, same);
  QCOMPARE(reader.note().empty(), same);
  QVERIFY(same || reader.note().find("lm_head.weight") != std::string::npos);
  if (same) values.resize(values.size() - static_cast<std::size_t>(embedding));
  QVERIFY(read_model_directory(path())->parameters == values);
}

void ModelReaderTest::a_head_alone_is_the_embedding_too() {
  const ModelConfig config = small_model(true);
  const std::vector<float> values = counted(canonical_layout(config).numel);
  QVERIFY(write_model_directory(path(), config, values).ok());
  // Of the same length: nothing else of the header changes.
  std::string file = read_file(path() / kSingleFile).value();
  const std::string name = "\"model.embed_tokens.weight\"", head = "\"lm_head.weight\"";
  file.replace(file.find(name), name.size(), head + std::string(name.size() - head.size(), ' '));
  write_text(kSingleFile, file);

  const auto model = read_model_directory(path());

  QVERIFY2(model.ok(), model.ok() ? "" : model.error().message.c_str());
  QVERIFY(model->config.tie_word_embeddings);
  QVERIFY(model->parameters == values);
}

void ModelReaderTest::a_single_file_goes_before_shards() {
  write_shards();
  const ModelConfig config = small_model(false);
  const std::vector<float> other(static_cast<std::size_t>(canonical_layout(config).numel), 7.0f);
  const std::filesystem::path elsewhere = path() / "other";
  QVERIFY(write_model_directory(elsewhere, config, other).ok());
  std::filesystem::rename(elsewhere / kSingleFile, path() / kSingleFile);

  QVERIFY(read_model_directory(path())->parameters == other);
}

void ModelReaderTest::an_index_that_lies_is_refused_data() {
  QTest::addColumn<QString>("file");
  QTest::newRow("outside the directory") << "../model.safetensors";
  QTest::newRow("an absolute path") << "/etc/passwd";
  QTest::newRow("in a directory within") << "a/b.safetensors";
  QTest::newRow("the directory above") << "..";
  QTest::newRow("none") << "";
  QTest::newRow("another shard") << "model-00003-of-00003.safetensors";
}

void ModelReaderTest::an_index_that_lies_is_refused() {
  QFETCH(const QString, file);
  write_shards();
  json lying = index();
  lying["weight_map"]["model.embed_tokens.weight"] = file.toStdString();
  write_index(lying);

  const auto reader = ModelReader::open(path());

  QVERIFY(!reader.ok());
  QCOMPARE(reader.error().code, ErrorCode::kCorrupt);
  for (const std::string text :
       {"[]", "{}", "{\"weight_map\": 3}", "{\"weight_map\": {}}", "{\"weight_map\": {\"a\": 3}}", "{"}) {
    write_text(kIndexFile, text);
    QCOMPARE(ModelReader::open(path()).error().code, ErrorCode::kCorrupt);
  }
}

void ModelReaderTest::a_missing_shard_is_named() {
  write_shards();
  std::filesystem::remove(path() / "model-00002-of-00003.safetensors");

  const auto reader = ModelReader::open(path());

  QCOMPARE(reader.error().code, ErrorCode::kNotFound);
  QVERIFY(reader.error().message.find("model-00002-of-00003.safetensors is missing") != std::string::npos);
}

void ModelReaderTest::a_tensor_in_two_shards_is_refused() {
  write_shards();
  const std::filesystem::path shard = path() / "model-00002-of-00003.safetensors";
  const SafetensorsFile file = SafetensorsFile::open(shard).value();
  std::vector<TensorText> tensors{fp32_tensor("model.embed_tokens.weight", {5, 4}, counted(20))};
  for (const auto& [name, tensor] : file.tensors()) {
    tensors.push_back(fp32_tensor(name, tensor.shape, file.floats(name).value()));
  }
  QVERIFY(write_tensors(shard, tensors).ok());

  const auto reader = ModelReader::open(path());

  QCOMPARE(reader.error().code, ErrorCode::kCorrupt);
  QVERIFY(reader.error().message.find("model.embed_tokens.weight") != std::string::npos);
}

void ModelReaderTest::a_tensor_of_another_shape_is_refused() {
  write_shards();
  json config = json::parse(read_file(path() / kConfigFile).value());
  config["intermediate_size"] = 7;
  write_text(kConfigFile, config.dump());

  const auto reader = ModelReader::open(path());

  QCOMPARE(reader.error().code, ErrorCode::kCorrupt);
  QVERIFY(reader.error().message.find("gate_proj.weight has shape [8, 4], and [7, 4]") != std::string::npos);
}

void ModelReaderTest::a_missing_tensor_is_named() {
  const ModelConfig config = small_model(false);
  QVERIFY(write_model_directory(path(), config, counted(canonical_layout(config).numel)).ok());
  QVERIFY(write_tensors(path() / kSingleFile, {fp32_tensor("model.embed_tokens.weight", {5, 4}, counted(20))}).ok());

  const auto reader = ModelReader::open(path());

  QCOMPARE(reader.error().code, ErrorCode::kNotFound);
  QVERIFY(reader.error().message.find("model.layers.0.self_attn.q_proj.weight") != std::string::npos);
}

void ModelReaderTest::whole_numbers_are_no_parameters() {
  const ModelConfig config = small_model(false);
  QVERIFY(write_model_directory(path(), config, counted(canonical_layout(config).numel)).ok());
  QVERIFY(write_tensors(path() / kSingleFile,
                        {tensor_of_bytes("model.embed_tokens.weight", "I32", {5, 4}, std::string(80, '\0'))})
              .ok());

  const auto reader = ModelReader::open(path());

  QCOMPARE(reader.error().code, ErrorCode::kInvalidArgument);
  QVERIFY(reader.error().message.find("I32") != std::string::npos);
}

void ModelReaderTest::texts_end_where_the_generation_config_says_else_the_config_data() {
  QTest::addColumn<QString>("content");
  QTest::addColumn<QList<int>>("expected");
  QTest::newRow("no file") << QString() << QList<int>{4};
  QTest::newRow("it says nothing") << "{\"bos_token_id\": 1}" << QList<int>{4};
  QTest::newRow("null") << "{\"eos_token_id\": null}" << QList<int>{4};
  QTest::newRow("one") << "{\"eos_token_id\": 2}" << QList<int>{2};
  QTest::newRow("several, as chats have") << "{\"eos_token_id\": [2, 3]}" << QList<int>{2, 3};
}

void ModelReaderTest::texts_end_where_the_generation_config_says_else_the_config() {
  QFETCH(const QString, content);
  QFETCH(const QList<int>, expected);
  ModelConfig config = small_model(false);
  config.eos_token_ids = {4};
  if (!content.isEmpty()) write_text(kGenerationConfigFile, content.toStdString());

  const auto ends = end_tokens(path(), config);

  QVERIFY(ends.ok());
  QCOMPARE(*ends, (std::vector<std::int64_t>{expected.begin(), expected.end()}));
}

void ModelReaderTest::a_generation_config_that_is_none_is_refused_data() {
  QTest::addColumn<QString>("content");
  QTest::newRow("no JSON") << "{";
  QTest::newRow("a list") << "[2]";
  QTest::newRow("a text") << "{\"eos_token_id\": \"2\"}";
  QTest::newRow("a list of others") << "{\"eos_token_id\": [2, 3.5]}";
}

void ModelReaderTest::a_generation_config_that_is_none_is_refused() {
  QFETCH(const QString, content);
  write_text(kGenerationConfigFile, content.toStdString());

  const auto ends = end_tokens(path(), small_model(false));

  QVERIFY(!ends.ok());
  QCOMPARE(ends.error().code, ErrorCode::kCorrupt);
  QVERIFY(ends.error().message.find(kGenerationConfigFile) != std::string::npos);
}

QTEST_GUILESS_MAIN(ModelReaderTest)
#include "model_reader_test.moc"
