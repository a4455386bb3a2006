// Models of SentencePiece: the tokens of its own program (tests/golden/make_sentencepiece.py), what stands for no text,
// and the files that an export takes along.
#include <QtTest>

#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/tokenizer/huggingface_writer.h"
#include "net/tokenizer/load_tokenizer.h"
#include "net/tokenizer/sentencepiece_tokenizer.h"

using namespace atl;

namespace {

using nlohmann::json;

std::string golden(const std::string& name) {
  auto content = read_file(std::string(ATOLL_TEST_DATA_DIR "/tokenizer/") + name);
  if (!content.ok()) qFatal("%s", content.error().message.c_str());
  return std::move(content).value();
}

}  // namespace

class SentencePieceTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void tokens_are_those_of_its_own_program();
  void text_comes_back();
  void a_token_within_text_keeps_its_space();
  void names_of_control_pieces_are_text_unless_asked_for();
  void the_file_goes_into_a_dataset_as_it_is();
  void damaged_models_are_refused();

 private:
  std::vector<TokenId> ids_of(std::string_view text, SpecialText special = SpecialText::kIsText) const {
    std::vector<TokenId> ids;
    if (!tokenizer_->encode(text, special, *tokenizer_->make_scratch(), ids).ok()) ids.clear();
    return ids;
  }

  std::string content_;
  json expected_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

void SentencePieceTest::initTestCase() {
  content_ = golden("sentencepiece.model");
  expected_ = json::parse(golden("sentencepiece.json"));
  auto made = read_tokenizer(content_);
  if (!made.ok() && made.error().message.find("this build cannot read") != std::string::npos) {
    QSKIP("this build has no SentencePiece: install libsentencepiece-dev");
  }
  QVERIFY2(made.ok(), made.ok() ? "" : made.error().message.c_str());
  tokenizer_ = std::move(*made);
}

void SentencePieceTest::tokens_are_those_of_its_own_program() {
  const TokenizerFacts& facts = tokenizer_->facts();
  QCOMPARE(facts.kind, std::string(kSentencePieceKind));
  QCOMPARE(facts.vocab_size, expected_.at("vocab_size").get<std::uint32_t>());
  QCOMPARE(facts.begin_of_text, std::optional(expected_.at("bos").get<TokenId>()));
  QCOMPARE(facts.end_of_text, std::optional(expected_.at("eos").get<TokenId>()));
  QVERIFY(facts.begins_with_token);
  for (const json& one : expected_.at("cases")) {
    QCOMPARE(ids_of(one.at("text").get<std::string>()), one.at("ids").get<std::vector<TokenId>>());
  }
}

void SentencePieceTest::text_comes_back() {
  for (const json& one : expected_.at("cases")) {
    std::string bytes;
    QVERIFY(tokenizer_->decode(one.at("ids").get<std::vector<TokenId>>(), bytes).ok());
    QCOMPARE(bytes, one.at("text").get<std::string>());
  }
  std::string bytes = "before";
  const std::vector<TokenId> wrong{5, tokenizer_->facts().vocab_size};
  QCOMPARE(tokenizer_->decode(wrong, bytes).error().code, ErrorCode::kInvalidArgument);
  QCOMPARE(bytes, std::string("before"));
}

void SentencePieceTest::a_token_within_text_keeps_its_space() {
  const std::string text = "The quick brown fox, naïve 中";
  std::string written;
  for (const TokenId id : ids_of(text)) written += tokenizer_->within_text(id);
  QCOMPARE(written, " " + text);  // as it goes on behind other text
  QCOMPARE(tokenizer_->within_text(tokenizer_->facts().end_of_text.value()), std::string());
  QCOMPARE(tokenizer_->within_text(tokenizer_->facts().vocab_size), std::string());
}

void SentencePieceTest::names_of_control_pieces_are_text_unless_asked_for() {
  const TokenId end = tokenizer_->facts().end_of_text.value();
  QVERIFY(std::ranges::count(ids_of("a</s>b"), end) == 0);
  const auto ids = ids_of("a</s>b", SpecialText::kIsToken);
  QCOMPARE(std::ranges::count(ids, end), 1);
  std::string bytes;
  QVERIFY(tokenizer_->decode(ids, bytes).ok());
  QCOMPARE(bytes, std::string("a</s>b"));
}

void SentencePieceTest::the_file_goes_into_a_dataset_as_it_is() {
  const auto file = to_huggingface(content_);
  QVERIFY(file.ok());
  QCOMPARE(file->name, std::string("tokenizer.model"));
  QVERIFY(file->content == content_);
  const json config = json::parse(tokenizer_config(*tokenizer_, {.longest = 2048}));
  QCOMPARE(config.at("tokenizer_class").get<std::string>(), std::string("LlamaTokenizer"));
  QCOMPARE(config.at("bos_token").get<std::string>(), std::string("<s>"));
  QCOMPARE(config.at("eos_token").get<std::string>(), std::string("</s>"));
}

void SentencePieceTest::damaged_models_are_refused() {
  const auto cut = read_tokenizer(content_.substr(0, content_.size() / 2 + 1));
  QVERIFY(!cut.ok());
  QVERIFY2(cut.error().message.find("damaged") != std::string::npos, cut.error().message.c_str());
  QVERIFY(!read_tokenizer(content_, SplitPattern::kGpt2).ok());
}

QTEST_GUILESS_MAIN(SentencePieceTest)
#include "sentencepiece_test.moc"
