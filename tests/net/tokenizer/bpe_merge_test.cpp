// Merges are those of the definition, however pieces are searched and however files say them.
#include <QtTest>

#include <map>
#include <random>

#include "net/tokenizer/bpe_tokenizer.h"

using namespace atl;

namespace {

using Pair = std::pair<TokenId, TokenId>;

// A vocabulary of the 256 bytes and of merges of what was there before, drawn at random, so that it has what trained
// ones lack: merges that never happen, tokens that merges never make.
struct RandomVocabulary {
  std::vector<std::string> tokens;
  std::map<Pair, std::uint32_t> numbers;
  std::vector<TokenId> results;

  RandomVocabulary(std::mt19937& random, std::string_view letters, int merges) {
    for (int byte = 0; byte < 256; ++byte) tokens.push_back(std::string(1, static_cast<char>(byte)));
    std::map<std::string, TokenId> known;
    std::vector<TokenId> useful;
    for (const char letter : letters) useful.push_back(static_cast<unsigned char>(letter));
    while (merges-- > 0) {
      const Pair pair{useful[random() % useful.size()], useful[random() % useful.size()]};
      const std::string both = tokens[pair.first] + tokens[pair.second];
      if (both.size() > 40 || !known.emplace(both, tokens.size()).second) continue;
      numbers[pair] = static_cast<std::uint32_t>(results.size());
      results.push_back(static_cast<TokenId>(tokens.size()));
      useful.push_back(static_cast<TokenId>(tokens.size()));
      tokens.push_back(both);
    }
  }

  BpeMerges table() const {
    BpeMerges merges(numbers.size());
    for (unsigned byte = 0; byte < 256; ++byte) merges.byte_ids[byte] = byte;
    for (const auto& [pair, number] : numbers) merges.pairs.insert(pair.first, pair.second, number);
    merges.results = results;
    merges.fill_byte_pairs();
    return merges;
  }
};

// The definition. `number_of`: of two neighbours; kNoMerge: they do not merge.
template <class NumberOf>
std::vector<TokenId> merge_by_definition(std::string_view piece, const std::vector<TokenId>& results,
                                         NumberOf number_of) {
  std::vector<TokenId> ids;
  for (const char byte : piece) ids.push_back(static_cast<unsigned char>(byte));
  for (;;) {
    std::uint32_t least = PairTable::kNoMerge;
    std::size_t place = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const std::uint32_t number = number_of(ids[i], ids[i + 1]);
      if (number < least) {
        least = number;
        place = i;
      }
    }
    if (least == PairTable::kNoMerge) return ids;
    ids[place] = results[least];
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

std::vector<TokenId> merged(const BpeMerges& merges, std::string_view piece) {
  MergeRoom room;
  std::vector<TokenId> ids(piece.size());
  ids.resize(merge_piece(merges, piece, room, ids.data()));
  return ids;
}

std::string random_piece(std::mt19937& random, std::string_view letters, std::size_t size) {
  std::string piece;
  for (std::size_t i = 0; i < size; ++i) piece += letters[random() % letters.size()];
  return piece;
}

constexpr std::string_view kLetters = "abc";
constexpr std::array<std::size_t, 9> kSizes{1, 2, 3, 8, 20, 63, 64, 65, 700};

}  // namespace

class BpeMergeTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void merges_are_those_of_the_definition();
  void ranks_merge_whatever_two_tokens_have_their_bytes();
  void a_megabyte_without_a_space_ends();
  void a_pair_is_found_only_as_it_was_put_in();
  void a_piece_is_found_only_whole();
};

void BpeMergeTest::merges_are_those_of_the_definition() {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    const RandomVocabulary vocabulary(random, kLetters, 5 + round * 5);
    const BpeMerges merges = vocabulary.table();
    for (const std::size_t size : kSizes) {
      const std::string piece = random_piece(random, kLetters, size);
      const auto expected = merge_by_definition(piece, vocabulary.results, [&](TokenId left, TokenId right) {
        const auto found = vocabulary.numbers.find({left, right});
        return found == vocabulary.numbers.end() ? PairTable::kNoMerge : found->second;
      });
      QVERIFY2(merged(merges, piece) == expected, piece.c_str());
    }
  }
}

