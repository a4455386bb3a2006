// Two tokenizers are one where the same text has the same tokens, whatever their files look like; what differs is
// named.
#include "net/tokenizer/compare_tokenizers.h"

#include <QtTest>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/tokenizer/byte_tokenizer.h"
#include "net/tokenizer/huggingface_writer.h"
#include "net/tokenizer/load_tokenizer.h"

using namespace atl;
using nlohmann::json;

namespace {

const std::filesystem::path kGolden = std::filesystem::path(ATOLL_TEST_DATA_DIR) / "tokenizer";

std::string golden(const char* name) { return read_file(kGolden / name).value(); }
json golden_json() { return json::parse(golden("tokenizer.json")); }

TokenizerComparison compare(const Tokenizer& one, const Tokenizer& other) {
  return compare_tokenizers({one, "A"}, {other, "B"});
}
TokenizerComparison compare(const std::string& one, const std::string& other) {
  return compare(*read_tokenizer(one).value(), *read_tokenizer(other).value());
}

json special(const char* name, int id) {
  return {{"id", id},        {"content", name},     {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

}  // namespace

class CompareTokenizersTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void files_that_look_otherwise_may_be_one_tokenizer_data();
  void files_that_look_otherwise_may_be_one_tokenizer();
  void what_makes_other_tokens_is_named_data();
  void what_makes_other_tokens_is_named();
  void bytes_are_not_another_vocabulary();
  void special_tokens_that_were_added_are_told();
  void numbers_that_were_kept_free_may_be_taken();
};

void CompareTokenizersTest::files_that_look_otherwise_may_be_one_tokenizer_data() {
  QTest::addColumn<QByteArray>("one");
  QTest::addColumn<QByteArray>("other");
  const auto row = [](const char* name, const std::string& one, const std::string& other) {
    QTest::newRow(name) << QByteArray::fromStdString(one) << QByteArray::fromStdString(other);
  };
  json spelt = golden_json();
  for (json& merge : spelt["model"]["merges"]) {
    if (merge.is_array()) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  json decoded = golden_json();
  decoded["post_processor"] = nullptr;
  row("written again", golden("tokenizer.json"), golden_json().dump(2));
  row("merges in the older spelling", golden("tokenizer.json"), spelt.dump());
  row("another beginning, which is no token's", golden("tokenizer.json"), decoded.dump());
  const auto ranks = to_huggingface(golden("small.tiktoken"), SplitPattern::kCl100kBase);
  row("ranks, and what is written of them", ranks.value().content, json::parse(ranks->content).dump(1));
}

void CompareTokenizersTest::files_that_look_otherwise_may_be_one_tokenizer() {
  QFETCH(const QByteArray, one);
  QFETCH(const QByteArray, other);
  QVERIFY(one != other);

  const TokenizerComparison compared = compare(one.toStdString(), other.toStdString());

  QVERIFY2(compared.difference.empty(), compared.difference.c_str());
  QVERIFY(compared.only_in_one.empty() && compared.only_in_other.empty());
}

void CompareTokenizersTest::what_makes_other_tokens_is_named_data() {
  QTest::addColumn<QByteArray>("other");
  QTest::addColumn<QByteArray>("says");
  const auto row = [](const char* name, const json& other, const char* says) {
    QTest::newRow(name) << QByteArray::fromStdString(other.dump()) << QByteArray(says);
  };
  json exchanged = golden_json();
  std::swap(exchanged["model"]["vocab"]["er"], exchanged["model"]["vocab"]["in"]);
  row("two tokens change places", exchanged, "is 'er' in A and 'in' in B");

  json merges = golden_json();
  std::swap(merges["model"]["merges"][2], merges["model"]["merges"][3]);
  row("two merges change places", merges, "another order");

  json pattern = golden_json();
  pattern["pre_tokenizer"]["pretokenizers"] =
      json::array({{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}});
  row("text is cut by another pattern", pattern, "is cut into");

  json normal = golden_json();
  normal["normalizer"] = {{"type", "NFC"}};
  row("text is brought into a normal form", normal, "is cut into");

  json renamed = golden_json();
  renamed["added_tokens"][1]["content"] = "<|im_end|>";
  row("a special token has another name", renamed, "token 2049 is '<|end_of_text|>' in A and '<|im_end|>' in B");

  json moved = golden_json();
  std::swap(moved["added_tokens"][0]["content"], moved["added_tokens"][1]["content"]);
  row("special tokens change places", moved, "is token 204");
}

void CompareTokenizersTest::what_makes_other_tokens_is_named() {
  QFETCH(const QByteArray, other);
  QFETCH(const QByteArray, says);

  const TokenizerComparison compared = compare(golden("tokenizer.json"), other.toStdString());

  QVERIFY2(compared.difference.find(says.toStdString()) != std::string::npos, compared.difference.c_str());
}

// Of bytes there is no file; what an export brings of them is the same.
void CompareTokenizersTest::bytes_are_not_another_vocabulary() {
  const ByteTokenizer bytes;

  QVERIFY(compare(bytes, bytes).difference.empty());
  QVERIFY2(compare(bytes, *read_tokenizer(byte_tokenizer_to_huggingface()).value()).difference.empty(),
           compare(bytes, *read_tokenizer(byte_tokenizer_to_huggingface()).value()).difference.c_str());
  QVERIFY(!compare(bytes, *read_tokenizer(golden("tokenizer.json")).value()).difference.empty());
}

// Who adds a chat's tokens changes no other one.
void CompareTokenizersTest::special_tokens_that_were_added_are_told() {
  json more = golden_json();
  more["added_tokens"].push_back(special("<|im_start|>", 2052));

  const TokenizerComparison compared = compare(golden("tokenizer.json"), more.dump()),
                            back = compare(more.dump(), golden("tokenizer.json"));

  QVERIFY2(compared.difference.empty(), compared.difference.c_str());
  QVERIFY(compared.only_in_one.empty());
  QCOMPARE(compared.only_in_other, std::vector<std::string>{"<|im_start|>"});
  QCOMPARE(back.only_in_one, compared.only_in_other);
}

void CompareTokenizersTest::numbers_that_were_kept_free_may_be_taken() {
  json free = golden_json(), taken = golden_json();
  free["added_tokens"].push_back(special("<|reserved_special_token_0|>", 2052));
  taken["added_tokens"].push_back(special("<|eot_id|>", 2052));

  const TokenizerComparison compared = compare(free.dump(), taken.dump());

  QVERIFY2(compared.difference.empty(), compared.difference.c_str());
  QCOMPARE(compared.only_in_other, std::vector<std::string>{"<|eot_id|>"});
}

QTEST_APPLESS_MAIN(CompareTokenizersTest)
#include "compare_tokenizers_test.moc"
