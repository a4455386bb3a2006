// What tokenizers make of texts is what HuggingFace's tokenizers and tiktoken make of them (tests/golden/tokenizer,
// made by tests/golden/make_tokenizers.py), and leads back to the text.
#include <QtTest>

#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "net/base/file.h"
#include "net/base/sha256.h"
#include "net/tokenizer/byte_tokenizer.h"
#include "net/tokenizer/load_tokenizer.h"

using namespace atl;

namespace {

using nlohmann::json;

std::string golden(const std::string& name) {
  auto content = read_file(std::string(ATOLL_TEST_DATA_DIR "/tokenizer/") + name);
  if (!content.ok()) qFatal("%s", content.error().message.c_str());
  return std::move(content).value();
}

json expected() { return json::parse(golden("expected.json")); }

std::unique_ptr<Tokenizer> tokenizer_of(std::string_view content, std::optional<SplitPattern> pattern = std::nullopt) {
  auto made = read_tokenizer(content, pattern);
  if (!made.ok()) qFatal("%s", made.error().message.c_str());
  return std::move(made).value();
}

// tokenizer.json, but for what `patch` says (RFC 7396).
std::unique_ptr<Tokenizer> patched(const json& patch) {
  json whole = json::parse(golden("tokenizer.json"));
  whole.merge_patch(patch);
  return tokenizer_of(whole.dump());
}

std::vector<TokenId> encode(const Tokenizer& tokenizer, std::string_view text,
                            SpecialText special = SpecialText::kIsText) {
  std::vector<TokenId> ids;
  const auto scratch = tokenizer.make_scratch();
  const Status status = tokenizer.encode(text, special, *scratch, ids);
  if (!status.ok()) qFatal("%s", status.error().message.c_str());
  return ids;
}

std::string decode(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
  std::string bytes;
  if (const Status status = tokenizer.decode(ids, bytes); !status.ok()) qFatal("%s", status.error().message.c_str());
  return bytes;
}

// Bytes of all kinds: whole characters, parts of some, and words that come again.
std::string random_bytes(std::mt19937& random, std::size_t size) {
  static constexpr const char* kParts[] = {
      "the ", "of",   " ",    "\n",   "é",    "中",    "\xF0\x9F\x98\x80", "\xE4\xB8",
      "\xFF", "'ll",  "12",   "\xC3", "\x80", "<tool", "<|end_of_text|>",  "\xED\xA0\x80",
      "A",    "\xC0", "\r\n", "\0x"};
  std::string bytes;
  while (bytes.size() < size) {
    if (random() % 4 == 0) {
      bytes += static_cast<char>(random());
    } else {
      bytes += kParts[random() % std::size(kParts)];
    }
  }
  return bytes;
}

std::string written(std::span<const TokenId> ids) {
  std::string text;
  for (const TokenId id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
  return text;
}
// What families.json has of it.
std::string digest(const std::string& text) { return sha256_hex(as_bytes(text)).substr(0, 8); }

struct Made {
  std::string name;
  std::unique_ptr<Tokenizer> tokenizer;
};
std::vector<Made> all_tokenizers() {
  std::vector<Made> all;
  all.push_back({"bytes", std::make_unique<ByteTokenizer>()});
  const json cases = expected();
  for (const json& one : cases["huggingface"]) all.push_back({one["name"], patched(one["patch"])});
  for (const json& one : cases["tiktoken"]) {
    all.push_back(
        {one["name"], tokenizer_of(golden("small.tiktoken"), parse_split_pattern(one["name"].get<std::string>()))});
  }
  return all;
}

}  // namespace

class TokenizerTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void tokens_are_those_of_huggingface();
  void every_family_has_the_tokens_of_huggingface_data();
  void every_family_has_the_tokens_of_huggingface();
  void of_merges_of_the_same_two_the_last_counts();
  void white_space_that_a_token_takes_is_looked_through();
  void text_of_white_space_alone_is_stripped_only_where_asked();
  void text_that_takes_an_expression_too_long_is_refused();
  void tokens_are_those_of_tiktoken();
  void any_bytes_come_back();
  void text_in_normal_form_comes_back();
  void special_tokens_in_text_are_text_unless_asked_for();
  void facts_are_the_files();
  void the_byte_tokenizer_has_the_ids_of_shards();
  void a_scratch_remembers_nothing_wrong();
  void threads_encode_alike();
  void text_of_characters_comes_back_and_goes_on();
  void a_number_that_is_no_token_is_named_and_nothing_appended();
};

