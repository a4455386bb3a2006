#include "net/base/printable.h"

#include <algorithm>

#include "net/base/code_points.h"

namespace atl {
namespace {

constexpr int kMostMarks = 6;  // on one character; scripts of the living have fewer

struct Character {
  char32_t code_point = 0;
  std::size_t bytes = 1;
  bool good = false;  // else one byte that begins no character
};

// The first one of UTF-8 text: no overlong form, no surrogate, nothing beyond U+10FFFF.
Character first_of(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t bytes = lead >= 0xC2 && lead < 0xE0   ? 2
                            : (lead >> 4) == 0xE          ? 3
                            : lead >= 0xF0 && lead < 0xF5 ? 4
                                                          : 0;
  if (bytes == 0 || bytes > text.size()) return {};
  char32_t code_point = lead & (0xFFu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return {};
    code_point = (code_point << 6) | (next & 0x3Fu);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
  if (code_point < kLeast[bytes] || surrogate || code_point > 0x10FFFF) return {};
  return {code_point, bytes, true};
}

class Shown {
 public:
  Shown(std::size_t max_bytes, bool lines) : max_bytes_(max_bytes), lines_(lines) {}

  // False once it is full.
  bool add(const Character& character, std::string_view bytes) {
    if (!character.good) return begin("?");
    if (lines_ && character.code_point == '\n') return begin(bytes);
    if (character.code_point == '\t') return begin(" ");
    if (is_joiner(character.code_point)) return !lines_ || !carries_marks() || pile_up(bytes);
    if (is_unseen(character.code_point)) return begin("?");
    if (!is_mark(character.code_point)) return begin(bytes);
    if (!carries_marks()) return begin("?");
    return pile_up(bytes);
  }
  std::string take() { return std::move(text_); }

 private:
  bool carries_marks() const { return !text_.empty() && text_.back() != ' ' && text_.back() != '\n'; }
  bool begin(std::string_view bytes) {
    if (bytes.size() > max_bytes_ - text_.size()) return false;
    begun_ = text_.size();
    marks_ = 0;
    text_ += bytes;
    return true;
  }
  // A character goes with its marks or not at all.
  bool pile_up(std::string_view mark) {
    if (++marks_ > kMostMarks) return true;
    if (mark.size() > max_bytes_ - text_.size()) return text_.resize(begun_), false;
    text_ += mark;
    return true;
  }

  const std::size_t max_bytes_;
  const bool lines_;
  std::string text_;
  std::size_t begun_ = 0;  // where its last character begins
  int marks_ = 0;          // on that
};

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7F; });
}

std::string shown(std::string_view text, std::size_t max_bytes, bool lines) {
  if (text.size() <= max_bytes && is_plain(text)) return std::string(text);
  Shown shown(max_bytes, lines);
  while (!text.empty()) {
    const Character character = first_of(text);
    const bool windows_end = lines && text.starts_with("\r\n");
    if (!windows_end && !shown.add(character, text.substr(0, character.bytes))) break;
    text.remove_prefix(character.bytes);
  }
  return shown.take();
}

}  // namespace

std::string printable(std::string_view text, std::size_t max_bytes) { return shown(text, max_bytes, /*lines=*/false); }
std::string printable_lines(std::string_view text, std::size_t max_bytes) {
  return shown(text, max_bytes, /*lines=*/true);
}
bool is_printable(std::string_view text) {
  return text.find('\n') == std::string_view::npos && printable_lines(text) == text;
}

}  // namespace atl
