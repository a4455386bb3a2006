// Unicode's normal forms (UAX #15), which tokenizers bring text into; Qwen's into form C: of the ways to write a
// character with its marks, the composed one. Bytes that are no UTF-8 stay as they are.
//
// The tables (unicode_compositions.h) are those of HuggingFace's tokenizers, so that tokens are the same: an older
// version of Unicode's, in which marks that were assigned since then (U+09FE of Bengali is one) have no combining
// class, and characters that were assigned since then (U+11383 of Tulu-Tigalari) are not taken apart.
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

// K: characters that are others in another shape become those (a ligature its letters); D: taken apart, not composed.
enum class NormalForm { kC, kD, kKc, kKd };
std::string to_normal_form(std::string_view text, NormalForm form);

}  // namespace atl