void TokenizerTest::tokens_are_those_of_huggingface() {
  const json cases = expected();
  QVERIFY(cases["huggingface"].size() >= 5);
  for (const json& one : cases["huggingface"]) {
    const auto tokenizer = patched(one["patch"]);
    for (std::size_t i = 0; i < cases["texts"].size(); ++i) {
      const std::string text = cases["texts"][i];
      const QByteArray where = QByteArray::fromStdString(one["name"].get<std::string>() + ": " + text);
      QVERIFY2(encode(*tokenizer, text) == one["plain_ids"][i].get<std::vector<TokenId>>(), where);
      QVERIFY2(encode(*tokenizer, text, SpecialText::kIsToken) == one["ids"][i].get<std::vector<TokenId>>(), where);
    }
  }
}

// The shapes of many models' files (tests/golden/make_tokenizer_families.py).
void TokenizerTest::every_family_has_the_tokens_of_huggingface_data() {
  QTest::addColumn<QByteArray>("family");
  const json all = json::parse(golden("families.json"));
  QVERIFY(all.at("families").size() >= 60);
  for (const json& one : all.at("families")) {
    QTest::newRow(one.at("name").get<std::string>().c_str()) << QByteArray::fromStdString(one.dump());
  }
}

void TokenizerTest::every_family_has_the_tokens_of_huggingface() {
  QFETCH(const QByteArray, family);
  const json one = json::parse(family.toStdString());
  const json texts = json::parse(golden("families.json")).at("texts");
  json whole = json::parse(golden(one.at("base")));
  whole.merge_patch(one.at("patch"));

  const auto tokenizer = tokenizer_of(whole.dump());

  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string text = texts[i];
    const QByteArray where = "text " + QByteArray::number(static_cast<int>(i)) + ": " + QByteArray::fromStdString(text);
    const auto ids = encode(*tokenizer, text, SpecialText::kIsToken);
    QVERIFY2(digest(written(ids)) == one["ids"][i].get<std::string>(), where);
    QVERIFY2(digest(written(encode(*tokenizer, text))) == one["plain_ids"][i].get<std::string>(), where);
    if (one["decoded"][i].is_null()) continue;
    QVERIFY2(digest(decode(*tokenizer, ids)) == one["decoded"][i].get<std::string>(), where);
  }
}

void TokenizerTest::of_merges_of_the_same_two_the_last_counts() {
  const auto with_merges = [](const json& merges) {
    return patched({{"model", {{"ignore_merges", false}, {"merges", merges}}}});
  };
  const auto once = with_merges({"i n", "a n"}), twice = with_merges({"a n", "i n", "a n"});
  for (const char* const text : {"ian", "ain", "an in", "inan"}) QCOMPARE(encode(*twice, text), encode(*once, text));
}

// As HuggingFace's tokenizers have it, whose ids these are.
void TokenizerTest::white_space_that_a_token_takes_is_looked_through() {
  const auto added = [](const char* content, TokenId id, bool takes_left, bool takes_right, bool special) {
    return json{{"content", content},   {"id", id}, {"special", special}, {"normalized", false}, {"lstrip", takes_left},
                {"rstrip", takes_right}};
  };
  const auto tokenizer = patched({{"added_tokens",
                                   {added("<end>", 2048, false, true, true), added("\n", 2049, false, false, true),
                                    added("<x>\t", 2050, true, false, true), added("\t", 2051, true, true, false)}}});
  const TokenId space = encode(*tokenizer, " ").front(), a = encode(*tokenizer, "a").front();
  using Ids = std::vector<TokenId>;

  QCOMPARE(encode(*tokenizer, "<end> \n\na", SpecialText::kIsToken), (Ids{2048, 2049, 2049, a}));
  QCOMPARE(encode(*tokenizer, "<end>\n  a", SpecialText::kIsToken),
           (Ids{2048, 2049, space, encode(*tokenizer, " a").front()}));
  QCOMPARE(encode(*tokenizer, "a \t \t a", SpecialText::kIsToken), (Ids{a, 2051, a}));  // the second has nothing left
  // Within a special token that is text no other is looked for.
  const Ids text = encode(*tokenizer, "<x>\t");
  QVERIFY(std::ranges::find(text, 2051u) == text.end());
}

void TokenizerTest::text_of_white_space_alone_is_stripped_only_where_asked() {
  const auto ids = [](bool left, bool right) {
    return encode(*patched({{"normalizer", {{"type", "Strip"}, {"strip_left", left}, {"strip_right", right}}}}), " \n");
  };
  QCOMPARE(ids(false, false), encode(*patched(json::object()), " \n"));
  QVERIFY(ids(true, false).empty());
  QVERIFY(ids(false, true).empty());
}

