// Files of strangers: what is malformed, or would be other tokens than their authors', is refused with an error that
// names it.
#include <QtTest>

#include <QTemporaryDir>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/tokenizer/load_tokenizer.h"

using namespace atl;

namespace {

using nlohmann::json;

std::string golden(const std::string& name) {
  auto content = read_file(std::string(ATOLL_TEST_DATA_DIR "/tokenizer/") + name);
  if (!content.ok()) qFatal("%s", content.error().message.c_str());
  return std::move(content).value();
}

// The error of reading it; empty: there is none.
std::string refusal(std::string_view content, std::optional<SplitPattern> pattern = std::nullopt) {
  const auto made = read_tokenizer(content, pattern);
  if (made.ok()) return {};
  return made.error().code == ErrorCode::kInvalidArgument || made.error().code == ErrorCode::kProtocol
             ? made.error().message
             : "another kind of error: " + made.error().message;
}

bool says(const std::string& message, std::string_view words) { return message.find(words) != std::string::npos; }

json whole() { return json::parse(golden("tokenizer.json")); }

// The file with lines of its own after its last.
std::string tiktoken_and(std::string_view lines) { return golden("small.tiktoken") + std::string(lines); }

}  // namespace

class LoadTokenizerTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void what_is_not_supported_is_refused_by_name_data();
  void what_is_not_supported_is_refused_by_name();
  void what_changes_nothing_is_accepted();
  void malformed_vocabularies_are_refused_data();
  void malformed_vocabularies_are_refused();
  void malformed_ranks_are_refused_data();
  void malformed_ranks_are_refused();
  void a_file_of_unknown_size_needs_a_pattern();
  void other_files_are_told_what_is_wanted();
  void every_cut_of_a_file_is_refused_or_whole();
  void a_directory_has_its_tokenizer_within();
};

void LoadTokenizerTest::what_is_not_supported_is_refused_by_name_data() {
  QTest::addColumn<QString>("patch");
  QTest::addColumn<QString>("words");
  const auto row = [](const char* patch, const char* words) {
    QTest::newRow(words) << QString(patch) << QString(words);
  };
  row(R"({"pre_tokenizer": {"type": "UnicodeScripts"}})", "pre_tokenizer UnicodeScripts");
  row(R"({"pre_tokenizer": {"pretokenizers": [{"type": "FixedLength", "length": 5}]}})", "pre_tokenizer FixedLength");
  row(R"({"pre_tokenizer": {"pretokenizers": [{}]}})", "pre_tokenizer without a type");
  row(R"({"pre_tokenizer": {"pretokenizers": [{"type": "Split", "pattern": {"Regex": "a(?<n>b)\\k<n>"}, "behavior": "Isolated"}]}})",
      "the group (?<n is not supported");
  row(R"({"pre_tokenizer": {"pretokenizers": [{"type": "Split", "pattern": {"String": "a"}, "behavior": "Dropped"}]}})",
      "behavior Dropped of pre_tokenizer Split");
  row(R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "last"}})",
      "prepend_scheme last");
  row(R"({"pre_tokenizer": {"pretokenizers": 3}})", "the Sequence of pre_tokenizer has no list");
  row(R"({"normalizer": {"type": "Precompiled"}})", "normalizer Precompiled");
  row(R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]}})",
      "normalizer Lowercase");
  row(R"({"decoder": {"type": "WordPiece"}})", "decoder WordPiece");
  row(R"({"post_processor": {"type": "RobertaProcessing"}})", "post_processor RobertaProcessing");
  row(R"({"model": {"type": "Unigram"}})", "a model of type Unigram");
  row(R"({"model": {"dropout": 0.1}})", "model.dropout");
  row(R"({"model": {"end_of_word_suffix": "</w>"}})", "model.end_of_word_suffix");
  row(R"({"truncation": {"max_length": 8}})", "truncation is not supported");
  row(R"({"padding": {}})", "padding is not supported");
}

void LoadTokenizerTest::what_is_not_supported_is_refused_by_name() {
  QFETCH(const QString, patch);
  QFETCH(const QString, words);
  json file = whole();
  file.merge_patch(json::parse(patch.toStdString()));
  const std::string message = refusal(file.dump());
  QVERIFY2(says(message, words.toStdString()) && says(message, "not supported") == !says(message, "no list"),
           message.c_str());
}

