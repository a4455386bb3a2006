// Model directories are written in shards as transformers names them, in either type, whole or not at all.
#include "net/model_files/model_writer.h"

#include <sys/resource.h>

#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <csignal>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "net/base/file.h"
#include "net/model_files/model_reader.h"

namespace {

using namespace atl;
using nlohmann::json;

std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(ATOLL_TEST_DATA_DIR) / "model_files" / name;
}

std::set<std::string> files_in(const std::filesystem::path& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) names.insert(entry.path().filename());
  return names;
}

json json_in(const std::filesystem::path& path) { return json::parse(read_file(path).value()); }

// Files may not grow beyond so many bytes: the system refuses as it does on a full disk.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    if (::getrlimit(RLIMIT_FSIZE, &before_) != 0) qFatal("getrlimit");
    const rlimit small{bytes, before_.rlim_max};
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) qFatal("setrlimit");
  }
  ~SmallFiles() { (void)::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

class ModelWriterTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() {
    directory_ = std::make_unique<QTemporaryDir>();
    model_ = read_model_directory(golden("sharded-float32")).value();
  }
  void shards_are_those_that_transformers_writes_data();
  void shards_are_those_that_transformers_writes();
  void values_may_come_in_any_pieces();
  void bf16_is_rounded_as_torch_rounds_it();
  void a_tensor_that_is_larger_than_a_shard_has_its_own();
  void config_json_says_the_type();
  void texts_begin_and_end_as_the_configuration_says();
  void what_is_there_of_another_model_goes();
  void a_full_disk_leaves_the_old_model_data();
  void a_full_disk_leaves_the_old_model();
  void what_is_never_finished_leaves_nothing();

 private:
  std::filesystem::path path() const { return directory_->path().toStdString(); }
  Status write(const ModelFilesOptions& options) const {
    return write_model_directory(path(), model_.config, model_.parameters, options);
  }

  std::unique_ptr<QTemporaryDir> directory_;
  ModelDirectory model_;
};

void ModelWriterTest::shards_are_those_that_transformers_writes_data() {
  QTest::addColumn<QString>("type");
  for (const char* type : {"float32", "bfloat16"}) QTest::newRow(type) << type;
}

// The same tensors are in as many files, whose names are those; transformers takes other tensors first.
void ModelWriterTest::shards_are_those_that_transformers_writes() {
  QFETCH(const QString, type);
  const std::filesystem::path theirs = golden("sharded-" + type.toStdString());

  QVERIFY(write({.dtype = *parse_model_dtype(type.toStdString()), .max_shard_bytes = 6000}).ok());

  QCOMPARE(files_in(path()), files_in(theirs));
  const json ours = json_in(path() / kIndexFile), index = json_in(theirs / kIndexFile);
  QCOMPARE(ours.at("metadata").dump(), index.at("metadata").dump());
  std::set<std::string> names, expected;
  for (const auto& [name, file] : ours.at("weight_map").items()) names.insert(name);
  for (const auto& [name, file] : index.at("weight_map").items()) expected.insert(name);
  QCOMPARE(names, expected);
}

void ModelWriterTest::values_may_come_in_any_pieces() {
  ModelWriter writer = ModelWriter::create(path(), model_.config, {.max_shard_bytes = 6000}).value();
  const auto numel = static_cast<std::int64_t>(model_.parameters.size());

  // The last piece first; none ends where a tensor or a shard does.
  for (std::int64_t first = (numel - 1) / 777 * 777; first >= 0; first -= 777) {
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(777, numel - first));
    QVERIFY(writer.write(first, std::span(model_.parameters).subspan(static_cast<std::size_t>(first), count)).ok());
  }
  QVERIFY(std::move(writer).finish().ok());

  QVERIFY(read_model_directory(path())->parameters == model_.parameters);
}

void ModelWriterTest::bf16_is_rounded_as_torch_rounds_it() {
  const auto expected = SafetensorsFile::open(golden("expected.safetensors")).value().floats("bfloat16");

  QVERIFY(write({.dtype = ModelDtype::kBfloat16}).ok());

  const ModelReader reader = ModelReader::open(path()).value();
  QVERIFY(reader.is_bf16());
  QVERIFY(read_model_directory(path())->parameters == expected.value());
  // What is bf16 already is written as it is.
  QVERIFY(
      write_model_directory(path() / "again", model_.config, expected.value(), {.dtype = ModelDtype::kBfloat16}).ok());
  QVERIFY(read_file(path() / "again" / kSingleFile).value() == read_file(path() / kSingleFile).value());
}

