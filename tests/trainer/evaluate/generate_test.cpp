// Sampling and the text that comes of it.
#include "trainer/evaluate/generate.h"

#include <QtTest>

#include <array>
#include <cmath>
#include <map>
#include <set>

#include "tests/trainer/evaluate/asked_model.h"
#include "trainer/engine/engine.h"
#include "trainer/evaluate/text_stream.h"

namespace {

using namespace atl;
using namespace atl::test;

std::vector<std::int32_t> prompt_of(std::string_view text) {
  std::vector<std::int32_t> tokens{256};
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

struct Told {
  std::map<std::size_t, Completion> completions;
  std::map<std::size_t, std::string> texts;
};

Told told_of(const std::vector<std::vector<std::int32_t>>& prompts, const GenerateOptions& options, std::int64_t slots,
             std::int64_t capacity, const ModelText& text = byte_text()) {
  Told told;
  const Status status =
      generate(*asked_engine(slots, capacity), text, prompts, options,
               {.on_text = [&](std::size_t prompt, std::string_view more) { told.texts[prompt] += more; },
                .on_end = [&](std::size_t prompt, const Completion& end) { told.completions[prompt] = end; }});
  if (!status.ok()) qFatal("%s", status.error().message.c_str());
  return told;
}

// How often each token of four is drawn in so many draws.
std::array<double, 4> shares(const Sampling& sampling, const std::array<float, 4>& logits) {
  constexpr int kDraws = 20'000;
  std::array<double, 4> counts{};
  Sampler sampler(sampling, 0);
  for (int i = 0; i < kDraws; ++i) counts[static_cast<std::size_t>(sampler.draw(logits))] += 1.0 / kDraws;
  return counts;
}

class GenerateTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void tokens_are_drawn_as_often_as_they_are_likely_data();
  void tokens_are_drawn_as_often_as_they_are_likely();
  void of_a_large_vocabulary_the_likeliest_are_found_whatever_their_number_data();
  void of_a_large_vocabulary_the_likeliest_are_found_whatever_their_number();
  void the_likeliest_of_equals_is_the_lowest();
  void the_same_seed_draws_the_same_and_another_text_others();
  void characters_are_never_cut();
  void a_text_ends_before_a_stop_that_comes_in_pieces();
  void a_likeliest_text_is_the_one_that_the_whole_context_gives();
  void texts_written_together_are_the_texts_written_alone();
  void a_text_longer_than_its_slot_goes_on_with_the_later_half();
  void a_stop_ends_a_text_and_a_length_does();
  void a_text_ends_with_any_of_the_models_end_tokens();
  void a_text_ends_with_the_message_of_a_chat();
  void a_model_that_says_no_numbers_is_an_error();
};

// Standard deviations of 20,000 draws are 0.0035 at most: five of them are allowed.
void GenerateTest::tokens_are_drawn_as_often_as_they_are_likely_data() {
  QTest::addColumn<double>("temperature");
  QTest::addColumn<int>("top_k");
  QTest::addColumn<double>("top_p");
  QTest::addColumn<QList<double>>("expected");
  // Of logarithms of 0.1, 0.4, 0.3, 0.2.
  QTest::newRow("all") << 1.0 << 0 << 1.0 << QList<double>{0.1, 0.4, 0.3, 0.2};
  QTest::newRow("the two likeliest") << 1.0 << 2 << 1.0 << QList<double>{0, 4.0 / 7, 3.0 / 7, 0};
  QTest::newRow("the likeliest that come to 0.75") << 1.0 << 0 << 0.75 << QList<double>{0, 4.0 / 9, 3.0 / 9, 2.0 / 9};
  QTest::newRow("those that come to 0.5 of the two likeliest") << 1.0 << 2 << 0.5 << QList<double>{0, 1, 0, 0};
  QTest::newRow("cold") << 0.5 << 0 << 1.0 << QList<double>{1.0 / 30, 16.0 / 30, 9.0 / 30, 4.0 / 30};
  QTest::newRow("nothing but the likeliest") << 1.0 << 0 << 0.0 << QList<double>{0, 1, 0, 0};
}

void GenerateTest::tokens_are_drawn_as_often_as_they_are_likely() {
  QFETCH(double, temperature);
  QFETCH(int, top_k);
  QFETCH(double, top_p);
  QFETCH(QList<double>, expected);
  const std::array logits{std::log(0.1f), std::log(0.4f), std::log(0.3f), std::log(0.2f)};
  const auto found = shares({.temperature = temperature, .top_k = top_k, .top_p = top_p, .seed = 5}, logits);
  for (std::size_t i = 0; i < 4; ++i) QVERIFY(std::abs(found[i] - expected[static_cast<int>(i)]) < 0.0175);
}

void GenerateTest::of_a_large_vocabulary_the_likeliest_are_found_whatever_their_number_data() {
  QTest::addColumn<int>("top_k");
  QTest::addColumn<double>("top_p");
  QTest::addColumn<int>("chosen_among");
  // 400 tokens, each of them as likely as another one: of equals the lower one goes first.
  QTest::newRow("all") << 0 << 1.0 << 400;
  QTest::newRow("an odd number, of the last two equals one") << 61 << 1.0 << 61;
  QTest::newRow("more than there are") << 5000 << 1.0 << 400;
  QTest::newRow("a tenth of what all come to") << 0 << 0.1 << 40;
  QTest::newRow("nearly all") << 0 << 0.9 << 360;
  QTest::newRow("half of the likeliest 80") << 80 << 0.5 << 40;
}

void GenerateTest::of_a_large_vocabulary_the_likeliest_are_found_whatever_their_number() {
  QFETCH(const int, top_k);
  QFETCH(const double, top_p);
  QFETCH(const int, chosen_among);
  constexpr std::size_t kTokens = 400;
  std::vector<float> logits;
  // So nearly equal that shares are counts, and larger for higher numbers: 398 and 399 are the likeliest.
  for (std::size_t i = 0; i < kTokens; ++i) logits.push_back(static_cast<float>(i / 2) * 5e-5f);
  Sampler sampler({.temperature = 1, .top_k = top_k, .top_p = top_p, .seed = 2}, 0);
  std::set<std::int32_t> drawn;
  for (int i = 0; i < 8'000; ++i) drawn.insert(sampler.draw(logits));

  // Of 400 tokens 8,000 draws leave one out once in 500 million times.
  const auto place = [](std::int32_t token) {  // from the likeliest on
    return 399 - token + (token % 2 == 0 ? -1 : 1);
  };
  int last = 0;
  for (const std::int32_t token : drawn) last = std::max(last, place(token));
  // A share is 1 % off where logits span 0.01.
  const int slack = top_p < 1 ? 1 + chosen_among / 50 : 0;
  QVERIFY2(std::abs(last + 1 - chosen_among) <= slack, qPrintable(QString::number(last)));
  QVERIFY(std::abs(static_cast<int>(drawn.size()) - chosen_among) <= slack);
}

void GenerateTest::the_likeliest_of_equals_is_the_lowest() {
  Sampler sampler({.temperature = 0}, 0);
  QCOMPARE(sampler.draw(std::array{1.0f, 3.0f, 2.0f, 3.0f}), 1);
}

void GenerateTest::the_same_seed_draws_the_same_and_another_text_others() {
  const std::array<float, 4> logits{};
  const auto drawn = [&](std::uint64_t seed, std::uint64_t text) {
    Sampler sampler({.temperature = 1, .seed = seed}, text);
    std::vector<std::int32_t> tokens;
    for (int i = 0; i < 32; ++i) tokens.push_back(sampler.draw(logits));
    return tokens;
  };
  QCOMPARE(drawn(1, 0), drawn(1, 0));
  QVERIFY(drawn(1, 0) != drawn(2, 0));
  QVERIFY(drawn(1, 0) != drawn(1, 1));
}

void GenerateTest::characters_are_never_cut() {
  TextStream stream({});
  QCOMPARE(stream.add("a\xf0\x9f"), std::string("a"));
  QCOMPARE(stream.add("\x8c"), std::string());
  QCOMPARE(stream.add("\x8a\xc3"), std::string("\xf0\x9f\x8c\x8a"));
  QCOMPARE(stream.add("x"), std::string("\xc3x"));  // it was none
  QCOMPARE(stream.add("\xe6"), std::string());
  QCOMPARE(stream.finish(), std::string("\xe6"));
}

void GenerateTest::a_text_ends_before_a_stop_that_comes_in_pieces() {
  TextStream stream({"\n\n", "END"});
  QCOMPARE(stream.add("one\n"), std::string("one"));
  QCOMPARE(stream.add("two EN"), std::string("\ntwo "));
  QCOMPARE(stream.add("ough E"), std::string("ENough "));
  QCOMPARE(stream.add("N"), std::string());
  QCOMPARE(stream.add("D and more"), std::string());
  QVERIFY(stream.stopped());
  QCOMPARE(stream.text(), std::string("one\ntwo ENough "));
  QCOMPARE(stream.add("more"), std::string());
}

void GenerateTest::a_likeliest_text_is_the_one_that_the_whole_context_gives() {
  EngineOptions options;
  options.seed = 11;  // as asked_parameters()
  const auto whole = Engine::create(asked_config(), options).value();
  std::vector<std::int32_t> tokens = prompt_of("The tide");
  std::string expected;
  for (int i = 0; i < 24; ++i) {
    const auto logits = whole->next_token_logits(tokens).value();
    const auto token = static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
    if (token == 256) break;
    tokens.push_back(token);
    expected += static_cast<char>(token);
  }
  const Told told =
      told_of({prompt_of("The tide")}, {.tokens = 24, .sampling = {.temperature = 0}, .stops = {}}, 1, 64);
  QCOMPARE(told.completions.at(0).text, expected);
  QCOMPARE(told.texts.at(0), expected);
}

void GenerateTest::texts_written_together_are_the_texts_written_alone() {
  const std::vector<std::vector<std::int32_t>> prompts{prompt_of("a"), prompt_of("a longer prompt than the others"),
                                                       prompt_of(""), prompt_of("b c"), prompt_of("the last one")};
  const GenerateOptions options{.tokens = 20, .sampling = {.temperature = 1, .seed = 9}, .stops = {}};
  const Told together = told_of(prompts, options, 2, 64);
  const Told at_once = told_of(prompts, options, 5, 64);
  QCOMPARE(together.completions.size(), prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    QCOMPARE(together.completions.at(i).text, at_once.completions.at(i).text);
    QCOMPARE(together.texts.at(i), together.completions.at(i).text);
  }
}

void GenerateTest::a_text_longer_than_its_slot_goes_on_with_the_later_half() {
  constexpr std::int64_t kCapacity = 16;
  const GenerateOptions options{.tokens = 100, .sampling = {.temperature = 1, .seed = 3}, .stops = {}};
  const Told told = told_of({prompt_of("longer than the slot that it is given")}, options, 1, kCapacity);
  QCOMPARE(told.completions.at(0).tokens, 100);
  QVERIFY(told.completions.at(0).end == TextEnd::kLength);
  // The first token depends on the prompt's end alone, the seventeenth on the eight tokens before it.
  const Told end = told_of({std::vector<std::int32_t>(16, 0)}, options, 1, kCapacity);
  QVERIFY(end.completions.at(0).text != told.completions.at(0).text);
  QCOMPARE(needed_capacity(std::vector<std::vector<std::int32_t>>{prompt_of("abc")}, 10, 160), 14);
  QCOMPARE(needed_capacity(std::vector<std::vector<std::int32_t>>{prompt_of("abc")}, 1000, 160), 160);
}

void GenerateTest::a_stop_ends_a_text_and_a_length_does() {
  GenerateOptions options{.tokens = 30, .sampling = {.temperature = 1, .seed = 4}, .stops = {}};
  const std::string whole = told_of({prompt_of("x")}, options, 1, 64).completions.at(0).text;
  QVERIFY(whole.size() > 12);
  options.stops = {whole.substr(8, 3)};
  const Completion stopped = told_of({prompt_of("x")}, options, 1, 64).completions.at(0);
  QVERIFY(stopped.end == TextEnd::kStop);
  QCOMPARE(stopped.text, whole.substr(0, whole.find(options.stops[0])));
  options = {.tokens = 5, .sampling = options.sampling, .stops = {}};
  const Completion shorter = told_of({prompt_of("x")}, options, 1, 64).completions.at(0);
  QVERIFY(shorter.end == TextEnd::kLength);
  QCOMPARE(shorter.tokens, 5);
  QVERIFY(whole.starts_with(shorter.text));
}

void GenerateTest::a_text_ends_with_any_of_the_models_end_tokens() {
  const GenerateOptions options{.tokens = 30, .sampling = {.temperature = 1, .seed = 4}, .stops = {}};
  const std::string whole = told_of({prompt_of("x")}, options, 1, 64).completions.at(0).text;
  QVERIFY(whole.size() > 8);
  const std::vector<std::int64_t> ends{300, static_cast<unsigned char>(whole[6])};
  const Completion ended = told_of({prompt_of("x")}, options, 1, 64, byte_text(ends)).completions.at(0);
  QVERIFY(ended.end == TextEnd::kEndToken);
  QCOMPARE(ended.text, whole.substr(0, whole.find(whole[6])));
}

// Whatever the model's files say: what was trained on chats ends with the message.
void GenerateTest::a_text_ends_with_the_message_of_a_chat() {
  class ChatTokenizer : public Tokenizer {
   public:
    explicit ChatTokenizer(TokenizerFacts facts) : Tokenizer(std::move(facts)) {}
    std::unique_ptr<TokenizerScratch> make_scratch() const override { return std::make_unique<TokenizerScratch>(); }
    Status encode(std::string_view, SpecialText, TokenizerScratch&, std::vector<TokenId>&) const override {
      return ok_status();
    }
    Status decode(std::span<const TokenId>, std::string&) const override { return ok_status(); }
  };
  TokenizerFacts facts;
  facts.vocab_size = 9;
  facts.special_tokens = {{"<|end_of_text|>", 5}, {"<|other|>", 6}, {"<|eot_id|>", 7}};
  facts.end_of_text = 5;
  const ModelText text = ModelText::make(std::make_unique<ChatTokenizer>(std::move(facts)), 9).value();
  QVERIFY(text.ends_text(5) && text.ends_text(7));
  QVERIFY(!text.ends_text(6) && !text.ends_text(-1));
}

void GenerateTest::a_model_that_says_no_numbers_is_an_error() {
  const std::vector<std::vector<std::int32_t>> prompts{prompt_of("x")};
  const Status status = generate(*damaged_engine(1, 64), byte_text(), prompts, {}, {});
  QVERIFY(!status.ok());
  QCOMPARE(status.error().code, ErrorCode::kNonFinite);
}

}  // namespace

QTEST_APPLESS_MAIN(GenerateTest)
#include "generate_test.moc"