void TokenizerTest::text_that_takes_an_expression_too_long_is_refused() {
  const json evil = {{"type", "Split"}, {"pattern", {{"Regex", "(?:a+)+(?:a+)+c|b"}}}, {"behavior", "Isolated"}};
  const json replaced = {{"type", "Replace"}, {"pattern", evil["pattern"]}, {"content", "b"}};
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const json row = {{"type", "Sequence"}, {"pretokenizers", {evil, bytes}}};
  const std::string text = "b " + std::string(200, 'a') + "b";
  for (const json& patch : {json{{"pre_tokenizer", row}}, json{{"normalizer", replaced}}}) {
    const auto tokenizer = patched(patch);
    std::vector<TokenId> ids;

    const Status status = tokenizer->encode(text, SpecialText::kIsText, *tokenizer->make_scratch(), ids);

    QVERIFY(!status.ok());
    QVERIFY2(status.error().message.find("takes too long from byte 1 of a text on") != std::string::npos,
             status.error().message.c_str());
    QVERIFY(!encode(*tokenizer, "b ab").empty());
  }
  json whole = json::parse(golden("tokenizer.json"));
  whole.merge_patch(
      {{"normalizer", replaced}, {"added_tokens", {{{"content", text}, {"id", 2048}, {"normalized", true}}}}});
  const auto refused = read_tokenizer(whole.dump(), std::nullopt);
  QVERIFY(!refused.ok());
  QVERIFY2(refused.error().message.find("the added token") != std::string::npos, refused.error().message.c_str());
}

void TokenizerTest::tokens_are_those_of_tiktoken() {
  const json cases = expected();
  QVERIFY(cases["tiktoken"].size() == 5);
  for (const json& one : cases["tiktoken"]) {
    const std::string name = one["name"];
    const auto tokenizer = tokenizer_of(golden("small.tiktoken"), parse_split_pattern(name));
    for (std::size_t i = 0; i < cases["texts"].size(); ++i) {
      const std::string text = cases["texts"][i];
      const QByteArray where = QByteArray::fromStdString(name + ": " + text);
      QVERIFY2(encode(*tokenizer, text) == one["ids"][i].get<std::vector<TokenId>>(), where);
    }
  }
}

void TokenizerTest::any_bytes_come_back() {
  std::mt19937 random(1);
  for (const auto& [name, tokenizer] : all_tokenizers()) {
    if (name == "qwen2" && tokenizer->facts().vocab_size == 2052) continue;  // normal form C changes text
    for (const std::size_t size : {0, 1, 2, 15, 16, 17, 100, 5000, 20000}) {
      const std::string text = random_bytes(random, size);
      for (const SpecialText special : {SpecialText::kIsText, SpecialText::kIsToken}) {
        QVERIFY2(decode(*tokenizer, encode(*tokenizer, text, special)) == text, name.c_str());
      }
    }
  }
}

void TokenizerTest::text_in_normal_form_comes_back() {
  const auto tokenizer = patched(expected()["huggingface"][3]["patch"]);
  QCOMPARE(tokenizer->facts().kind, std::string("qwen2"));

  QCOMPARE(decode(*tokenizer, encode(*tokenizer, "caf\u00e9 \xFF \u00c5")), std::string("caf\u00e9 \xFF \u00c5"));
  QCOMPARE(decode(*tokenizer, encode(*tokenizer, "cafe\u0301 \xFF \u212b")), std::string("caf\u00e9 \xFF \u00c5"));
}

void TokenizerTest::special_tokens_in_text_are_text_unless_asked_for() {
  const auto tokenizer = patched(json::object());
  const TokenId end = *tokenizer->special_token("<|end_of_text|>");

  QCOMPARE(encode(*tokenizer, "<|end_of_text|>", SpecialText::kIsToken), std::vector<TokenId>{end});
  for (const TokenId id : encode(*tokenizer, "a<|end_of_text|>b <|begin_of_text|>"))
    QVERIFY(!tokenizer->is_special(id));
  QVERIFY(!tokenizer->special_token("<tool>"));  // added, but a word like others
  QCOMPARE(encode(*tokenizer, "<tool>").size(), std::size_t{1});
}

void TokenizerTest::facts_are_the_files() {
  const auto llama = patched(json::object());
  const TokenizerFacts& facts = llama->facts();

  QCOMPARE(facts.kind, std::string("llama3"));
  QCOMPARE(facts.vocab_size, 2052u);
  QCOMPARE(facts.sha256.size(), std::size_t{64});
  QCOMPARE(facts.special_tokens.size(), std::size_t{2});
  QCOMPARE(facts.begin_of_text, std::optional<TokenId>(2048));
  QCOMPARE(facts.end_of_text, std::optional<TokenId>(2049));
  QVERIFY(facts.begins_with_token);
  QVERIFY(!patched({{"post_processor", nullptr}})->facts().begins_with_token);

  const auto tiktoken = tokenizer_of(golden("small.tiktoken"), SplitPattern::kLlama3);
  QCOMPARE(tiktoken->facts().vocab_size, 2048u + 256u);
  QCOMPARE(tiktoken->special_token("<|eot_id|>"), std::optional<TokenId>(2048 + 9));
  QCOMPARE(tiktoken->special_token("<|reserved_special_token_245|>"), std::optional<TokenId>(2048 + 255));
  QVERIFY(!tiktoken->facts().begins_with_token);
}

