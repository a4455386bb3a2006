// Files of tokenizers from anybody: refused with an error that can be shown, or a tokenizer that leads any text back to
// itself.
#include <array>
#include <string>

#include "net/base/printable.h"
#include "net/tokenizer/load_tokenizer.h"
#include "net/tokenizer/normal_form.h"
#include "tests/fuzz/fuzz_input.h"

namespace atl::fuzz {
namespace {

constexpr std::array kPatterns{SplitPattern::kGpt2, SplitPattern::kCl100kBase, SplitPattern::kLlama3,
                               SplitPattern::kQwen2, SplitPattern::kO200kBase};
// Words, numbers, lines, several scripts, marks, a special token and bytes that are no UTF-8.
constexpr std::string_view kText =
    "It's 12345 caf\u00e9s,\r\n  \u4e2d\u6587 HTTPServer \u0928\u092e\u0938\u094d\u0924\u0947 <|endoftext|> "
    "\xFF\xE4\xB8 ";

void check(std::string_view content, std::optional<SplitPattern> pattern) {
  const auto made = read_tokenizer(content, pattern);
  if (!made.ok()) {
    ATOLL_FUZZ_CHECK(is_printable(made.error().message) && made.error().message.size() < 8192);
    return;
  }
  const Tokenizer& tokenizer = **made;
  const auto scratch = tokenizer.make_scratch();
  for (const SpecialText special : {SpecialText::kIsText, SpecialText::kIsToken}) {
    std::vector<TokenId> ids;
    if (!tokenizer.encode(kText, special, *scratch, ids).ok()) continue;  // its own expressions take too long
    for (const TokenId id : ids) ATOLL_FUZZ_CHECK(id < tokenizer.facts().vocab_size);
    std::string bytes;
    ATOLL_FUZZ_CHECK(tokenizer.decode(ids, bytes).ok());
    ATOLL_FUZZ_CHECK(!pattern || bytes == kText);  // a tokenizer.json may change text
  }
}

}  // namespace
}  // namespace atl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace atl;
  fuzz::Input input(data, size);
  const std::size_t chosen = input.get<std::uint8_t>() % (fuzz::kPatterns.size() + 1);
  const auto pattern = chosen < fuzz::kPatterns.size() ? std::optional(fuzz::kPatterns[chosen]) : std::nullopt;
  fuzz::check(to_string(input.rest()), pattern);
  return 0;
}
