// The model with which a run begins: what can be one, what cannot and why, and the hub's copy of it, to the last bit.
#include "net/hub/base_model.h"

#include <QTemporaryDir>
#include <QtTest>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "kernels/bf16.h"
#include "net/base/encoding.h"
#include "net/base/file.h"
#include "net/data/prepare.h"
#include "net/disk/checkpoint_directory.h"
#include "net/disk/snapshot.h"
#include "net/hub/hub.h"
#include "net/model/initialise.h"
#include "net/model_files/model_reader.h"
#include "net/wire/mesh.h"
#include "tests/fakes/test_run.h"

using namespace atl;

namespace {

template <class T>
T must(Result<T> result) {
  if (!result.ok()) qFatal("%s", result.error().message.c_str());
  return std::move(result).value();
}
void must(const Status& status) {
  if (!status.ok()) qFatal("%s", status.error().message.c_str());
}

// Several chunks, the last one short.
ModelConfig wide_config(bool tied) {
  ModelConfig config = must(model_config_from_json(tiny_model_json()));
  config.vocab_size = 80'000;
  config.hidden_size = 64;
  config.tie_word_embeddings = tied;
  return config;
}

std::vector<float> rounded_to_bf16(std::vector<float> values) {
  std::vector<std::byte> halves(2 * values.size());
  encode_bf16(values.data(), values.size(), halves.data());
  decode_bf16(halves.data(), values.size(), values.data());
  return values;
}

std::string initial_hash(const std::vector<float>& parameters) {
  const std::vector<float> momentum(parameters.size());
  return to_hex(make_state_manifest(OuterStep{0}, parameters, momentum).tree_hash());
}

// As the hub sends them, chunk by chunk.
std::vector<float> parameters_of_copy(const HubHome& home) {
  const auto manifest = must(BaseModelManifest::from_json(must(read_file(home.base_model_manifest()))));
  const std::string file = must(read_file(home.base_model_parameters(), 1u << 30));
  std::vector<float> parameters;
  for (std::uint64_t i = 0; i < manifest.state.chunk_sha256.size(); ++i) {
    const ByteRange range = manifest.range_of_chunk(i);
    const Bytes chunk = base_model_chunk(as_bytes(file).subspan(range.first, range.count), manifest.dtype);
    if (sha256(chunk) != manifest.state.chunk_sha256[i]) qFatal("a chunk of the copy is not what its manifest says");
    const auto* values = reinterpret_cast<const float*>(chunk.data());
    parameters.insert(parameters.end(), values, values + chunk.size() / (2 * sizeof(float)));
  }
  return parameters;
}

bool says(const Error& error, const char* words) { return error.message.find(words) != std::string::npos; }

}  // namespace

class BaseModelTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_copy_is_the_model_to_the_last_bit_data();
  void the_copy_is_the_model_to_the_last_bit();
  void what_transformers_saved_is_copied_data();
  void what_transformers_saved_is_copied();
  void an_islands_newest_state_begins_another_run_without_its_momentum();
  void what_cannot_be_trained_is_refused_by_name_data();
  void what_cannot_be_trained_is_refused_by_name();
  void a_number_that_is_none_is_refused_with_its_parameters_name();
  void a_stop_ends_the_copying();
  void a_copy_is_made_anew_of_the_same_model_alone();
  void a_manifest_that_lies_is_refused_data();
  void a_manifest_that_lies_is_refused();

 private:
  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(directory_.path().toStdString()) / name;
  }
  HubHome new_home(const std::string& name) const {
    must(make_directories(path(name)));
    return HubHome{path(name)};
  }

  QTemporaryDir directory_;
  const AbortSignal never_;
};

void BaseModelTest::the_copy_is_the_model_to_the_last_bit_data() {
  QTest::addColumn<bool>("tied");
  QTest::addColumn<bool>("bf16");
  QTest::addColumn<quint64>("shard_bytes");
  constexpr quint64 kOne = quint64{1} << 40;
  QTest::newRow("tied, fp32, a file") << true << false << kOne;
  QTest::newRow("an untied head, fp32, shards") << false << false << quint64{9'000'000};
  QTest::newRow("tied, bf16, shards") << true << true << quint64{9'000'000};
  QTest::newRow("an untied head, bf16, a file") << false << true << kOne;
}