void BpeMergeTest::ranks_merge_whatever_two_tokens_have_their_bytes() {
  std::mt19937 random(2);
  for (int round = 0; round < 60; ++round) {
    // In any order of ranks, so that the parts of a token may have higher ones than it.
    RandomVocabulary vocabulary(random, kLetters, 5 + round * 5);
    std::shuffle(vocabulary.tokens.begin() + 256, vocabulary.tokens.end(), random);
    const TokenBytes bytes(vocabulary.tokens);
    std::map<std::string, std::uint32_t> ranks;
    std::vector<TokenId> ranked;
    for (TokenId id = 256; id < vocabulary.tokens.size(); ++id) {
      ranks[vocabulary.tokens[id]] = static_cast<std::uint32_t>(ranked.size());
      ranked.push_back(id);
    }
    BpeMerges merges(ranked.size());
    for (unsigned byte = 0; byte < 256; ++byte) merges.byte_ids[byte] = byte;
    add_pairs_of_ranks(ranked, bytes, merges);

    for (const std::size_t size : kSizes) {
      const std::string piece = random_piece(random, kLetters, size);
      const auto expected = merge_by_definition(piece, ranked, [&](TokenId left, TokenId right) {
        const auto found = ranks.find(vocabulary.tokens[left] + vocabulary.tokens[right]);
        return found == ranks.end() ? PairTable::kNoMerge : found->second;
      });
      QVERIFY2(merged(merges, piece) == expected, piece.c_str());
    }
  }
}

void BpeMergeTest::a_megabyte_without_a_space_ends() {
  std::mt19937 random(3);
  const RandomVocabulary vocabulary(random, kLetters, 200);
  const BpeMerges merges = vocabulary.table();
  for (const std::string& piece : {random_piece(random, kLetters, 1 << 20), std::string(1 << 20, 'a')}) {
    const auto ids = merged(merges, piece);  // a step for each pair of parts would be 10^12
    std::string back;
    for (const TokenId id : ids) back += vocabulary.tokens[id];
    QVERIFY(back == piece);
    QVERIFY(ids.size() < piece.size());
  }
}

void BpeMergeTest::a_pair_is_found_only_as_it_was_put_in() {
  PairTable pairs(1000);
  for (std::uint32_t i = 0; i < 1000; ++i) QVERIFY(pairs.insert(i * 7, kMaxVocabulary - 1 - i, kMaxMerges - 1 - i));
  QVERIFY(!pairs.insert(7, kMaxVocabulary - 2, 5));
  for (std::uint32_t i = 0; i < 1000; ++i) {
    QCOMPARE(pairs.find(i * 7, kMaxVocabulary - 1 - i), kMaxMerges - 1 - i);
    QCOMPARE(pairs.find(i * 7 + 1, kMaxVocabulary - 1 - i), PairTable::kNoMerge);
    QCOMPARE(pairs.find(kMaxVocabulary - 1 - i, i * 7), PairTable::kNoMerge);
  }
}

void BpeMergeTest::a_piece_is_found_only_whole() {
  const std::vector<std::string> tokens{"a", "ab", std::string("a\0", 2), std::string(17, 'x'), std::string(16, 'x')};
  const TokenBytes bytes(tokens);
  PieceTable table(bytes, tokens.size());
  for (TokenId id = 0; id < tokens.size(); ++id) QVERIFY(table.insert(id));
  QVERIFY(!table.insert(1));
  for (TokenId id = 0; id < tokens.size(); ++id) QCOMPARE(table.find(tokens[id]), id);
  for (const std::string_view other : {"b", "abc", "", "xxxxxxxxxxxxxxx", "xxxxxxxxxxxxxxxxxx"}) {
    QCOMPARE(table.find(other), PieceTable::kNoToken);
  }
}

QTEST_GUILESS_MAIN(BpeMergeTest)
#include "bpe_merge_test.moc"
