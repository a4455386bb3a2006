#include "net/tokenizer/regex_syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "net/base/printable.h"
#include "net/tokenizer/unicode_classes.h"

namespace atl {
namespace {

constexpr int kMaxNested = 32;            // of groups and sets within each other
constexpr std::size_t kShown = 200;       // bytes of an expression in an error
constexpr unsigned kMaxRepeats = 10'000;  // PCRE2 takes up to 65,535, Oniguruma up to 100,000

constexpr std::string_view kHexSet = "0-9A-Fa-f";
// Characters whose folding is several, and pairs of letters that are such a folding: Oniguruma matches the one by the
// other, PCRE2 does not.
constexpr std::array kFoldingPairs{"ss", "ff", "fi", "fl", "st"};
constexpr std::array<std::pair<char32_t, char32_t>, 9> kFoldToSeveral{{{0xDF, 0xDF},
                                                                       {0x130, 0x130},
                                                                       {0x149, 0x149},
                                                                       {0x1F0, 0x1F0},
                                                                       {0x390, 0x390},
                                                                       {0x3B0, 0x3B0},
                                                                       {0x587, 0x587},
                                                                       {0x1E96, 0x1FFC},
                                                                       {0xFB00, 0xFB17}}};

// By Oniguruma's names without spaces, '-' and '_', in small letters.
constexpr std::array<std::pair<std::string_view, std::string_view>, 44> kProperties{{
    {"letter", "L"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"mark", "M"},
    {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"digit", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"punctuation", "P"},
    {"punct", "P"},
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"openpunctuation", "Ps"},
    {"closepunctuation", "Pe"},
    {"initialpunctuation", "Pi"},
    {"finalpunctuation", "Pf"},
    {"otherpunctuation", "Po"},
    {"symbol", "S"},
    {"mathsymbol", "Sm"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"othersymbol", "So"},
    {"separator", "Z"},
    {"spaceseparator", "Zs"},
    {"lineseparator", "Zl"},
    {"paragraphseparator", "Zp"},
    {"control", "Cc"},
    {"cntrl", "Cc"},
    {"format", "Cf"},
    {"privateuse", "Co"},
    {"han", "sc:Han"},
    {"hiragana", "sc:Hiragana"},
    {"katakana", "sc:Katakana"},
    {"hangul", "sc:Hangul"},
    {"latin", "sc:Latin"},
    {"cyrillic", "sc:Cyrillic"},
    {"greek", "sc:Greek"},
}};
constexpr std::array<std::string_view, 14> kScripts{"arabic",   "hebrew",  "thai",    "devanagari", "armenian",
                                                    "georgian", "bengali", "tamil",   "telugu",     "ethiopic",
                                                    "khmer",    "lao",     "tibetan", "myanmar"};
constexpr std::string_view kCategories =
    " L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So "
    "Z Zs Zl Zp Cc Cf Co ";

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + ('a' - 'A')) : letter; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// What stands for one character: in a set, or a set's contents alone where it can be put into another.
struct OneChar {
  std::string set;  // contents of [...]; empty: `expression` alone
  std::string expression;

  static OneChar of_set(std::string_view contents, bool negated) {
    if (!negated) return {std::string(contents), fmt::format("[{}]", contents)};
    return {"", fmt::format("[^{}]", contents)};
  }
};

class Translator {
 public:
  explicit Translator(std::string_view regex) : left_(regex) {}

  Result<std::string> run() {
    std::string out;
    ATOLL_RETURN_IF_ERROR(alternatives(out, 0));
    if (!left_.empty()) return wrong("a ')' closes nothing");
    return out;
  }

 private:
  static Error wrong(std::string_view why) { return Error{ErrorCode::kInvalidArgument, std::string(why)}; }
  static Error unsupported(std::string_view what) {
    return wrong(fmt::format("{} is not supported", printable(what, kShown)));
  }

  bool take(std::string_view text) {
    if (!left_.starts_with(text)) return false;
    left_.remove_prefix(text.size());
    return true;
  }
  char take_char() {
    const char first = left_.front();
    left_.remove_prefix(1);
    return first;
  }
  Result<char32_t> take_code_point() {
    const auto* const at = reinterpret_cast<const std::uint8_t*>(left_.data());
    const TextChar found = decode_char(at, at + left_.size());
    if (found.code_point == kNoCodePoint) return wrong("it is no UTF-8");
    left_.remove_prefix(found.bytes);
    return found.code_point;
  }