void BaseModelTest::the_copy_is_the_model_to_the_last_bit() {
  QFETCH(const bool, tied);
  QFETCH(const bool, bf16);
  QFETCH(const quint64, shard_bytes);
  const ModelConfig config = wide_config(tied);
  std::vector<float> parameters = fresh_parameters(config, 3);
  parameters[5] = -0.0F;
  if (bf16) parameters = rounded_to_bf16(std::move(parameters));
  const std::string name = QTest::currentDataTag();
  must(write_model_directory(path(name), config, parameters,
                             {.dtype = bf16 ? ModelDtype::kBfloat16 : ModelDtype::kFloat32,
                              .max_shard_bytes = shard_bytes,
                              .attention = tied ? AttentionScope::kDocument : AttentionScope::kPacked}));

  const BaseModel model = must(BaseModel::open(path(name), never_));
  const HubHome home = new_home("hub " + name);
  const std::string hash = must(write_base_model(model, home));

  QVERIFY(model.config() == config);
  QVERIFY(model.attention() == (tied ? std::optional(AttentionScope::kDocument) : std::nullopt));
  QCOMPARE(model.name(), name);
  const std::vector<float> copy = parameters_of_copy(home);
  QCOMPARE(copy.size(), parameters.size());
  QVERIFY(std::memcmp(copy.data(), parameters.data(), sizeof(float) * copy.size()) == 0);  // signs of zeros, too
  QCOMPARE(hash, initial_hash(parameters));
  QCOMPARE(std::filesystem::file_size(home.base_model_parameters()), (bf16 ? 2 : 4) * parameters.size());
}

void BaseModelTest::what_transformers_saved_is_copied_data() {
  QTest::addColumn<QString>("dtype");
  for (const char* dtype : {"float32", "float16", "bfloat16"}) QTest::newRow(dtype) << dtype;
}

void BaseModelTest::what_transformers_saved_is_copied() {
  QFETCH(const QString, dtype);
  const auto saved = std::filesystem::path(ATOLL_TEST_DATA_DIR) / "model_files" / ("sharded-" + dtype.toStdString());
  const HubHome home = new_home("of transformers in " + dtype.toStdString());

  const BaseModel model = must(BaseModel::open(saved, never_));
  const std::string hash = must(write_base_model(model, home));

  const std::vector<float> parameters = must(read_model_directory(saved)).parameters;
  QVERIFY(parameters_of_copy(home) == parameters);
  QCOMPARE(hash, initial_hash(parameters));
}

void BaseModelTest::an_islands_newest_state_begins_another_run_without_its_momentum() {
  const ModelConfig config = wide_config(true);
  const std::vector<float> parameters = fresh_parameters(config, 5), momentum = fresh_parameters(config, 6);
  const std::filesystem::path checkpoint = IslandHome{path("island")}.checkpoint();
  must(make_directories(checkpoint));
  must(write_file_atomically(checkpoint / kModelConfigFile, to_json(config), FileMode::kPrivate));
  const StateManifest state = make_state_manifest(OuterStep{7}, parameters, momentum);
  SnapshotWriter writer = must(SnapshotWriter::open(checkpoint / kWrittenSnapshot, parameters.size()));
  for (std::uint64_t i = 0; i < state.chunk_sha256.size(); ++i) {
    const auto first = of_chunk(std::span(parameters), i), second = of_chunk(std::span(momentum), i);
    Bytes bytes(std::as_bytes(first).begin(), std::as_bytes(first).end());
    bytes.insert(bytes.end(), std::as_bytes(second).begin(), std::as_bytes(second).end());
    must(writer.put(i, {OuterStep{7}, state.chunk_sha256[i]}, bytes));
  }
  must(std::move(writer).finish({OuterStep{7}, to_hex(state.tree_hash())}, checkpoint / kept_state_name(OuterStep{7})));

  for (const auto& named : {path("island"), checkpoint}) {
    const BaseModel model = must(BaseModel::open(named, never_));
    const HubHome home = new_home("from an island");

    QCOMPARE(must(write_base_model(model, home)), initial_hash(parameters));
    QVERIFY2(model.name().ends_with(" (after round 7)"), model.name().c_str());
    QVERIFY(parameters_of_copy(home) == parameters);
  }
}

