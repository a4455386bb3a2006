#include "net/data/json_line_scanner.h"

#include <fmt/format.h>

#include <charconv>

#include "net/base/printable.h"
#include "net/data/text_blocks.h"

namespace atl {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::uint32_t code, std::string& to) {
  if (code < 0x80) {
    to += static_cast<char>(code);
    return;
  }
  if (code < 0x800) {
    to += static_cast<char>(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      to += static_cast<char>(0xE0 | code >> 12);
    } else {
      to += static_cast<char>(0xF0 | code >> 18);
      to += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    }
    to += static_cast<char>(0x80 | (code >> 6 & 0x3F));
  }
  to += static_cast<char>(0x80 | (code & 0x3F));
}

class LineScanner {
 public:
  LineScanner(std::string_view line, const std::vector<std::string>& path) : line_(line), path_(path) {}

  Result<std::optional<std::string>> scan() {
    ATOLL_RETURN_IF_ERROR(value(0));
    skip_space();
    if (at_ != line_.size()) return no_json();
    if (found_ == Found::kMissing) return wrong(fmt::format("field '{}' is missing", name_of(path_.size())));
    if (found_ == Found::kNoObject) {
      return wrong(reached_ == 0 ? std::string("it is no JSON object")
                                 : fmt::format("field '{}' is no JSON object", name_of(reached_)));
    }
    if (found_ == Found::kNoText) return wrong(fmt::format("field '{}' is no text", name_of(path_.size())));
    if (found_ == Found::kNull) return std::optional<std::string>();
    if (half_pair_) {
      return wrong(fmt::format("field '{}' has half of a surrogate pair (\\u{:04x}), which is no character",
                               name_of(path_.size()), half_pair_));
    }
    return std::optional(std::move(text_));
  }

  // After scan(): where numbers stand that no double is; empty: the line is no JSON.
  std::vector<std::pair<std::size_t, std::size_t>> endless() {
    return at_ == line_.size() ? std::move(endless_) : std::vector<std::pair<std::size_t, std::size_t>>();
  }

 private:
  enum class Found { kMissing, kNull, kNoObject, kNoText, kText };
  static constexpr std::size_t kAside = SIZE_MAX;  // not on the path

  // `depth` of the path was followed to it.
  Status value(std::size_t depth) {
    skip_space();
    const char first = peek();
    const bool is_it = depth == path_.size();
    if (depth != kAside) {
      reached_ = depth;
      found_ = first == 'n' ? Found::kNull : is_it ? Found::kNoText : first == '{' ? Found::kMissing : Found::kNoObject;
      if (depth == 0 && first == 'n') found_ = Found::kNoObject;
    }
    if (first == '{') return object(depth);
    if (first == '[') return list();
    if (first == '"') {
      std::uint32_t ignored = 0;
      if (is_it) found_ = Found::kText;
      return is_it ? string(&text_, half_pair_) : string(nullptr, ignored);
    }
    const std::size_t begin = at_;
    for (const std::string_view word : {"null", "true", "false", "NaN", "Infinity", "-Infinity"}) {
      if (!line_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      if (word.find_first_of("NI") != std::string_view::npos) endless_.emplace_back(begin, at_);
      return ok_status();
    }
    ATOLL_RETURN_IF_ERROR(number());
    double ignored = 0;
    const auto read = std::from_chars(line_.data() + begin, line_.data() + at_, ignored);
    if (read.ec == std::errc::result_out_of_range) endless_.emplace_back(begin, at_);
    return ok_status();
  }

  Status object(std::size_t depth) {
    ATOLL_RETURN_IF_ERROR(enter());
    const bool leads_there = depth != kAside && depth < path_.size();
    skip_space();
    if (take('}')) return leave();
    for (;;) {
      skip_space();
      if (peek() != '"') return no_json();
      std::uint32_t ignored = 0;
      ATOLL_RETURN_IF_ERROR(string(&key_, ignored));
      skip_space();
      if (!take(':')) return no_json();
      ATOLL_RETURN_IF_ERROR(value(leads_there && key_ == path_[depth] ? depth + 1 : kAside));
      skip_space();
      if (take('}')) return leave();
      if (!take(',')) return no_json();
    }
  }

  Status list() {
    ATOLL_RETURN_IF_ERROR(enter());
    skip_space();
    if (take(']')) return leave();
    for (;;) {
      ATOLL_RETURN_IF_ERROR(value(kAside));
      skip_space();
      if (take(']')) return leave();
      if (!take(',')) return no_json();
    }
  }

  // Into `to`, if there is one. `half`: of a surrogate pair that stands in it, else 0.
  Status string(std::string* to, std::uint32_t& half) {
    ++at_;
    half = 0;
    if (to != nullptr) to->clear();
    for (;;) {
      if (at_ == line_.size() || static_cast<unsigned char>(line_[at_]) < 0x20) return no_json();
      const char c = line_[at_++];
      if (c == '"') return ok_status();
      std::uint32_t code = static_cast<unsigned char>(c);
      if (c == '\\') {
        ATOLL_RETURN_IF_ERROR(escaped(code));
        if (code >= 0xD800 && code < 0xE000) half = code;
        if (to != nullptr) append_utf8(code, *to);
      } else if (to != nullptr) {
        *to += c;
      }
    }
  }

  // What is behind a backslash, of a surrogate pair both halves.
  Status escaped(std::uint32_t& code) {
    const char c = peek();
    ++at_;
    switch (c) {
      case '"':
      case '\\':
      case '/': code = static_cast<unsigned char>(c); return ok_status();
      case 'b': code = '\b'; return ok_status();
      case 'f': code = '\f'; return ok_status();
      case 'n': code = '\n'; return ok_status();
      case 'r': code = '\r'; return ok_status();
      case 't': code = '\t'; return ok_status();
      case 'u': break;
      default: --at_; return no_json();
    }
    ATOLL_RETURN_IF_ERROR(four_hex(code));
    if (code < 0xD800 || code >= 0xDC00 || !line_.substr(at_).starts_with("\\u")) return ok_status();
    const std::size_t before = at_;
    at_ += 2;
    std::uint32_t second = 0;
    ATOLL_RETURN_IF_ERROR(four_hex(second));
    if (second >= 0xDC00 && second < 0xE000) {
      code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
    } else {
      at_ = before;
    }
    return ok_status();
  }

  Status four_hex(std::uint32_t& code) {
    code = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = peek();
      const char small = static_cast<char>(c | 0x20);
      if (!is_digit(c) && (small < 'a' || small > 'f')) return no_json();
      code = code << 4 | static_cast<std::uint32_t>(is_digit(c) ? c - '0' : small - 'a' + 10);
      ++at_;
    }
    return ok_status();
  }

