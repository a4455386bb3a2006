// Text of anybody to a byte-level BPE of each pattern: its tokens lead back to it, stay within the pieces of its
// pattern, and are those of the definition, whether the scratch has met the words before or not.
#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "net/tokenizer/bpe_tokenizer.h"
#include "net/tokenizer/normal_form.h"
#include "tests/fuzz/fuzz_input.h"

namespace atl::fuzz {
namespace {

constexpr std::array kPatterns{SplitPattern::kGpt2, SplitPattern::kCl100kBase, SplitPattern::kLlama3,
                               SplitPattern::kQwen2, SplitPattern::kO200kBase};
// Each of two parts that stand before it or are single bytes: so they are merges, too.
constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kMerges{{{"t", "h"},
                                                                                 {"th", "e"},
                                                                                 {" ", "the"},
                                                                                 {" ", " "},
                                                                                 {"a", "a"},
                                                                                 {"aa", "a"},
                                                                                 {"1", "2"},
                                                                                 {"\n", "\n"},
                                                                                 {"e", "r"},
                                                                                 {"h", "e"},
                                                                                 {"\xC3", "\xA9"},
                                                                                 {"'", "s"},
                                                                                 {"\xE4", "\xB8"},
                                                                                 {"\xE4\xB8", "\xAD"},
                                                                                 {"  ", "  "},
                                                                                 {"=", "="}}};

struct Fixture {
  std::vector<std::string> tokens;
  std::map<std::pair<TokenId, TokenId>, TokenId> merges;  // whose result's id is its rank
  std::vector<std::unique_ptr<BpeTokenizer>> tokenizers;  // by pattern

  Fixture() {
    BpeVocabulary vocabulary;
    std::map<std::string, TokenId, std::less<>> ids;
    for (unsigned byte = 0; byte < 256; ++byte) {
      vocabulary.alphabet.byte_ids[byte] = byte;
      ids[std::string(1, static_cast<char>(byte))] = byte;
      tokens.push_back(std::string(1, static_cast<char>(byte)));
    }
    for (const auto& [left, right] : kMerges) {
      const auto id = static_cast<TokenId>(tokens.size());
      tokens.push_back(std::string(left) + std::string(right));
      ids[tokens.back()] = id;
      vocabulary.merges.push_back({ids.find(left)->second, ids.find(right)->second, id});
      merges[{ids.find(left)->second, ids.find(right)->second}] = id;
    }
    for (TokenId id = 0; id < tokens.size(); ++id) vocabulary.mergeable.push_back(id);
    vocabulary.tokens = tokens;
    for (const SplitPattern pattern : kPatterns) {
      vocabulary.pattern = pattern;
      tokenizers.push_back(BpeTokenizer::make({}, vocabulary));
    }
  }

  void merge(std::string_view piece, std::vector<TokenId>& all) const {
    std::vector<TokenId> ids;
    for (const char byte : piece) ids.push_back(static_cast<unsigned char>(byte));
    for (;;) {
      TokenId least = UINT32_MAX;
      std::size_t place = 0;
      for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
        const auto found = merges.find({ids[i], ids[i + 1]});
        if (found == merges.end() || found->second >= least) continue;
        least = found->second;
        place = i;
      }
      if (least == UINT32_MAX) break;
      ids[place] = least;
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(place) + 1);
    }
    all.insert(all.end(), ids.begin(), ids.end());
  }
};

void check(const Fixture& fixture, SplitPattern pattern, const Tokenizer& tokenizer, const std::string& text) {
  std::vector<TokenId> expected;
  std::size_t begin = 0;
  for (const std::size_t end : split_ends(pattern, text)) {
    ATOLL_FUZZ_CHECK(end > begin && end <= text.size());
    fixture.merge(std::string_view(text).substr(begin, end - begin), expected);
    begin = end;
  }
  ATOLL_FUZZ_CHECK(begin == text.size());
  const auto scratch = tokenizer.make_scratch();
  for (int round = 0; round < 2; ++round) {
    std::vector<TokenId> ids;
    ATOLL_FUZZ_CHECK(tokenizer.encode(text, SpecialText::kIsText, *scratch, ids).ok());
    ATOLL_FUZZ_CHECK(ids == expected);
    std::string bytes;
    ATOLL_FUZZ_CHECK(tokenizer.decode(ids, bytes).ok() && bytes == text);
  }
}

}  // namespace
}  // namespace atl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace atl;
  static const fuzz::Fixture fixture;
  fuzz::Input input(data, size);
  const std::size_t chosen = input.get<std::uint8_t>() % fuzz::kPatterns.size();
  const std::string text = to_string(input.rest());
  fuzz::check(fixture, fuzz::kPatterns[chosen], *fixture.tokenizers[chosen], text);
  const std::string normal = to_normal_form_c(text);
  ATOLL_FUZZ_CHECK(to_normal_form_c(normal) == normal);
  ATOLL_FUZZ_CHECK(!is_surely_normal(text) || normal == text);
  return 0;
}