  // Up to a ')' that is not its own, or the end.
  Status alternatives(std::string& out, int depth) {
    if (depth > kMaxNested) return wrong(fmt::format("more than {} groups stand within each other", kMaxNested));
    folded_.clear();
    while (!left_.empty() && left_.front() != ')') {
      if (take("|")) {
        folded_.clear();
        out += '|';
        continue;
      }
      if (const auto option = take_lone_option()) {
        // It holds up to the end of the group, over all alternatives that follow.
        const bool caseless = std::exchange(caseless_, *option);
        out += *option ? "(?i:" : "(?-i:";
        ATOLL_RETURN_IF_ERROR(alternatives(out, depth + 1));
        out += ')';
        caseless_ = caseless;
        return ok_status();
      }
      std::string one;
      ATOLL_RETURN_IF_ERROR(atom(one, depth));
      ATOLL_RETURN_IF_ERROR(repeats(one));
      out += one;
    }
    return ok_status();
  }
  std::optional<bool> take_lone_option() {
    if (take("(?i)")) return true;
    if (take("(?-i)")) return false;
    return std::nullopt;
  }

  Status atom(std::string& out, int depth) {
    const char first = left_.front();
    if (first != '\\' && first != '(' && first != '[') return plain_atom(out);
    if (first == '\\') return escape(out);
    folded_.clear();
    take_char();
    if (first == '(') return group(out, depth);
    ATOLL_ASSIGN_OR_RETURN(const OneChar one, set(depth + 1));
    out = one.expression;
    return ok_status();
  }
  Status plain_atom(std::string& out) {
    const char first = left_.front();
    if (first == '*' || first == '+' || first == '?') return wrong(fmt::format("'{}' repeats nothing", first));
    if (first == '.' || first == '^' || first == '$') {
      folded_.clear();
      out = take_char();
      return ok_status();
    }
    ATOLL_ASSIGN_OR_RETURN(const char32_t code, take_code_point());
    return literal(code, out);
  }

  Status group(std::string& out, int depth) {
    const bool caseless = caseless_;
    if (take("?i:")) {
      caseless_ = true;
      out = "(?i:";
    } else if (take("?-i:")) {
      caseless_ = false;
      out = "(?-i:";
    } else {
      for (const std::string_view begin : {"?:", "?=", "?!", "?>", "?<=", "?<!"}) {
        if (!take(begin)) continue;
        out = fmt::format("({}", begin);
        break;
      }
      if (out.empty() && (left_.starts_with('?') || left_.starts_with('*'))) {
        return unsupported(fmt::format("the group ({}", left_.substr(0, 3)));
      }
      if (out.empty()) out = "(?:";
    }
    ATOLL_RETURN_IF_ERROR(alternatives(out, depth + 1));
    if (!take(")")) return wrong("a group is not closed");
    out += ')';
    caseless_ = caseless;
    folded_.clear();
    return ok_status();
  }

  // *, +, ?, {n,m} and what follows them, as often as they stand there.
  Status repeats(std::string& one) {
    for (bool repeated = false;; repeated = true) {
      const std::string_view before = left_;
      ATOLL_ASSIGN_OR_RETURN(const std::string times, repeat());
      if (left_.size() == before.size()) return ok_status();
      folded_.clear();
      if (repeated) one = fmt::format("(?:{})", one);
      one += times;
    }
  }
  Result<std::string> repeat() {
    if (left_.empty()) return std::string();
    if (left_.front() == '{') return interval();
    if (left_.front() != '*' && left_.front() != '+' && left_.front() != '?') return std::string();
    std::string times(1, take_char());
    if (!left_.empty() && (left_.front() == '?' || left_.front() == '+')) times += take_char();
    return times;
  }
  // {n}, {n,}, {,m}, {n,m}; of the last three alone a '?' makes it lazy. A '+' behind it repeats all of it.
  Result<std::string> interval() {
    std::size_t at = 1;
    const auto number = [&]() -> std::optional<unsigned> {
      const std::size_t begin = at;
      unsigned value = 0;
      for (; at < left_.size() && is_digit(left_[at]) && value <= kMaxRepeats; ++at) {
        value = value * 10 + static_cast<unsigned>(left_[at] - '0');
      }
      return at == begin ? std::nullopt : std::optional(value);
    };
    const auto least = number();
    const bool is_range = at < left_.size() && left_[at] == ',';
    std::optional<unsigned> most = least;
    if (is_range) {
      ++at;
      most = number();
    }
    if (at >= left_.size() || left_[at] != '}' || (!least && !most)) return std::string();  // a '{' like others
    if (least.value_or(0) > kMaxRepeats || most.value_or(0) > kMaxRepeats || (most && *most < least.value_or(0))) {
      return wrong(fmt::format("a repetition is not from 0 to {} times", kMaxRepeats));
    }
    left_.remove_prefix(at + 1);
    std::string times = fmt::format("{{{}", least.value_or(0));
    if (is_range) times += most ? fmt::format(",{}", *most) : ",";
    times += '}';
    if (is_range && take("?")) times += '?';
    return times;
  }

