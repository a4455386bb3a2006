// What becomes of a character on a screen, by Unicode's own tables. Pure functions; any thread.
#pragma once

namespace atl {

// Acted upon, drawn as nothing, or assigned to nothing: controls, what sets the direction of writing, the zero-width,
// ends of lines and paragraphs, surrogates, private use, what Unicode does not know.
bool is_unseen(char32_t code_point);
// Drawn upon, or joined to, what stands before it.
bool is_mark(char32_t code_point);
// Chooses a shape of its neighbours (zero-width joiners, variation selectors): without it they are as legible.
bool is_joiner(char32_t code_point);

}  // namespace atl
