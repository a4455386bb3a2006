#include "net/tokenizer/token_decoder.h"

#include <algorithm>
#include <charconv>

#include "net/tokenizer/byte_letters.h"

namespace atl {
namespace {

std::string replaced(std::string_view text, std::string_view wanted, std::string_view by) {
  std::string made;
  for (std::size_t at = text.find(wanted); at != std::string_view::npos; at = text.find(wanted)) {
    made.append(text.substr(0, at)).append(by);
    text.remove_prefix(at + wanted.size());
  }
  return made.append(text);
}

std::string stripped(std::string_view text, const DecoderStep& step) {
  for (std::size_t i = 0; i < step.start && text.starts_with(step.text); ++i) text.remove_prefix(step.text.size());
  for (std::size_t i = 0; i < step.stop && text.ends_with(step.text); ++i) text.remove_suffix(step.text.size());
  return std::string(text);
}

std::string byte_or_text(std::string_view token) {
  unsigned byte = 0;
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::string(token);
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  if (error != std::errc() || end != token.data() + 5) return std::string(token);
  return std::string(1, static_cast<char>(byte));
}

std::string changed(const DecoderStep& step, std::string_view text, bool is_first) {
  using Kind = DecoderStep::Kind;
  switch (step.kind) {
    case Kind::kByteLetters: return bytes_of_letters(text).value_or(std::string(text));
    case Kind::kReplace: return replaced(text, step.text, step.replacement);
    case Kind::kByteFallback: return byte_or_text(text);
    case Kind::kStrip: return stripped(text, step);
    case Kind::kMetaspace: return replaced(text, step.text, is_first && step.drops_first ? "" : " ");
    case Kind::kFuse: break;
  }
  return std::string(text);
}

bool is_fuse(const DecoderStep& step) { return step.kind == DecoderStep::Kind::kFuse; }

}  // namespace

std::string TokenDecoder::text_of(std::string_view token, bool is_first) const {
  std::string text(token);
  for (auto step = steps_.begin(); step != steps_.end() && !is_fuse(*step); ++step)
    text = changed(*step, text, is_first);
  return text;
}

bool TokenDecoder::changes_first() const {
  return std::any_of(steps_.begin(), std::find_if(steps_.begin(), steps_.end(), is_fuse),
                     [](const DecoderStep& step) { return step.drops_first; });
}

std::string TokenDecoder::finish(std::string text) const {
  for (auto step = std::find_if(steps_.begin(), steps_.end(), is_fuse); step != steps_.end(); ++step) {
    text = changed(*step, text, true);
  }
  return text;
}

}  // namespace atl