void TokenizerTest::the_byte_tokenizer_has_the_ids_of_shards() {
  const auto made = load_tokenizer("bytes");
  QVERIFY(made.ok());
  const Tokenizer& tokenizer = **made;

  QCOMPARE(encode(tokenizer, "a\xFF"), (std::vector<TokenId>{97, 255}));
  QCOMPARE(encode(tokenizer, "a<|endoftext|>b", SpecialText::kIsToken), (std::vector<TokenId>{97, 256, 98}));
  QCOMPARE(tokenizer.facts().vocab_size, 257u);
  QCOMPARE(tokenizer.facts().end_of_text, std::optional<TokenId>(256));
}

void TokenizerTest::a_scratch_remembers_nothing_wrong() {
  const auto tokenizer = patched(json::object());
  const auto kept = tokenizer->make_scratch();
  std::mt19937 random(2);
  // More words than either of its tables holds, in which many share their beginnings and their ends.
  for (int round = 0; round < 40; ++round) {
    std::string text;
    while (text.size() < 100'000) {
      text += ' ';
      const std::string stem(random() % 24, static_cast<char>('a' + random() % 3));
      text += stem + std::to_string(random() % 7) + std::string(random() % 5, static_cast<char>('x' + random() % 3));
      for (int i = 0; i < static_cast<int>(random() % 12); ++i) text += static_cast<char>('a' + random() % 26);
    }
    std::vector<TokenId> ids;
    QVERIFY(tokenizer->encode(text, SpecialText::kIsText, *kept, ids).ok());
    QVERIFY(ids == encode(*tokenizer, text));
    QVERIFY(decode(*tokenizer, ids) == text);
  }
}

void TokenizerTest::threads_encode_alike() {
  const auto tokenizer = patched(json::object());
  std::mt19937 random(3);
  const std::string text = random_bytes(random, 200'000);
  const std::vector<TokenId> alone = encode(*tokenizer, text);

  std::array<std::vector<TokenId>, 4> together;
  {
    std::vector<std::jthread> threads;
    for (auto& ids : together) threads.emplace_back([&] { ids = encode(*tokenizer, text); });
  }

  for (const auto& ids : together) QVERIFY(ids == alone);
}

void TokenizerTest::text_of_characters_comes_back_and_goes_on() {
  json whole = json::parse(golden("characters.json"));
  const json families = json::parse(golden("families.json"));
  for (const json& one : families.at("families")) {
    if (one.at("name").get<std::string>().starts_with("Llama 2, Mistral")) whole.merge_patch(one.at("patch"));
  }
  const auto tokenizer = tokenizer_of(whole.dump());
  QCOMPARE(tokenizer->facts().kind, std::string("bpe"));
  QCOMPARE(tokenizer->facts().begin_of_text, std::optional<TokenId>(1));
  QCOMPARE(tokenizer->facts().end_of_text, std::optional<TokenId>(2));
  for (const std::string text : {"The quick brown fox", "naïve 中\n", "  two", "\xff\xe4 x", "a\u2028b"}) {
    const auto ids = encode(*tokenizer, text);
    QCOMPARE(decode(*tokenizer, ids), text);
    std::string written;
    for (const TokenId id : ids) written += tokenizer->within_text(id);
    QCOMPARE(written, " " + text);  // as it goes on behind other text
  }
  QCOMPARE(decode(*tokenizer, encode(*tokenizer, "a<s>b", SpecialText::kIsToken)), std::string("a<s> b"));
}

void TokenizerTest::a_number_that_is_no_token_is_named_and_nothing_appended() {
  for (const auto& [name, tokenizer] : all_tokenizers()) {
    std::string bytes = "before";
    const TokenId beyond = tokenizer->facts().vocab_size;
    const Status status = tokenizer->decode(std::vector<TokenId>{65, beyond}, bytes);
    QVERIFY2(!status.ok() && status.error().message.find(std::to_string(beyond)) != std::string::npos, name.c_str());
    QCOMPARE(bytes, std::string("before"));
  }
  // Between the ranks and the special tokens of cl100k_base is a number that is none.
  std::string bytes;
  QVERIFY(!tokenizer_of(golden("small.tiktoken"), SplitPattern::kCl100kBase)
               ->decode(std::vector<TokenId>{2048}, bytes)
               .ok());
}

QTEST_GUILESS_MAIN(TokenizerTest)
#include "tokenizer_test.moc"
