// An island's model is exported as the outer state is, from memory and from its checkpoint, with a card that says what
// is known, and leaves alone what somebody else wrote.
#include "trainer/island/model_export.h"

#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/base/sha256.h"
#include "net/data/chat_template.h"
#include "net/data/run_dataset.h"
#include "net/model_files/model_reader.h"
#include "trainer/island/island_disk.h"

using namespace atl;

namespace {

ModelConfig small_model() {
  ModelConfig config;
  config.vocab_size = 2048;
  config.hidden_size = 640;
  config.intermediate_size = 640;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 4;
  return config;
}

}  // namespace

class ModelExportTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void memory_and_checkpoint_give_the_same_model();
  void a_state_that_is_not_there_is_said();
  void the_card_says_what_is_known();
  void the_card_of_somebody_else_stays();
  void the_card_names_sources_with_their_licences();
  void the_card_names_who_contributed();
  void what_others_say_is_text_in_the_card_data();
  void what_others_say_is_text_in_the_card();
  void how_it_attends_is_said_in_card_and_config();
  void what_learned_chats_brings_their_template();
  void a_named_outer_step_is_exported_or_said_not_to_be_there();

 private:
  std::filesystem::path path(const std::string& name) const { return directory_->filePath(name.c_str()).toStdString(); }
  OuterStep exported(ModelCard card, const std::string& name) const {
    return export_outer_state(*outer_, model_, std::move(card), path("data"), path(name), {}).value();
  }

  std::unique_ptr<QTemporaryDir> directory_;
  const ModelConfig model_ = small_model();
  std::unique_ptr<OuterStateStore> outer_;
  std::vector<float> parameters_;
};

// More than a chunk of the state: the last one is short.
void ModelExportTest::init() {
  directory_ = std::make_unique<QTemporaryDir>();
  parameters_.resize(static_cast<std::size_t>(canonical_layout(model_).numel));
  QVERIFY(parameters_.size() > kStateChunkNumel && parameters_.size() % kStateChunkNumel != 0);
  for (std::size_t i = 0; i < parameters_.size(); ++i) parameters_[i] = static_cast<float>(i);
  outer_ = std::make_unique<OuterStateStore>(static_cast<std::int64_t>(parameters_.size()));
  outer_->replace({OuterStep{7}, parameters_, std::vector<float>(parameters_.size(), -1.0f)});
}

void ModelExportTest::memory_and_checkpoint_give_the_same_model() {
  IslandDisk disk(path("checkpoint"));
  disk.of_run(model_, 1, {});
  QVERIFY(write_snapshot(disk, *outer_).ok());

  QCOMPARE(exported({}, "from memory"), OuterStep{7});
  const auto step =
      export_checkpoint(path("checkpoint"), {}, path("data"), path("from disk"), {.max_shard_bytes = 6'000'000});

  QCOMPARE(step.value(), OuterStep{7});
  QVERIFY(std::filesystem::exists(path("from disk") / kIndexFile));
  for (const char* name : {"from memory", "from disk"}) {
    QVERIFY(read_model_directory(path(name))->parameters == parameters_);
  }
}

void ModelExportTest::a_state_that_is_not_there_is_said() {
  const OuterStateStore none(static_cast<std::int64_t>(parameters_.size()));

  QCOMPARE(export_outer_state(none, model_, {}, path("data"), path("a"), {}).error().code, ErrorCode::kNotFound);
  QCOMPARE(export_checkpoint(path("nowhere"), {}, path("data"), path("a"), {}).error().code, ErrorCode::kNotFound);
  QVERIFY(!std::filesystem::exists(path("a")));
}

void ModelExportTest::the_card_says_what_is_known() {
  const auto card = [&](const std::string& name) { return read_file(path(name) / "README.md").value(); };
  RunConfig run;
  run.inner_steps = 123;
  run.outer_momentum = 0.875;

  exported({.run_id = "0123456789abcdef", .run_name = "first | run"}, "little");
  exported({.run_id = "0123456789abcdef", .run_name = "first", .run = run}, "much");

  QVERIFY(card("little").starts_with("---\nlibrary_name: transformers\n"));
  QVERIFY(card("little").find("first \\| run (0123456789abcdef); the outer parameters after round 7") !=
          std::string::npos);
  QVERIFY(card("little").find("## Training") == std::string::npos);
  QVERIFY(card("much").find("| inner steps a round (H) | 123 |") != std::string::npos);
  QVERIFY(card("much").find("Nesterov momentum 0.875") != std::string::npos);
  QVERIFY(card("much").find("## Data") == std::string::npos);  // this run has none
}

