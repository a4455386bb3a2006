// Regular expressions of tokenizer.json files, which are Oniguruma's (as HuggingFace's tokenizers compile them), in the
// syntax of PCRE2. What the two would take for different things is written out: sets of characters (\s, \w, \h), sets
// within sets, possessive signs, options in the middle. What cannot be is refused by its name.
//
// PCRE2 compiles the result with UTF, UCP and MULTILINE. Pure function; any thread.
#pragma once

#include <string>
#include <string_view>

#include "net/base/result.h"

namespace atl {

// Without groups that capture: only where a match begins and ends is asked for.
Result<std::string> to_pcre2(std::string_view regex);

// Of \s, and of \w as Oniguruma and as Rust's regex crate have it, as the contents of a set.
inline constexpr std::string_view kSpaceSet =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
inline constexpr std::string_view kWordSet =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";
inline constexpr std::string_view kRustWordSet =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200c}\x{200d}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";

}  // namespace atl
