// Text of anybody, made fit to be shown: nothing in it that a terminal acts upon or that hides other text, valid UTF-8,
// within its length, and no other once it went the same way again.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "net/base/code_points.h"
#include "net/base/printable.h"
#include "tests/fuzz/fuzz_input.h"

namespace atl::fuzz {
namespace {

// A decoder of its own: what it refuses is no UTF-8.
bool is_utf8(const std::string& text) {
  const nlohmann::json json(text);
  using Handler = nlohmann::json::error_handler_t;
  return json.dump(-1, ' ', false, Handler::ignore) == json.dump(-1, ' ', false, Handler::replace);
}

bool holds(const std::string& text, std::initializer_list<const char*> what) {
  return std::any_of(what.begin(), what.end(), [&](const char* it) { return text.find(it) != std::string::npos; });
}

void check(std::string_view text, std::size_t most) {
  for (const auto make : {printable, printable_lines}) {
    const std::string shown = make(text, most);
    ATOLL_FUZZ_CHECK(shown.size() <= std::min(text.size(), most));
    ATOLL_FUZZ_CHECK(make(shown, most) == shown && make(shown, kNotCut) == shown);
    ATOLL_FUZZ_CHECK(is_utf8(shown));
    for (const char c : shown) {
      ATOLL_FUZZ_CHECK(!is_unseen(static_cast<unsigned char>(c) < 0x80 ? static_cast<char32_t>(c) : U'a') ||
                       (make == printable_lines && c == '\n'));
    }
    ATOLL_FUZZ_CHECK(!holds(shown, {"\u202A", "\u202B", "\u202D", "\u202E", "\u2066", "\u2067", "\u2068", "\u2028",
                                    "\u2029", "\u200B", "\u200E", "\u200F", "\uFEFF", "\u009B", "\u0085"}));
  }
  ATOLL_FUZZ_CHECK(!holds(printable(text), {"\n", "\u200C", "\u200D"}));
}

}  // namespace
}  // namespace atl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace atl;
  fuzz::Input input(data, size);
  const std::size_t most = input.get<std::uint8_t>();
  const std::string text = to_string(input.rest());
  fuzz::check(text, most);
  fuzz::check(text, kNotCut);
  return 0;
}