void ModelWriterTest::a_tensor_that_is_larger_than_a_shard_has_its_own() {
  QVERIFY(write({.max_shard_bytes = 1}).ok());

  const json map = json_in(path() / kIndexFile).at("weight_map");
  std::set<std::string> files;
  for (const auto& [name, file] : map.items()) files.insert(file.get<std::string>());
  QCOMPARE(files.size(), map.size());
  QVERIFY(read_model_directory(path())->parameters == model_.parameters);
}

void ModelWriterTest::config_json_says_the_type() {
  for (const ModelDtype dtype : {ModelDtype::kBfloat16, ModelDtype::kFloat32}) {
    QVERIFY(write({.dtype = dtype}).ok());

    const json config = json_in(path() / kConfigFile);
    QCOMPARE(config.at("dtype").get<std::string>(), std::string(name_of(dtype)));
    QCOMPARE(config.at("torch_dtype").get<std::string>(), std::string(name_of(dtype)));
  }
}

void ModelWriterTest::texts_begin_and_end_as_the_configuration_says() {
  QVERIFY(write({}).ok());
  QCOMPARE(json_in(path() / kGenerationConfigFile).dump(), R"({"bos_token_id":1,"eos_token_id":[2,3]})");

  model_.config.bos_token_ids.clear();
  model_.config.eos_token_ids = {5};
  QVERIFY(write({}).ok());
  QCOMPARE(json_in(path() / kGenerationConfigFile).dump(), R"({"eos_token_id":5})");

  model_.config.pad_token_id = 4;
  QVERIFY(write({}).ok());
  QCOMPARE(json_in(path() / kGenerationConfigFile).dump(), R"({"eos_token_id":5,"pad_token_id":4})");
  QCOMPARE(json_in(path() / kConfigFile).at("pad_token_id").get<int>(), 4);
}

void ModelWriterTest::what_is_there_of_another_model_goes() {
  QVERIFY(write({.max_shard_bytes = 6000}).ok());
  QVERIFY(write_file_atomically(path() / "notes.txt", "mine", FileMode::kPublic).ok());
  QVERIFY(write_file_atomically(path() / kChatTemplateFile, "another model's", FileMode::kPublic).ok());

  QVERIFY(write({}).ok());
  QCOMPARE(files_in(path()), (std::set<std::string>{kConfigFile, kGenerationConfigFile, kSingleFile, "notes.txt"}));

  QVERIFY(write({.max_shard_bytes = 6000}).ok());
  QVERIFY(!files_in(path()).contains(kSingleFile));
  QVERIFY(read_model_directory(path())->parameters == model_.parameters);
}

void ModelWriterTest::a_full_disk_leaves_the_old_model_data() {
  QTest::addColumn<quint64>("old_shard_bytes");
  QTest::addColumn<quint64>("shard_bytes");
  const quint64 one_file = std::numeric_limits<qint64>::max();
  QTest::newRow("one file") << one_file << one_file;
  QTest::newRow("shards") << quint64{6000} << quint64{9000};
}

void ModelWriterTest::a_full_disk_leaves_the_old_model() {
  QFETCH(const quint64, old_shard_bytes);
  QFETCH(const quint64, shard_bytes);
  QVERIFY(write({.max_shard_bytes = old_shard_bytes}).ok());
  const std::set<std::string> files = files_in(path());
  const std::vector<float> old = model_.parameters;
  model_.parameters[0] += 1;

  {
    const SmallFiles limit(8000);
    QVERIFY(!write({.max_shard_bytes = shard_bytes}).ok());
  }

  QCOMPARE(files_in(path()), files);
  QVERIFY(read_model_directory(path())->parameters == old);
}

void ModelWriterTest::what_is_never_finished_leaves_nothing() {
  {
    ModelWriter writer = ModelWriter::create(path(), model_.config, {.max_shard_bytes = 6000}).value();
    QVERIFY(writer.write(0, model_.parameters).ok());
  }

  QVERIFY(files_in(path()).empty());
}

QTEST_GUILESS_MAIN(ModelWriterTest)
#include "model_writer_test.moc"