void LoadTokenizerTest::what_changes_nothing_is_accepted() {
  for (
      const char* const patch :
      {R"({"model": {"type": null, "dropout": 0, "unk_token": "a", "continuing_subword_prefix": ""}})",
       R"({"decoder": null})", R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]}})",
       R"({"added_tokens": null})",
       R"({"pre_tokenizer": {"pretokenizers": [{"type": "Split", "pattern": {"Regex": "\\d"}, "behavior": "Isolated"}]}})",
       R"({"normalizer": {"type": "NFC"}, "added_tokens": [{"id": 2052, "content": "中", "normalized": true}]})",
       R"({"post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel"}]}})"}) {
    json file = whole();
    file.merge_patch(json::parse(patch));
    QCOMPARE(refusal(file.dump()), std::string());
  }
  // Merges as lists of two, as newer files write them.
  json file = whole();
  for (json& merge : file["model"]["merges"]) {
    if (!merge.is_string()) break;
    const std::string text = merge;
    const std::size_t space = text.find(' ');
    merge = json::array({text.substr(0, space), text.substr(space + 1)});
  }
  QCOMPARE(refusal(file.dump()), std::string());
}

void LoadTokenizerTest::malformed_vocabularies_are_refused_data() {
  QTest::addColumn<QString>("patch");
  QTest::addColumn<QString>("words");
  const auto row = [](const char* patch, const char* words) {
    QTest::newRow(patch) << QString(patch) << QString(words);
  };
  row(R"({"model": null})", "it has no model, so it is no tokenizer.json");
  row(R"({"model": {"vocab": []}})", "model.vocab is no object");
  row(R"({"model": {"vocab": {"a": null}}})", "has a token, or makes one, that is not in model.vocab");
  row(R"({"model": {"vocab": {"a": null}, "merges": [], "unk_token": "<none>"}})",
      "model.unk_token \"<none>\" is not in model.vocab");
  row(R"({"model": {"byte_fallback": "yes"}})", "byte_fallback is neither true nor false");
  row(R"({"pre_tokenizer": {"pretokenizers": [{"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"}]}})",
      "the pattern of pre_tokenizer Split: the regular expression \"(a\": a group is not closed");
  row(R"({"pre_tokenizer": {"pretokenizers": [{"type": "Split", "behavior": "Isolated"}]}})", "has no pattern");
  row(R"({"pre_tokenizer": {"type": "Metaspace", "replacement": ""}})",
      "replacement of Metaspace is not one character");
  row(R"({"pre_tokenizer": {"type": "CharDelimiterSplit", "delimiter": "ab"}})",
      "delimiter of CharDelimiterSplit is not one character");
  row(R"({"decoder": {"type": "Strip", "content": " ", "start": -1, "stop": 0}})", "start of decoder Strip");
  row(R"({"normalizer": {"type": "Prepend"}})", "prepend is no text");
  row(R"({"model": {"vocab": {"a": -1}}})", "the id of the token \"a\" is no number");
  row(R"({"model": {"vocab": {"a": 1.5}}})", "the id of the token \"a\" is no number");
  row(R"({"model": {"vocab": {"a": 4294967297}}})", "the id of the token \"a\" is no number below 2097152");
  row(R"({"model": {"vocab": {"zzzz": 5}}})", "is another's, too");
  row(R"({"model": {"vocab": {"": 5000}}})", "has 0 bytes");
  row(R"({"model": {"merges": {}}})", "model.merges is no list");
  row(R"({"model": {"merges": ["a"]}})", "model.merges[0] is not two tokens");
  row(R"({"model": {"merges": ["a b c"]}})", "model.merges[0] is not two tokens");
  row(R"({"model": {"merges": [["a", 3]]}})", "model.merges[0] is not two tokens");
  row(R"({"model": {"merges": ["qqqq zzzz"]}})",
      "model.merges[0] has a token, or makes one, that is not in model.vocab");
  row(R"({"model": {"ignore_merges": 1}})", "ignore_merges is neither true nor false");
  row(R"({"added_tokens": {}})", "added_tokens is no list");
  row(R"({"added_tokens": [3]})", "an entry of added_tokens is no object");
  row(R"({"added_tokens": [{"id": 9000, "content": ""}]})", "has 0 bytes");
  row(R"({"added_tokens": [{"content": "<x>"}]})", "the id of the token \"<x>\" is no number");
  row(R"({"added_tokens": [{"id": 5, "content": "<x>"}]})", "is another's, too");
  row(R"({"added_tokens": [{"id": 9000, "content": "a"}]})", "the added token \"a\" has the id 9000");
  row(R"({"pre_tokenizer": 3})", "pre_tokenizer is no object");
}

void LoadTokenizerTest::malformed_vocabularies_are_refused() {
  QFETCH(const QString, patch);
  QFETCH(const QString, words);
  json file = whole();
  file.merge_patch(json::parse(patch.toStdString()));
  const std::string message = refusal(file.dump());
  QVERIFY2(says(message, words.toStdString()), message.c_str());
}