void ModelExportTest::the_card_of_somebody_else_stays() {
  exported({.run_name = "one"}, "a");
  exported({.run_name = "two"}, "a");
  QVERIFY(read_file(path("a") / "README.md")->find("# two") != std::string::npos);

  QVERIFY(write_file_atomically(path("a") / "README.md", "mine", FileMode::kPublic).ok());
  exported({.run_name = "three"}, "a");

  QCOMPARE(read_file(path("a") / "README.md").value(), std::string("mine"));
}

void ModelExportTest::the_card_names_sources_with_their_licences() {
  RunDataset data;
  const TreeRoot root{1000, 100, std::string(64, 'a')};
  data.sources = {{"web", 800'000'000, std::string(64, 'b'), {}, root, {}, "CC-BY-4.0 OR MIT"},
                  {"code", 200'000'000, std::string(64, 'c'), {}, root, {}, ""}};
  RunConfig run;
  run.dataset_json = data.to_json();
  const ModelCard card{.run_name = "mixed", .run = run};

  const std::string text = model_card(card, model_, 7);

  QVERIFY2(text.find("| web | 80 % | 1000 | CC-BY-4.0 OR MIT |") != std::string::npos, text.c_str());
  QVERIFY2(text.find("| code | 20 % | 1000 | unknown |") != std::string::npos, text.c_str());
}

void ModelExportTest::the_card_names_who_contributed() {
  const std::string text =
      model_card({.run_name = "a", .contributors = {{"Reef", 12, 3000}, {"", 1, 50, 2}}}, model_, 7);
  QVERIFY2(text.find("on 3050 tokens") != std::string::npos, text.c_str());
  QVERIFY2(text.find("| Reef | 3000 | 12 |\n| 2 that are not named | 50 | 1 |") != std::string::npos, text.c_str());
  QVERIFY(model_card({.run_name = "a"}, model_, 7).find("Contributors") == std::string::npos);
}

void ModelExportTest::what_others_say_is_text_in_the_card_data() {
  QTest::addColumn<QByteArray>("name");
  QTest::addColumn<QByteArray>("shown");
  QTest::newRow("a link") << QByteArray("[free](http://evil)") << QByteArray("\\[free\\]\\(http\\://evil\\)");
  QTest::newRow("another cell") << QByteArray("a | 9999") << QByteArray("a \\| 9999");
  QTest::newRow("HTML") << QByteArray("<img src=x>&amp;") << QByteArray("\\<img src\\=x\\>\\&amp;");
  QTest::newRow("another line") << QByteArray("a\n## b") << QByteArray();
  QTest::newRow("code") << QByteArray("`a`") << QByteArray("\\`a\\`");
  QTest::newRow("emphasis") << QByteArray("**a** _b_ ~~c~~") << QByteArray("\\*\\*a\\*\\* \\_b\\_ \\~\\~c\\~\\~");
  QTest::newRow("a picture") << QByteArray("![x](y)") << QByteArray("\\!\\[x\\]\\(y\\)");
  QTest::newRow("somebody") << QByteArray("@somebody #7") << QByteArray("\\@somebody \\#7");
  QTest::newRow("a bare host") << QByteArray("www.evil") << QByteArray("www\\.evil");
  QTest::newRow("a backslash") << QByteArray("\\|") << QByteArray("\\\\\\|");
  QTest::newRow("a formula") << QByteArray("$x$") << QByteArray("\\$x\\$");
  QTest::newRow("its own mark") << QByteArray("--- <!-- --") << QByteArray("--- \\<\\!-- --");
  QTest::newRow("letters of all kinds") << QByteArray(
                                               "R\xc3\xa9"
                                               "cif-2.0 v1")
                                        << QByteArray(
                                               "R\xc3\xa9"
                                               "cif-2.0 v1");
}

void ModelExportTest::what_others_say_is_text_in_the_card() {
  QFETCH(const QByteArray, name);
  QFETCH(const QByteArray, shown);
  const ModelCard card{.run_name = "a", .contributors = {{name.toStdString(), 1, 64}}};

  const std::string text = model_card(card, model_, 7);

  const std::size_t lines = static_cast<std::size_t>(std::ranges::count(text, '\n'));
  const ModelCard plain{.run_name = "a", .contributors = {{"x", 1, 64}}};
  const std::string other = model_card(plain, model_, 7);
  QCOMPARE(lines, static_cast<std::size_t>(std::ranges::count(other, '\n')));
  if (shown.isEmpty()) return;
  QVERIFY2(text.find("| " + shown.toStdString() + " | 64 | 1 |") != std::string::npos, text.c_str());
}