void BaseModelTest::what_cannot_be_trained_is_refused_by_name_data() {
  QTest::addColumn<QByteArray>("change");  // of the config.json
  QTest::addColumn<QByteArray>("remove");  // a file
  QTest::addColumn<QByteArray>("says");
  QTest::newRow("another architecture") << QByteArray(R"({"architectures": ["Qwen2ForCausalLM"]})") << QByteArray()
                                        << QByteArray("architectures");
  QTest::newRow("another scaling of the rope")
      << QByteArray(R"({"rope_parameters": {"rope_type": "yarn", "factor": 2}})") << QByteArray()
      << QByteArray("rope_type");
  QTest::newRow("another shape") << QByteArray(R"({"intermediate_size": 16})") << QByteArray() << QByteArray("shape");
  QTest::newRow("a layer more") << QByteArray(R"({"num_hidden_layers": 1})") << QByteArray()
                                << QByteArray("does not have");
  QTest::newRow("no safetensors") << QByteArray("{}") << QByteArray("model.safetensors")
                                  << QByteArray("save the model in the safetensors format");
  QTest::newRow("no config.json") << QByteArray("{}") << QByteArray("config.json") << QByteArray("holds no model");
}

void BaseModelTest::what_cannot_be_trained_is_refused_by_name() {
  QFETCH(const QByteArray, change);
  QFETCH(const QByteArray, remove);
  QFETCH(const QByteArray, says);
  ModelConfig config = must(model_config_from_json(tiny_model_json()));
  config.num_hidden_layers = 2;
  const std::filesystem::path model = path(std::string("refused ") + QTest::currentDataTag());
  must(write_model_directory(model, config, fresh_parameters(config, 1)));
  auto json = nlohmann::json::parse(must(read_file(model / kConfigFile)));
  json.update(nlohmann::json::parse(change.toStdString()));
  must(write_file_atomically(model / kConfigFile, json.dump(), FileMode::kPublic));
  if (!remove.isEmpty()) std::filesystem::remove(model / remove.toStdString());

  const auto opened = BaseModel::open(model, never_);

  QVERIFY(!opened.ok());
  QVERIFY2(::says(opened.error(), says.constData()), opened.error().message.c_str());
}

void BaseModelTest::a_number_that_is_none_is_refused_with_its_parameters_name() {
  const ModelConfig config = wide_config(false);
  const auto layout = canonical_layout(config);
  std::vector<float> parameters = fresh_parameters(config, 1);
  parameters[static_cast<std::size_t>(layout.parameters.back().offset) + 3] = std::numeric_limits<float>::quiet_NaN();
  must(write_model_directory(path("nan"), config, parameters));
  const BaseModel model = must(BaseModel::open(path("nan"), never_));
  const HubHome home = new_home("hub of nan");

  const auto copied = write_base_model(model, home);

  QVERIFY(!copied.ok());
  QCOMPARE(copied.error().code, ErrorCode::kNonFinite);
  QVERIFY2(says(copied.error(), layout.parameters.back().name.c_str()), copied.error().message.c_str());
  QVERIFY(std::filesystem::is_empty(home.directory));
}

void BaseModelTest::a_stop_ends_the_copying() {
  const ModelConfig config = wide_config(true);
  must(write_model_directory(path("stopped"), config, fresh_parameters(config, 1)));
  AbortSignal abort;
  const BaseModel model = must(BaseModel::open(path("stopped"), abort));
  const HubHome home = new_home("hub of stopped");

  abort.raise("Ctrl-C");
  const auto copied = write_base_model(model, home);

  QVERIFY(!copied.ok());
  QCOMPARE(copied.error().code, ErrorCode::kAborted);
  QVERIFY(std::filesystem::is_empty(home.directory));
}

