#define PCRE2_CODE_UNIT_WIDTH 8
#include "net/tokenizer/regex.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

#include "net/base/printable.h"
#include "net/tokenizer/regex_syntax.h"
#include "net/tokenizer/unicode_additions.h"
#include "net/tokenizer/utf8_text.h"

namespace atl {
namespace {

using unicode_data::Addition;
using unicode_data::kAdditions;

constexpr std::size_t kFirstStack = 32 << 10, kMostStack = 16 << 20;  // bytes of the compiled code's
constexpr std::uint32_t kMaxHeap = 256 << 10;                         // KiB
constexpr std::uint32_t kMaxNesting = 64;
constexpr char32_t kReplacement = 0xFFFD;

// Blocks of 256 code points in which there are additions.
constexpr auto kBlocksWithAdditions = [] {
  std::array<bool, 0x1100> blocks{};
  for (const Addition& one : kAdditions) {
    for (std::uint32_t block = one.first >> 8; block <= one.last >> 8; ++block) blocks[block] = true;
  }
  return blocks;
}();

// What PCRE2 is given for it; itself mostly.
char32_t stand_in(char32_t code) {
  if (code == kNoCodePoint) return kReplacement;
  if (!kBlocksWithAdditions[code >> 8]) return code;
  const auto* const found = std::lower_bound(std::begin(kAdditions), std::end(kAdditions), code,
                                             [](const Addition& one, char32_t wanted) { return one.last < wanted; });
  return found == std::end(kAdditions) || found->first > code ? code : found->stand_in;
}

bool stands_for_itself(std::string_view text) {
  const auto* at = reinterpret_cast<const std::uint8_t*>(text.data());
  for (const std::uint8_t* const end = at + text.size(); at < end;) {
    const TextChar found = decode_char(at, end);
    if (found.code_point >= 0x80 && stand_in(found.code_point) != found.code_point) return false;
    at += found.bytes;
  }
  return true;
}

Error gave_up(int why, std::size_t at) {
  std::array<PCRE2_UCHAR, 256> words{};
  pcre2_get_error_message(why, words.data(), words.size());
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("a regular expression of the tokenizer takes too long from byte {} of a text on ({}); leave "
                           "that text out, or take a tokenizer with another expression",
                           at, reinterpret_cast<const char*>(words.data()))};
}

template <class T, void (*kFree)(T*)>
struct Freed {
  void operator()(T* object) const { kFree(object); }
};
using CompileContext = std::unique_ptr<pcre2_compile_context, Freed<pcre2_compile_context, pcre2_compile_context_free>>;

}  // namespace

RegexRoom::RegexRoom()
    : match_(pcre2_match_data_create(1, nullptr)),
      context_(pcre2_match_context_create(nullptr)),
      stack_(pcre2_jit_stack_create(kFirstStack, kMostStack, nullptr)) {
  pcre2_set_match_limit(context_, Regex::kMaxSteps);
  pcre2_set_heap_limit(context_, kMaxHeap);
  pcre2_jit_stack_assign(context_, nullptr, stack_);
}

RegexRoom::~RegexRoom() {
  pcre2_jit_stack_free(stack_);
  pcre2_match_context_free(context_);
  pcre2_match_data_free(match_);
}

void Regex::Free::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

Result<Regex> Regex::make(std::string_view regex) {
  if (regex.size() > kMaxBytes) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a regular expression has {} bytes; at most {} are taken", regex.size(), kMaxBytes)};
  }
  ATOLL_ASSIGN_OR_RETURN(const std::string translated, to_pcre2(regex));
  auto made = make_pcre2(translated);
  if (made.ok()) return made;
  return made.error().with_context(fmt::format("the regular expression \"{}\"", printable(regex, 200)));
}

Result<Regex> Regex::make_pcre2(std::string_view regex) {
  const CompileContext context(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_bsr(context.get(), PCRE2_BSR_UNICODE);
  pcre2_set_parens_nest_limit(context.get(), kMaxNesting);
  int error = 0;
  PCRE2_SIZE place = 0;
  pcre2_code* const code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(regex.data()), regex.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &place, context.get());
  if (code == nullptr) {
    std::array<PCRE2_UCHAR, 256> why{};
    pcre2_get_error_message(error, why.data(), why.size());
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("it cannot be compiled: {}", reinterpret_cast<const char*>(why.data()))};
  }
  std::shared_ptr<pcre2_code> owned(code, Free());
  (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without it, it is interpreted
  return Regex(std::move(owned));
}

Status Regex::find_all(std::string_view given, RegexRoom& room, std::vector<TextSpan>& found) const {
  std::string_view text = given;
  const bool is_changed = !stands_for_itself(given);
  if (is_changed) {
    room.text_.clear();
    room.places_.clear();
    for_each_char(given, [&](const TextChar& one, std::size_t at) {
      append_utf8(stand_in(one.code_point), room.text_);
      room.places_.resize(room.text_.size(), at);
    });
    room.places_.push_back(given.size());
    text = room.text_;
  }
  const auto place = [&](std::size_t at) { return is_changed ? room.places_[at] : at; };
  const PCRE2_SIZE* const span = pcre2_get_ovector_pointer(room.match_);
  std::optional<std::size_t> last_end;
  for (std::size_t from = 0; from <= text.size();) {
    const auto match = [&](std::uint32_t options) {
      return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                         PCRE2_NO_UTF_CHECK | options, room.match_, room.context_);
    };
    int matched = match(0);
    if (matched == PCRE2_ERROR_JIT_STACKLIMIT) matched = match(PCRE2_NO_JIT);  // which has the heap
    if (matched == PCRE2_ERROR_NOMATCH) break;
    if (matched < 0) return gave_up(matched, place(from));
    const std::size_t begin = span[0], end = span[1];
    if (begin == end && last_end == end) {
      from += from < text.size() ? char_at(text, from).bytes : 1;
      continue;
    }
    found.push_back({place(begin), place(end)});
    from = end;
    last_end = end;
  }
  return ok_status();
}

}  // namespace atl