  Status number() {
    (void)take('-');
    if (!is_digit(peek())) return no_json();
    if (!take('0')) digits();
    if (take('.')) {
      if (!is_digit(peek())) return no_json();
      digits();
    }
    if (take('e') || take('E')) {
      if (!take('+')) (void)take('-');
      if (!is_digit(peek())) return no_json();
      digits();
    }
    return ok_status();
  }
  void digits() {
    while (is_digit(peek())) ++at_;
  }

  char peek() const { return at_ < line_.size() ? line_[at_] : '\0'; }
  bool take(char c) {
    if (at_ == line_.size() || line_[at_] != c) return false;
    ++at_;
    return true;
  }
  void skip_space() {
    while (at_ < line_.size() && std::string_view(" \t\r\n").find(line_[at_]) != std::string_view::npos) ++at_;
  }
  Status enter() {
    ++at_;
    return ++depth_ > kMaxLineDepth ? Status(wrong(fmt::format("JSON is nested deeper than {}", kMaxLineDepth)))
                                    : ok_status();
  }
  Status leave() {
    --depth_;
    return ok_status();
  }
  Error no_json() const { return wrong(fmt::format("this is no JSON: it cannot be read from column {} on", at_ + 1)); }
  static Error wrong(std::string why) { return Error{ErrorCode::kInvalidArgument, std::move(why)}; }
  std::string name_of(std::size_t parts) const {
    std::string name;
    for (std::size_t i = 0; i < parts; ++i) name += (i == 0 ? "" : ".") + path_[i];
    return printable(name);
  }

  const std::string_view line_;
  const std::vector<std::string>& path_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string key_;  // read last
  Found found_ = Found::kMissing;
  std::size_t reached_ = 0;  // of the path
  std::string text_;
  std::uint32_t half_pair_ = 0;  // in the text
  std::vector<std::pair<std::size_t, std::size_t>> endless_;
};

}  // namespace

Result<std::optional<std::string>> scan_json_line(std::string_view line, const std::vector<std::string>& path) {
  return LineScanner(line, path).scan();
}

std::string finite_json_line(std::string_view line) {
  const std::vector<std::string> nowhere;
  LineScanner scanner(line, nowhere);
  (void)scanner.scan();
  std::string finite;
  std::size_t taken = 0;
  for (const auto& [begin, end] : scanner.endless()) {
    finite.append(line.substr(taken, begin - taken)).append("null");
    taken = end;
  }
  return finite.append(line.substr(taken));
}

}  // namespace atl
