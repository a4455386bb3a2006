// An exported directory has what HuggingFace transformers looks for, under its names, in its types and shapes, and
// nothing else: beside what transformers itself saves of models of the same shapes (tests/golden/make_exports.py).
// Needs no Python; export_transformers_test lets transformers open exports.
#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "net/base/file.h"
#include "net/model/layout.h"
#include "net/model_files/model_reader.h"
#include "net/model_files/model_writer.h"
#include "net/model_files/safetensors.h"

namespace {

using namespace atl;
using nlohmann::json;

json json_of(const std::filesystem::path& path) { return json::parse(read_file(path).value()); }

json golden(const char* name) {
  return json_of(std::filesystem::path(ATOLL_TEST_DATA_DIR) / "exports" / (std::string(name) + ".json"));
}

// Each parameter different from its neighbours.
std::vector<float> some_parameters(const ModelConfig& config) {
  std::vector<float> parameters(static_cast<std::size_t>(canonical_layout(config).numel));
  for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] = static_cast<float>(i);
  return parameters;
}

// The header, as it stands in the file.
json header_of(const std::filesystem::path& safetensors) {
  const std::string file = read_file(safetensors).value();
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  return json::parse(file.substr(sizeof length, length));
}

}  // namespace

class ExportGoldenTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void config_json_says_what_transformers_reads_data() { shape_rows(); }
  void config_json_says_what_transformers_reads();
  void config_json_says_the_rope_in_the_older_spelling_too_data() { shape_rows(); }
  void config_json_says_the_rope_in_the_older_spelling_too();
  void the_tensors_are_those_that_transformers_saves_data() { shape_rows(); }
  void the_tensors_are_those_that_transformers_saves();
  void what_is_exported_is_read_back_data() { shape_rows(); }
  void what_is_exported_is_read_back();

 private:
  static void shape_rows();
  // Exports a model of the golden shape.
  std::filesystem::path exported(const json& golden) const;

  QTemporaryDir directory_;
};

void ExportGoldenTest::shape_rows() {
  QTest::addColumn<QString>("shape");
  QTest::newRow("tied embeddings") << "tied";
  QTest::newRow("an untied head, two heads a key") << "untied";
  QTest::newRow("one key for all heads, scaled rope") << "scaled";
  QTest::newRow("an untied head, two heads a key, scaled rope") << "scaled-untied";
}

std::filesystem::path ExportGoldenTest::exported(const json& golden) const {
  const std::filesystem::path directory = directory_.filePath(QTest::currentDataTag()).toStdString();
  const ModelConfig config = model_config_from_json(golden.at("config").dump()).value();
  if (!write_model_directory(directory, config, some_parameters(config)).ok()) qFatal("the export failed");
  return directory;
}

void ExportGoldenTest::config_json_says_what_transformers_reads() {
  QFETCH(const QString, shape);
  const json theirs = golden(qPrintable(shape));
  const auto defaults = theirs.at("may_be_missing").get<std::set<std::string>>();

  const json ours = json_of(exported(theirs) / "config.json");

  for (const auto& [key, value] : theirs.at("config").items()) {
    if (!ours.contains(key)) {
      QVERIFY2(defaults.contains(key), qPrintable(QString("%1 is missing").arg(key.c_str())));
      continue;
    }
    QVERIFY2(ours.at(key) == value,
             qPrintable(QString("%1 is %2, in transformers %3")
                            .arg(key.c_str(), ours.at(key).dump().c_str(), value.dump().c_str())));
  }
  // Of other names there are those of transformers 4 alone.
  const std::set<std::string> older{"rope_theta", "rope_scaling", "torch_dtype"};
  for (const auto& [key, value] : ours.items()) {
    QVERIFY2(theirs.at("config").contains(key) || older.contains(key), key.c_str());
  }
}

// transformers 4: rope_theta beside, rope_scaling null where nothing is scaled, the type as torch_dtype.
void ExportGoldenTest::config_json_says_the_rope_in_the_older_spelling_too() {
  QFETCH(const QString, shape);
  const json theirs = golden(qPrintable(shape));
  json scaling = theirs.at("config").at("rope_parameters");
  const json theta = scaling.at("rope_theta");
  scaling.erase("rope_theta");
  if (scaling.at("rope_type") == "default") scaling = nullptr;

  const json ours = json_of(exported(theirs) / "config.json");

  QVERIFY(ours.at("rope_theta") == theta);
  QVERIFY(ours.at("rope_scaling") == scaling);
  QVERIFY(ours.at("torch_dtype") == theirs.at("config").at("dtype"));
}

void ExportGoldenTest::the_tensors_are_those_that_transformers_saves() {
  QFETCH(const QString, shape);
  const json theirs = golden(qPrintable(shape));

  json ours = header_of(exported(theirs) / "model.safetensors");

  QVERIFY(ours.at("__metadata__") == theirs.at("metadata"));
  ours.erase("__metadata__");
  for (const auto& [name, tensor] : theirs.at("tensors").items()) {
    QVERIFY2(ours.contains(name), name.c_str());
    QCOMPARE(ours.at(name).at("dtype").get<std::string>(), tensor.at("dtype").get<std::string>());
    QCOMPARE(ours.at(name).at("shape").dump(), tensor.at("shape").dump());
  }
  // A head that is tied is not saved: transformers would take it for an untied one.
  for (const auto& [name, tensor] : ours.items()) QVERIFY2(theirs.at("tensors").contains(name), name.c_str());
}

void ExportGoldenTest::what_is_exported_is_read_back() {
  QFETCH(const QString, shape);
  const json theirs = golden(qPrintable(shape));

  const ModelDirectory model = read_model_directory(exported(theirs)).value();

  QVERIFY(model.config == model_config_from_json(theirs.at("config").dump()).value());
  QVERIFY(model.parameters == some_parameters(model.config));
}

QTEST_GUILESS_MAIN(ExportGoldenTest)
#include "export_golden_test.moc"
