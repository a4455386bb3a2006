// Text that another machine, process or file said, made fit to be shown: the one place for logs, terminals, JSON and
// windows. Nothing in what it returns moves a cursor, ends a line, turns the direction of writing, hides other text or
// grows over its neighbours; it is valid UTF-8, and never longer than what was given. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

namespace atl {

inline constexpr std::size_t kNotCut = std::string_view::npos;

// One line, a name or a sentence. What cannot be shown (is_unseen, bytes that are no UTF-8, marks with nothing beneath
// them) becomes '?', tabs become spaces, joiners and what is piled up on one character are left out. Cut to `max_bytes`
// before a character, with its marks.
std::string printable(std::string_view text, std::size_t max_bytes = kNotCut);
// Prose, and paths: the same, but ends of lines stay, and joiners where they join.
std::string printable_lines(std::string_view text, std::size_t max_bytes = kNotCut);
// One line, and nothing in it would be changed but joiners.
bool is_printable(std::string_view text);

}  // namespace atl
