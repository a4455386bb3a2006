// A tokenizer that is written as a tokenizer.json makes the same tokens as before, in Atoll and in HuggingFace's own
// program, where there is one (tokenizer_run_test).
#include <QtTest>

#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/tokenizer/byte_tokenizer.h"
#include "net/tokenizer/huggingface_writer.h"
#include "net/tokenizer/load_tokenizer.h"

using namespace atl;

namespace {

using nlohmann::json;

std::string golden(const std::string& name) {
  auto content = read_file(std::string(ATOLL_TEST_DATA_DIR "/tokenizer/") + name);
  if (!content.ok()) qFatal("%s", content.error().message.c_str());
  return std::move(content).value();
}

std::unique_ptr<Tokenizer> tokenizer_of(std::string_view content, std::optional<SplitPattern> pattern = std::nullopt) {
  auto made = read_tokenizer(content, pattern);
  if (!made.ok()) qFatal("%s", made.error().message.c_str());
  return std::move(made).value();
}

std::vector<TokenId> ids_of(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<TokenId> ids;
  if (!tokenizer.encode(text, SpecialText::kIsToken, *tokenizer.make_scratch(), ids).ok()) ids.clear();
  return ids;
}

// The texts of the golden file, and all bytes.
std::vector<std::string> texts() {
  std::vector<std::string> all;
  for (const json& text : json::parse(golden("expected.json")).at("texts")) all.push_back(text.get<std::string>());
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  all.push_back(std::move(bytes));
  return all;
}

}  // namespace

class HuggingfaceWriterTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void ranks_become_merges_that_make_the_same_tokens_data();
  void ranks_become_merges_that_make_the_same_tokens();
  void a_tokenizer_json_stays_as_it_is();
  void bytes_are_a_tokenizer_without_merges();
  void texts_of_llama_3_begin_with_their_token();
  void what_is_no_tokenizer_is_refused();
  void the_configuration_names_the_ends_of_texts();
};

void HuggingfaceWriterTest::ranks_become_merges_that_make_the_same_tokens_data() {
  QTest::addColumn<QString>("pattern");
  for (const char* const name : {"gpt2", "cl100k_base", "llama3", "qwen2", "o200k_base"}) {
    QTest::newRow(name) << QString(name);
  }
}

void HuggingfaceWriterTest::ranks_become_merges_that_make_the_same_tokens() {
  QFETCH(const QString, pattern);
  const auto cut = parse_split_pattern(pattern.toStdString());
  const auto before = tokenizer_of(golden("small.tiktoken"), cut);

  const auto written = to_huggingface(golden("small.tiktoken"), cut);

  QVERIFY2(written.ok(), written.ok() ? "" : written.error().message.c_str());
  const auto after = tokenizer_of(written->content);
  QCOMPARE(after->facts().vocab_size, before->facts().vocab_size);
  QCOMPARE(after->facts().kind, before->facts().kind);
  QCOMPARE(after->facts().end_of_text, before->facts().end_of_text);
  for (const SpecialToken& token : before->facts().special_tokens) QCOMPARE(after->special_token(token.name), token.id);
  // HuggingFace's program numbers them itself: a hole would move those behind it.
  for (TokenId id = 2048; id < after->facts().vocab_size; ++id) QVERIFY(after->is_special(id));
  for (const std::string& text : texts()) QCOMPARE(ids_of(*after, text), ids_of(*before, text));
}

void HuggingfaceWriterTest::a_tokenizer_json_stays_as_it_is() {
  for (const char* const name : {"tokenizer.json", "characters.json"}) {
    const std::string content = golden(name);
    const auto file = to_huggingface(content);
    QCOMPARE(file->content, content);
    QCOMPARE(file->name, std::string("tokenizer.json"));
    const json config = json::parse(tokenizer_config(*file->tokenizer, {.longest = 2048}));
    QCOMPARE(config.at("tokenizer_class").get<std::string>(), std::string("PreTrainedTokenizerFast"));
  }
}

void HuggingfaceWriterTest::bytes_are_a_tokenizer_without_merges() {
  const ByteTokenizer before;
  const auto after = tokenizer_of(byte_tokenizer_to_huggingface());
  QCOMPARE(after->facts().vocab_size, before.facts().vocab_size);
  QCOMPARE(after->facts().end_of_text, before.facts().end_of_text);
  for (const std::string& text : texts()) QCOMPARE(ids_of(*after, text), ids_of(before, text));
  QCOMPARE(ids_of(*after, "a<|endoftext|>b"), (std::vector<TokenId>{'a', 256, 'b'}));
}

void HuggingfaceWriterTest::texts_of_llama_3_begin_with_their_token() {
  const auto llama = tokenizer_of(to_huggingface(golden("small.tiktoken"), SplitPattern::kLlama3)->content);
  QVERIFY(llama->facts().begins_with_token);
  QCOMPARE(llama->facts().begin_of_text, llama->special_token("<|begin_of_text|>"));
  const auto gpt2 = tokenizer_of(to_huggingface(golden("small.tiktoken"), SplitPattern::kGpt2)->content);
  QVERIFY(!gpt2->facts().begins_with_token);
}

void HuggingfaceWriterTest::what_is_no_tokenizer_is_refused() {
  for (const char* const content : {"", "{}", "{\"model\": 1}", "not a tokenizer\n"}) {
    QVERIFY2(!to_huggingface(content).ok(), content);
  }
  const auto twice = to_huggingface(golden("tokenizer.json"), SplitPattern::kGpt2);
  QVERIFY(!twice.ok());
  QVERIFY2(twice.error().message.find("name none") != std::string::npos, twice.error().message.c_str());
}

void HuggingfaceWriterTest::the_configuration_names_the_ends_of_texts() {
  const auto llama = tokenizer_of(golden("small.tiktoken"), SplitPattern::kLlama3);
  const json config = json::parse(tokenizer_config(*llama, {.longest = 8192}));
  QCOMPARE(config.at("bos_token").get<std::string>(), std::string("<|begin_of_text|>"));
  QCOMPARE(config.at("eos_token").get<std::string>(), std::string("<|end_of_text|>"));
  QCOMPARE(config.at("model_max_length").get<int>(), 8192);
  QCOMPARE(config.at("tokenizer_class").get<std::string>(), std::string("PreTrainedTokenizerFast"));
}

QTEST_GUILESS_MAIN(HuggingfaceWriterTest)
#include "huggingface_writer_test.moc"
