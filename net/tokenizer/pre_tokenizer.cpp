#include "net/tokenizer/pre_tokenizer.h"

#include <algorithm>

#include "net/tokenizer/byte_letters.h"

namespace atl {
namespace {

struct Part {
  TextSpan span;
  bool is_match;
};

// Matches and what stands between them, in `whole`.
std::vector<Part> parts_of(std::span<const TextSpan> found, std::size_t size, bool inverted) {
  std::vector<Part> parts;
  std::size_t from = 0;
  for (const TextSpan& one : found) {
    if (one.begin != from) parts.push_back({{from, one.begin}, inverted});
    parts.push_back({one, !inverted});
    from = one.end;
  }
  if (from != size) parts.push_back({{from, size}, inverted});
  return parts;
}

// Joins neighbours: a match to the one before it that is none, or those that are alike. `parts` in the order in which
// they are joined.
std::vector<TextSpan> joined(std::span<const Part> parts, SplitBehavior behavior) {
  std::vector<TextSpan> spans;
  bool last_is_match = false;
  for (const Part& part : parts) {
    const bool joins =
        behavior == SplitBehavior::kContiguous ? part.is_match == last_is_match : part.is_match && !last_is_match;
    if (joins && !spans.empty()) {
      spans.back().begin = std::min(spans.back().begin, part.span.begin);
      spans.back().end = std::max(spans.back().end, part.span.end);
    } else {
      spans.push_back(part.span);
    }
    last_is_match = part.is_match;
  }
  return spans;
}

std::vector<TextSpan> spans_of(std::vector<Part> parts, SplitBehavior behavior) {
  std::vector<TextSpan> spans;
  switch (behavior) {
    case SplitBehavior::kIsolated:
    case SplitBehavior::kRemoved:
      for (const Part& part : parts) {
        if (behavior == SplitBehavior::kIsolated || !part.is_match) spans.push_back(part.span);
      }
      return spans;
    case SplitBehavior::kMergedWithNext:
      std::reverse(parts.begin(), parts.end());
      spans = joined(parts, behavior);
      std::reverse(spans.begin(), spans.end());
      return spans;
    case SplitBehavior::kMergedWithPrevious:
    case SplitBehavior::kContiguous: return joined(parts, behavior);
  }
  return spans;
}

// The steps, each from `text` and `pieces` to new ones.
struct Cut {
  RegexRoom& regex;
  bool at_begin;
  std::string_view text;
  std::span<const TextSpan> pieces;
  std::vector<TextSpan>& found;
  std::string& next_text;
  std::vector<TextSpan>& next_pieces;

  std::string_view piece(const TextSpan& span) const { return text.substr(span.begin, span.end - span.begin); }
  Status split(std::string_view piece_text, std::size_t offset, const SplitStep& step) const {
    found.clear();
    ATOLL_RETURN_IF_ERROR(step.pattern.find_all(piece_text, regex, found));
    for (const TextSpan& span : spans_of(parts_of(found, piece_text.size(), step.inverted), step.behavior)) {
      if (span.begin != span.end) next_pieces.push_back({offset + span.begin, offset + span.end});
    }
    return ok_status();
  }
  void keep(const std::string& made) const {
    next_pieces.push_back({next_text.size(), next_text.size() + made.size()});
    next_text += made;
  }

  // True: the pieces are of next_text.
  Result<bool> operator()(const SplitStep& step) const {
    for (const TextSpan& span : pieces) ATOLL_RETURN_IF_ERROR(split(piece(span), span.begin, step));
    return false;
  }
  Result<bool> operator()(const MetaspaceStep& step) const {
    const SplitStep cut{TextPattern::of_text(step.replacement), SplitBehavior::kMergedWithNext};
    for (const TextSpan& span : pieces) {
      std::string made;
      for (const char byte : piece(span)) {
        if (byte == ' ') {
          made += step.replacement;
        } else {
          made += byte;
        }
      }
      const bool is_first = at_begin && &span == pieces.data();
      const bool prepends = step.prepend == MetaspaceStep::Prepend::kAlways ||
                            (step.prepend == MetaspaceStep::Prepend::kFirst && is_first);
      if (prepends && !made.starts_with(step.replacement)) made.insert(0, step.replacement);
      if (step.splits) {
        ATOLL_RETURN_IF_ERROR(split(made, next_text.size(), cut));
        next_text += made;
      } else {
        keep(made);
      }
    }
    return true;
  }
  Result<bool> operator()(const PrefixSpaceStep&) const {
    for (const TextSpan& span : pieces) {
      const std::string_view given = piece(span);
      keep(given.starts_with(' ') ? std::string(given) : ' ' + std::string(given));
    }
    return true;
  }
  Result<bool> operator()(const ByteLettersStep&) const {
    for (const TextSpan& span : pieces) keep(letters_of_bytes(piece(span)));
    return true;
  }
};

}  // namespace

Result<std::span<const std::string_view>> PreTokenizer::cut(std::string_view text, bool at_begin,
                                                            PreTokenizerRoom& room) const {
  room.views_.clear();
  if (text.empty()) return std::span<const std::string_view>();
  room.pieces_.assign(1, {0, text.size()});
  for (const PreTokenizerStep& step : steps_) {
    room.next_pieces_.clear();
    room.next_text_.clear();
    const Cut cut{room.regex, at_begin, text, room.pieces_, room.found_, room.next_text_, room.next_pieces_};
    ATOLL_ASSIGN_OR_RETURN(const bool of_next_text, std::visit(cut, step));
    if (of_next_text) {
      std::swap(room.text_, room.next_text_);
      text = room.text_;
    } else {
      at_begin = at_begin && !room.next_pieces_.empty() && room.next_pieces_.front().begin == 0;
    }
    std::swap(room.pieces_, room.next_pieces_);
  }
  for (const TextSpan& span : room.pieces_) room.views_.push_back(text.substr(span.begin, span.end - span.begin));
  return std::span<const std::string_view>(room.views_);
}

}  // namespace atl
