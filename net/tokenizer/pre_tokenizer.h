// How a tokenizer.json cuts text into pieces, each of which is merged on its own: its pre_tokenizer, a row of steps,
// each of which cuts every piece of the one before. Never changes once made; any thread, each with a room of its own.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "net/tokenizer/text_pattern.h"

namespace atl {

// What becomes of a match and of what stands between matches.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct SplitStep {
  TextPattern pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool inverted = false;  // what stands between matches counts as one, and a match does not
};

// Spaces become `replacement`; one before the text or before each piece; pieces begin with it, where `splits`.
struct MetaspaceStep {
  enum class Prepend { kAlways, kFirst, kNever };

  std::string replacement;
  Prepend prepend = Prepend::kAlways;
  bool splits = true;
};

// A space before each piece that begins with none.
struct PrefixSpaceStep {};
// Each byte becomes its letter (byte_letters.h).
struct ByteLettersStep {};

using PreTokenizerStep = std::variant<SplitStep, MetaspaceStep, PrefixSpaceStep, ByteLettersStep>;

// Kept from text to text. One thread.
class PreTokenizerRoom {
 public:
  RegexRoom regex;

 private:
  friend class PreTokenizer;

  std::string text_, next_text_;
  std::vector<TextSpan> pieces_, next_pieces_, found_;
  std::vector<std::string_view> views_;
};

class PreTokenizer {
 public:
  PreTokenizer() = default;
  explicit PreTokenizer(std::vector<PreTokenizerStep> steps) : steps_(std::move(steps)) {}

  // None is empty. They are `text`'s or the room's, until it is used again. `at_begin`: nothing stands before the text.
  // kInvalidArgument: a search takes too long.
  Result<std::span<const std::string_view>> cut(std::string_view text, bool at_begin, PreTokenizerRoom& room) const;

 private:
  std::vector<PreTokenizerStep> steps_;
};

}  // namespace atl
