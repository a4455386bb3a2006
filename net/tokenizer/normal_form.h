// Unicode's normal form C (UAX #15), which Qwen's tokenizer brings text into: of the ways to write a character with its
// marks, the composed one. Bytes that are no UTF-8 stay as they are.
//
// The tables (unicode_compositions.h) are Unicode's 16.0. HuggingFace's own normaliser has older ones, in which marks
// that were assigned since then (U+09FE of Bengali is one) have no combining class: text in which such a mark stands
// beside another comes out otherwise there, and so do its tokens.
//
// Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

namespace atl {

// No character in it is one that normal form C could change, move or join to another: a quick look that most text
// passes.
bool is_surely_normal(std::string_view text);
std::string to_normal_form_c(std::string_view text);

}  // namespace atl