void BaseModelTest::a_copy_is_made_anew_of_the_same_model_alone() {
  std::string text;
  for (int i = 0; text.size() < 16 * 1024; ++i) text += "line " + std::to_string(i) + " of a ring of islands\n";
  must(write_file_atomically(path("text.txt"), text, FileMode::kPublic));
  must(prepare_dataset({path("text.txt")}, path("data"), {}, {}));
  const ModelConfig config = must(model_config_from_json(tiny_model_json()));
  const std::vector<float> parameters = rounded_to_bf16(fresh_parameters(config, 1));
  must(write_model_directory(path("first"), config, parameters, {.dtype = ModelDtype::kBfloat16}));
  must(write_model_directory(path("as fp32"), config, parameters));
  must(write_model_directory(path("other"), config, fresh_parameters(config, 2)));
  const BaseModel first = must(BaseModel::open(path("first"), never_));
  RunConfig run;
  run.name = "a run";
  run.model_json = to_json(config);
  run.sequence_length = 64;
  HubInitOptions options{path("hub"), {{path("data")}}, run};
  options.base_model = &first;
  const HubHome home{path("hub")};
  run = must(hub_init(options));
  QCOMPARE(run.initial_state, std::string("hub:first"));
  QCOMPARE(run.initial_state_sha256, initial_hash(parameters));
  QCOMPARE(must(kept_base_model(home, run)).dtype, ModelDtype::kBfloat16);

  std::filesystem::resize_file(home.base_model_parameters(), 100);
  const auto damaged = kept_base_model(home, run);
  const auto other = restore_base_model(path("hub"), must(BaseModel::open(path("other"), never_)));
  QVERIFY(!damaged.ok() && says(damaged.error(), "atoll hub base-model DIR"));
  QVERIFY(!other.ok() && says(other.error(), "another model"));
  QCOMPARE(std::filesystem::file_size(home.base_model_parameters()), std::uintmax_t{100});

  const auto again = must(restore_base_model(path("hub"), must(BaseModel::open(path("as fp32"), never_))));

  QCOMPARE(again.dtype, ModelDtype::kFloat32);
  QCOMPARE(to_hex(again.state.tree_hash()), run.initial_state_sha256);
  QVERIFY(parameters_of_copy(home) == parameters);
}

void BaseModelTest::a_manifest_that_lies_is_refused_data() {
  QTest::addColumn<QByteArray>("field");
  QTest::addColumn<QByteArray>("value");
  QTest::newRow("a newer version") << QByteArray("/version") << QByteArray("2");
  QTest::newRow("a dtype of its own") << QByteArray("/dtype") << QByteArray(R"("float64")");
  QTest::newRow("no dtype") << QByteArray("/dtype") << QByteArray("null");
  QTest::newRow("another outer step") << QByteArray("/state/version") << QByteArray("1");
  QTest::newRow("half a parameter") << QByteArray("/state/state_bytes") << QByteArray("12");
  QTest::newRow("more chunks than bytes") << QByteArray("/state/state_bytes") << QByteArray("999999999");
  QTest::newRow("a digest that is none") << QByteArray("/state/chunks/0") << QByteArray(R"("ab")");
}

void BaseModelTest::a_manifest_that_lies_is_refused() {
  QFETCH(const QByteArray, field);
  QFETCH(const QByteArray, value);
  const BaseModelManifest manifest{ModelDtype::kBfloat16, {OuterStep{0}, 16, std::vector<Digest>(1)}};
  const auto right = must(BaseModelManifest::from_json(manifest.to_json()));
  QCOMPARE(right.dtype, manifest.dtype);
  QCOMPARE(right.parameters_bytes(), std::uint64_t{4});
  QVERIFY(right.state.tree_hash() == manifest.state.tree_hash());
  auto json = nlohmann::json::parse(manifest.to_json());
  json[nlohmann::json::json_pointer(field.toStdString())] = nlohmann::json::parse(value.toStdString());

  QVERIFY(!BaseModelManifest::from_json(json.dump()).ok());
}

QTEST_GUILESS_MAIN(BaseModelTest)
#include "base_model_test.moc"
