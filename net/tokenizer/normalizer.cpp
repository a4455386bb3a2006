#include "net/tokenizer/normalizer.h"

#include "net/tokenizer/byte_letters.h"
#include "net/tokenizer/utf8_text.h"

namespace atl {
namespace {

std::string_view without_ends(std::string_view text, const NormalizerStep& step) {
  std::size_t begin = text.size(), end = 0;
  for_each_char(text, [&](const TextChar& one, std::size_t at) {
    if (is_white_space(one)) return;
    begin = std::min(begin, at);
    end = at + one.bytes;
  });
  if (begin > end) return step.left || step.right ? std::string_view() : text;  // nothing but white space
  if (!step.right) end = text.size();
  if (!step.left) begin = 0;
  return text.substr(begin, end - begin);
}

Result<std::string> with_replacements(std::string_view text, const NormalizerStep& step, RegexRoom& room) {
  std::vector<TextSpan> found;
  ATOLL_RETURN_IF_ERROR(step.pattern->find_all(text, room, found));
  std::string made;
  std::size_t from = 0;
  for (const TextSpan& one : found) {
    made.append(text.substr(from, one.begin - from)).append(step.text);
    from = one.end;
  }
  return made.append(text.substr(from));
}

}  // namespace

Result<std::string_view> Normalizer::apply(std::string_view text, RegexRoom& room, std::string& changed) const {
  using Kind = NormalizerStep::Kind;
  for (const NormalizerStep& step : steps_) {
    std::string made;
    switch (step.kind) {
      case Kind::kForm:
        if (step.form == NormalForm::kC && is_surely_normal(text)) continue;
        made = to_normal_form(text, step.form);
        break;
      case Kind::kPrepend: made = text.empty() ? std::string() : step.text + std::string(text); break;
      case Kind::kReplace: {
        ATOLL_ASSIGN_OR_RETURN(made, with_replacements(text, step, room));
        break;
      }
      case Kind::kStrip: made = without_ends(text, step); break;
      case Kind::kByteLetters: made = letters_of_bytes(text); break;
    }
    changed = std::move(made);
    text = changed;
  }
  return text;
}

}  // namespace atl
