// White space and characters as Python has them (str.isspace, len), on which scores of lm-evaluation-harness depend.
// Text is UTF-8. Pure; any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace atl {

// Bytes of white space at the end: what rstrip() takes away.
std::size_t trailing_white_space(std::string_view text);
// How many pieces re.split(r"\s+", text) makes: one more than there are runs of white space.
std::size_t split_count(std::string_view text);
// Code points: len(text).
std::size_t characters(std::string_view text);

}  // namespace atl