void LoadTokenizerTest::malformed_ranks_are_refused_data() {
  QTest::addColumn<QByteArray>("content");
  QTest::addColumn<QString>("words");
  const auto row = [](const char* name, const std::string& content, const char* words) {
    QTest::newRow(name) << QByteArray::fromStdString(content) << QString(words);
  };
  row("base64 without padding", tiktoken_and("YWI 9000\n"), "line 2049: what stands before the space is not base64");
  row("other letters", tiktoken_and("Y*I= 9000\n"), "line 2049: what stands before the space is not base64");
  row("no token", tiktoken_and(" 9000\n"), "line 2049: what stands before the space is not base64");
  row("no rank", tiktoken_and("enp6eg==\n"), "line 2049: it is not base64, a space and a rank");
  row("a rank that is no number", tiktoken_and("enp6eg== 12x\n"), "line 2049: its rank is no number");
  row("a negative rank", tiktoken_and("enp6eg== -1\n"), "line 2049: its rank is no number");
  row("an enormous rank", tiktoken_and("enp6eg== 4000000000\n"), "line 2049: its rank is not below 2097152");
  row("a rank beyond all numbers", tiktoken_and("enp6eg== 99999999999999999999\n"), "line 2049: its rank is no number");
  row("a rank twice", tiktoken_and("enp6eg== 7\n"), "line 2049: rank 7 stands twice");
  row("a token twice", tiktoken_and("YQ== 9000\n"), "line 2049: its token stands twice");
  row("a token without end", tiktoken_and(std::string(8192, 'A') + " 9000\n"),
      "line 2049: a token is longer than 4096 bytes");
  row("a byte missing", golden("small.tiktoken").substr(golden("small.tiktoken").find('\n') + 1), "is no token");
}

void LoadTokenizerTest::malformed_ranks_are_refused() {
  QFETCH(const QByteArray, content);
  QFETCH(const QString, words);
  const std::string message = refusal(content.toStdString(), SplitPattern::kGpt2);
  QVERIFY2(says(message, words.toStdString()), message.c_str());
}

void LoadTokenizerTest::a_file_of_unknown_size_needs_a_pattern() {
  const std::string message = refusal(golden("small.tiktoken"));
  QVERIFY2(says(message, "it has 2048 tokens") && says(message, "cl100k_base"), message.c_str());
  QCOMPARE(refusal(golden("small.tiktoken"), SplitPattern::kCl100kBase), std::string());
  QVERIFY(says(refusal(golden("tokenizer.json"), SplitPattern::kGpt2), "name none"));
}

void LoadTokenizerTest::other_files_are_told_what_is_wanted() {
  QVERIFY(says(refusal(""), "neither a tokenizer.json, nor a file of tiktoken"));
  QVERIFY(says(refusal("hello world\n"), "neither a tokenizer.json, nor a file of tiktoken"));
  QVERIFY(says(refusal("\n\x0f\n\x05<unk>"), "SentencePiece"));
  QVERIFY(says(refusal("{]"), "no JSON"));
  QVERIFY(says(refusal("{}"), "it has no model"));
  std::string deep = "{\"model\":";
  for (int i = 0; i < 1000; ++i) deep += "[";
  QVERIFY(!refusal(deep).empty());
}

void LoadTokenizerTest::every_cut_of_a_file_is_refused_or_whole() {
  const std::string text = golden("tokenizer.json"), ranks = golden("small.tiktoken");
  for (std::size_t size = 0; size + 2 < text.size(); size += 997) QVERIFY(!refusal(text.substr(0, size)).empty());
  // A file of lines that is cut at a line's end is a shorter one, which lacks no byte.
  for (std::size_t size = 0; size < ranks.size(); size += 101) {
    const auto made = read_tokenizer(ranks.substr(0, size), SplitPattern::kGpt2);
    QVERIFY(!made.ok() || (*made)->facts().vocab_size <= 2049);
  }
}

void LoadTokenizerTest::a_directory_has_its_tokenizer_within() {
  const QTemporaryDir directory;
  const std::filesystem::path path = directory.path().toStdString();
  const auto none = load_tokenizer(path);
  QVERIFY(!none.ok() && none.error().code == ErrorCode::kNotFound && says(none.error().message, "tokenizer.json"));

  QVERIFY(write_file_atomically(path / "tokenizer.json", golden("tokenizer.json"), FileMode::kPublic).ok());
  const auto made = load_tokenizer(path);
  QVERIFY(made.ok());
  QCOMPARE((*made)->facts().vocab_size, 2052u);

  QVERIFY(write_file_atomically(path / "broken", "{}", FileMode::kPublic).ok());
  const auto broken = load_tokenizer(path / "broken");
  QVERIFY(!broken.ok() && says(broken.error().message, (path / "broken").string()));
}

QTEST_GUILESS_MAIN(LoadTokenizerTest)
#include "load_tokenizer_test.moc"