  // ---- single characters

  // As it stands for itself, in a set and outside.
  static std::string escaped(char32_t code) { return fmt::format("\\x{{{:x}}}", static_cast<std::uint32_t>(code)); }

  Status literal(char32_t code, std::string& out) {
    ATOLL_RETURN_IF_ERROR(check_folding(code));
    folded_ += code < 0x80 ? lower(static_cast<char>(code)) : ' ';
    for (const std::string_view pair : kFoldingPairs) {
      if (caseless_ && folded_.ends_with(pair)) return unsupported(fmt::format("\"{}\" without regard to case", pair));
    }
    out = escaped(code);
    return ok_status();
  }
  Status check_folding(char32_t code) const {
    if (!caseless_) return ok_status();
    for (const auto& [first, last] : kFoldToSeveral) {
      if (code >= first && code <= last) {
        return unsupported(fmt::format("U+{:04X} without regard to case", static_cast<std::uint32_t>(code)));
      }
    }
    return ok_status();
  }

  // Behind a '\'. Empty: it is one of an `anchor` or a class.
  Result<std::optional<char32_t>> escaped_char() {
    if (left_.empty()) return wrong("a '\\' stands at the end");
    constexpr std::array<std::pair<char, char32_t>, 7> kControls{
        {{'t', 9}, {'n', 10}, {'v', 11}, {'f', 12}, {'r', 13}, {'a', 7}, {'e', 27}}};
    for (const auto& [letter, code] : kControls) {
      if (left_.front() != letter) continue;
      take_char();
      return std::optional<char32_t>(code);
    }
    if (left_.front() == 'x' || left_.front() == 'u') return hex_char();
    const char first = left_.front();
    const bool is_letter = (lower(first) >= 'a' && lower(first) <= 'z') || is_digit(first);
    if (is_letter) return std::optional<char32_t>();
    ATOLL_ASSIGN_OR_RETURN(const char32_t code, take_code_point());
    return std::optional(code);
  }
  Result<std::optional<char32_t>> hex_char() {
    const bool is_unicode = take_char() == 'u';
    const bool is_braced = !is_unicode && take("{");
    const std::size_t most = is_unicode ? 4 : is_braced ? 8 : 2;
    std::size_t digits = 0;
    std::uint32_t code = 0;
    for (; digits < most && digits < left_.size(); ++digits) {
      const char digit = lower(left_[digits]);
      if (!is_digit(digit) && (digit < 'a' || digit > 'f')) break;
      code = code << 4 | static_cast<std::uint32_t>(is_digit(digit) ? digit - '0' : digit - 'a' + 10);
    }
    left_.remove_prefix(digits);
    if (digits == 0 || (is_unicode && digits < 4) || (is_braced && !take("}")))
      return wrong("\\x or \\u has no number");
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000) || (code >= 0x80 && !is_unicode && !is_braced)) {
      return wrong(fmt::format("\\x{:x} is no character", code));
    }
    return std::optional(static_cast<char32_t>(code));
  }

  Status escape(std::string& out) {
    take_char();
    ATOLL_ASSIGN_OR_RETURN(const std::optional<char32_t> code, escaped_char());
    if (code) return literal(*code, out);
    folded_.clear();
    const char letter = left_.front();
    if (letter == 'b' || letter == 'B') {
      take_char();
      const std::string_view form =
          letter == 'b' ? "(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))" : "(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))";
      out = fmt::format(fmt::runtime(form), kWordSet);
      return ok_status();
    }
    if (letter == 'A' || letter == 'z' || letter == 'Z' || letter == 'R') {
      out = fmt::format("\\{}", take_char());
      return ok_status();
    }
    ATOLL_ASSIGN_OR_RETURN(const OneChar one, class_escape());
    out = one.expression;
    return ok_status();
  }

  // \s, \p{L} and their like; left_ begins with the letter.
  Result<OneChar> class_escape() {
    const char letter = take_char();
    const bool negated = letter < 'a';
    switch (lower(letter)) {
      case 's': return OneChar::of_set(kSpaceSet, negated);
      case 'w': return OneChar::of_set(kWordSet, negated);
      case 'h': return OneChar::of_set(kHexSet, negated);
      case 'd': return OneChar::of_set(negated ? R"(\P{Nd})" : R"(\p{Nd})", false);
      case 'p': return property(negated);
      default: return unsupported(fmt::format("\\{}", letter));
    }
  }
  Result<OneChar> property(bool negated) {
    const std::size_t end = left_.find('}');
    if (!take("{") || end == std::string_view::npos) return wrong("\\p has no name");
    std::string_view name = left_.substr(0, end - 1);
    left_.remove_prefix(end);
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    std::string plain;
    for (const char c : name) {
      if (c != ' ' && c != '-' && c != '_') plain += lower(c);
    }
    if (plain == "space") return OneChar::of_set(kSpaceSet, negated);
    if (plain == "word") return OneChar::of_set(kWordSet, negated);
    const auto known = property_of(plain);
    if (!known) return unsupported(fmt::format("\\p{{{}}}", name));
    return OneChar::of_set(fmt::format("\\{}{{{}}}", negated ? 'P' : 'p', *known), false);
  }
  static std::optional<std::string> property_of(const std::string& plain) {
    if (!plain.empty() && plain.size() <= 2) {
      std::string category = plain;
      category[0] = static_cast<char>(category[0] - ('a' - 'A'));
      if (kCategories.find(fmt::format(" {} ", category)) != std::string_view::npos) return category;
    }
    for (const auto& [name, category] : kProperties) {
      if (name == plain) return std::string(category);
    }
    if (std::find(kScripts.begin(), kScripts.end(), plain) == kScripts.end()) return std::nullopt;
    return fmt::format("sc:{}", plain);
  }

  // ---- sets

  // What stands between two "&&": contents, and what has to stand beside them.
  struct Operand {
    std::string contents;
    std::vector<std::string> others;

    bool is_empty() const { return contents.empty() && others.empty(); }
    std::string expression() const {
      if (others.empty()) return fmt::format("[{}]", contents);
      std::string all = "(?:";
      if (!contents.empty()) all += fmt::format("[{}]|", contents);
      for (const std::string& other : others) all += other + '|';
      all.back() = ')';
      return all;
    }
    void add(const OneChar& one) {
      if (one.set.empty()) {
        others.push_back(one.expression);
      } else {
        contents += one.set;
      }
    }
  };

  // Behind its '['.
  Result<OneChar> set(int depth) {
    if (depth > kMaxNested) return wrong(fmt::format("more than {} sets stand within each other", kMaxNested));
    const bool negated = take("^");
    Operand operand;
    std::string before;  // all operands but the last, as conditions
    for (bool first = true; first || !left_.starts_with(']'); first = false) {
      if (left_.empty()) return wrong("a set is not closed");
      if (take("&&")) {
        if (operand.is_empty()) return wrong("a set is empty");
        before += fmt::format("(?={})", operand.expression());
        operand = {};
      } else {
        ATOLL_RETURN_IF_ERROR(add_to_set(operand, depth));
      }
    }
    take_char();
    if (operand.is_empty()) return wrong("a set is empty");
    if (before.empty() && operand.others.empty()) return OneChar::of_set(operand.contents, negated);
    const std::string all =
        before.empty() ? operand.expression() : fmt::format("(?:{}{})", before, operand.expression());
    if (!negated) return OneChar{"", all};
    return OneChar{"", fmt::format("(?:(?!{})(?s:.))", all)};
  }
  Status add_to_set(Operand& operand, int depth) {
    if (left_.starts_with("[:")) return unsupported(left_.substr(0, left_.find(']')));
    if (take("[")) {
      ATOLL_ASSIGN_OR_RETURN(const OneChar inner, set(depth + 1));
      operand.add(inner);
      return ok_status();
    }
    ATOLL_ASSIGN_OR_RETURN(const std::optional<char32_t> first, set_char());
    if (!first) {
      ATOLL_ASSIGN_OR_RETURN(const OneChar one, class_escape());
      if (left_.starts_with('-') && !left_.starts_with("-]")) return wrong("a range of a set has no begin");
      operand.add(one);
      return ok_status();
    }
    std::optional<char32_t> last = first;
    if (left_.size() > 1 && left_.front() == '-' && left_[1] != ']' && left_[1] != '[') {
      take_char();
      ATOLL_ASSIGN_OR_RETURN(last, set_char());
      if (!last || *last < *first) return wrong("a range of a set has no end");
    }
    ATOLL_RETURN_IF_ERROR(check_folding(*first));
    operand.contents += escaped(*first);
    if (*last != *first) operand.contents += '-' + escaped(*last);
    return ok_status();
  }
  // Empty: a class, whose letter comes.
  Result<std::optional<char32_t>> set_char() {
    if (!take("\\")) {
      ATOLL_ASSIGN_OR_RETURN(const char32_t code, take_code_point());
      return std::optional(code);
    }
    if (take("b")) return std::optional<char32_t>(8);
    return escaped_char();
  }

  std::string_view left_;
  bool caseless_ = false;
  std::string folded_;  // the letters of the text that stands here as it is
};

}  // namespace

Result<std::string> to_pcre2(std::string_view regex) {
  auto translated = Translator(regex).run();
  if (translated.ok()) return translated;
  return translated.error().with_context(fmt::format("the regular expression \"{}\"", printable(regex, kShown)));
}

}  // namespace atl