void ModelExportTest::how_it_attends_is_said_in_card_and_config() {
  RunConfig run;
  exported({.run_name = "a", .run = run}, "packed");
  run.attention = AttentionScope::kDocument;
  exported({.run_name = "a", .run = run}, "within");

  QVERIFY(!ModelReader::open(path("packed"))->attention());
  QVERIFY(ModelReader::open(path("within"))->attention() == AttentionScope::kDocument);
  QVERIFY(read_file(path("within") / "README.md")->find("| attention | kept within a document") != std::string::npos);
  // Who writes another word there is told.
  std::string config = *read_file(path("within") / kConfigFile);
  config.replace(config.find("\"document\""), 10, "\"chapters\"");
  QVERIFY(write_file_atomically(path("within") / kConfigFile, config, FileMode::kPublic).ok());
  QVERIFY(ModelReader::open(path("within")).error().message.find(kAttentionKey) != std::string::npos);
}

// Over an export of chats, too, one of other data brings none.
void ModelExportTest::what_learned_chats_brings_their_template() {
  const std::filesystem::path golden = ATOLL_TEST_DATA_DIR;
  nlohmann::json tokenizer = nlohmann::json::parse(read_file(golden / "tokenizer" / "tokenizer.json").value());
  const auto chats = nlohmann::json::parse(read_file(golden / "chat" / "llama3.json").value());
  tokenizer.update(chats.at("patch"));
  const std::string file = tokenizer.dump();
  QVERIFY(make_directories(path("data")).ok());
  QVERIFY(write_file_atomically(path("data") / "tokenizer.json", file, FileMode::kPublic).ok());
  RunDataset data;
  data.vocab_size = 2053;
  data.tokenizer_file = {"tokenizer.json", file.size(), sha256_hex(as_bytes(file))};
  data.chat_template = kLlama3ChatTemplateName;
  data.sources = {{"chats", 1'000'000'000, std::string(64, 'b'), {}, {1000, 100, std::string(64, 'a')}, {}, ""}};
  RunConfig run;
  run.dataset_json = data.to_json();
  QCOMPARE(facts_of_run_data(run.dataset_json)->chat_template, data.chat_template);
  const auto config = [&] { return nlohmann::json::parse(*read_file(path("a") / "tokenizer_config.json")); };

  exported({.run = run}, "a");
  QCOMPARE(config().at("chat_template"), chats.at("template"));
  QCOMPARE(config().at("eos_token").get<std::string>(), std::string("<|eot_id|>"));
  QCOMPARE(*read_file(path("a") / kChatTemplateFile), chats.at("template").get<std::string>());

  data.chat_template.clear();
  run.dataset_json = data.to_json();
  exported({.run = run}, "a");
  QVERIFY(!config().contains("chat_template"));
  QCOMPARE(config().at("eos_token").get<std::string>(), std::string("<|end_of_text|>"));
  QVERIFY(!std::filesystem::exists(path("a") / kChatTemplateFile));
}

void ModelExportTest::a_named_outer_step_is_exported_or_said_not_to_be_there() {
  IslandDisk disk(path("checkpoint"));
  disk.of_run(model_, 1, {.keep = 3, .rounds = {}});
  QVERIFY(write_snapshot(disk, *outer_).ok());
  std::vector<float> later = parameters_;
  for (float& value : later) value += 1;
  outer_->replace({OuterStep{9}, later, std::vector<float>(later.size(), -1.0f)});
  QVERIFY(write_snapshot(disk, *outer_).ok());

  const auto export_step = [&](std::uint32_t step, const char* name) {
    return export_checkpoint(path("checkpoint"), {}, path("data"), path(name), {}, OuterStep{step});
  };
  QCOMPARE(export_step(7, "seven").value(), OuterStep{7});
  QCOMPARE(export_step(9, "nine").value(), OuterStep{9});
  const auto none = export_step(8, "eight");

  QVERIFY(read_model_directory(path("seven"))->parameters == parameters_);
  QVERIFY(read_model_directory(path("nine"))->parameters == later);
  QCOMPARE(none.error().code, ErrorCode::kNotFound);
  QVERIFY(none.error().message.find("the state after round 8") != std::string::npos);
  QVERIFY(!std::filesystem::exists(path("eight")));
}

QTEST_GUILESS_MAIN(ModelExportTest)
#include "model_export_test.moc"
