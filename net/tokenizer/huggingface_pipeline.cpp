#include "net/tokenizer/huggingface_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "net/tokenizer/huggingface_json.h"
#include "net/tokenizer/utf8_text.h"

namespace atl::huggingface {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxText = 256;  // bytes of what is put in, or looked for
constexpr std::string_view kKnownForms = "take the tokenizer of another model, or build its file without this part";

Result<std::string> short_text(const json& part, const char* name) {
  const json* const found = find(part, name);
  if (found == nullptr || !found->is_string() || found->get_ref<const std::string&>().size() > kMaxText) {
    return bad(fmt::format("{} is no text of at most {} bytes", name, kMaxText));
  }
  return found->get<std::string>();
}

Result<std::string> one_character(const json& part, const char* name) {
  const std::string text = text_or_empty(part, name);
  if (!text.empty() && char_at(text, 0).bytes == text.size()) return text;
  return bad(fmt::format("{} of {} is not one character", name, text_or_empty(part, "type")));
}

// {"String": "..."} or {"Regex": "..."}.
Result<TextPattern> read_pattern(const json& part, std::string_view whose) {
  const json* const pattern = find(part, "pattern");
  if (pattern == nullptr || !pattern->is_object() || pattern->size() != 1) {
    return bad(fmt::format("{} has no pattern that is one String or one Regex", whose));
  }
  if (find(*pattern, "String") != nullptr) {
    ATOLL_ASSIGN_OR_RETURN(std::string text, short_text(*pattern, "String"));
    if (!text.empty()) return TextPattern::of_text(std::move(text));
    ATOLL_ASSIGN_OR_RETURN(Regex nothing, Regex::make(""));  // found between all characters
    return TextPattern(std::move(nothing));
  }
  const json* const regex = find(*pattern, "Regex");
  if (regex == nullptr || !regex->is_string()) {
    return bad(fmt::format("the pattern of {} is neither a String nor a Regex", whose));
  }
  const auto& expression = regex->get_ref<const std::string&>();
  if (const auto known = split_pattern_of_regex(expression)) return TextPattern(*known);
  auto made = Regex::make(expression);
  if (!made.ok()) return made.error().with_context(fmt::format("the pattern of {}", whose));
  return TextPattern(std::move(*made));
}

// ---- normalizer

constexpr std::array<std::pair<std::string_view, NormalForm>, 4> kForms{
    {{"NFC", NormalForm::kC}, {"NFD", NormalForm::kD}, {"NFKC", NormalForm::kKc}, {"NFKD", NormalForm::kKd}}};

Result<NormalizerStep> normalizer_step(const json& part) {
  using Kind = NormalizerStep::Kind;
  const std::string type = text_or_empty(part, "type");
  NormalizerStep step;
  for (const auto& [name, form] : kForms) {
    if (name != type) continue;
    step.form = form;
    return step;
  }
  if (type == "Prepend") {
    step.kind = Kind::kPrepend;
    ATOLL_ASSIGN_OR_RETURN(step.text, short_text(part, "prepend"));
  } else if (type == "Replace") {
    step.kind = Kind::kReplace;
    ATOLL_ASSIGN_OR_RETURN(step.text, short_text(part, "content"));
    ATOLL_ASSIGN_OR_RETURN(step.pattern, read_pattern(part, "normalizer Replace"));
  } else if (type == "Strip") {
    step.kind = Kind::kStrip;
    ATOLL_ASSIGN_OR_RETURN(step.left, flag(part, "strip_left", true));
    ATOLL_ASSIGN_OR_RETURN(step.right, flag(part, "strip_right", true));
  } else if (type == "ByteLevel") {
    step.kind = Kind::kByteLetters;
  } else {
    return unsupported(fmt::format("normalizer {}", type.empty() ? "without a type" : type), kKnownForms);
  }
  return step;
}

// ---- pre-tokenizer

constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kBehaviors{{
    {"Removed", SplitBehavior::kRemoved},
    {"Isolated", SplitBehavior::kIsolated},
    {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
    {"MergedWithNext", SplitBehavior::kMergedWithNext},
    {"Contiguous", SplitBehavior::kContiguous},
}};

Result<SplitBehavior> read_behavior(const json& part, std::string_view whose, std::string_view otherwise) {
  std::string behavior = text_or_empty(part, "behavior");
  if (behavior.empty()) behavior = otherwise;
  for (const auto& [name, known] : kBehaviors) {
    if (name == behavior) return known;
  }
  return unsupported(fmt::format("behavior {} of pre_tokenizer {}", behavior, whose), kKnownForms);
}

Result<MetaspaceStep> read_metaspace(const json& part) {
  MetaspaceStep step;
  ATOLL_ASSIGN_OR_RETURN(step.replacement, one_character(part, "replacement"));
  ATOLL_ASSIGN_OR_RETURN(step.splits, flag(part, "split", true));
  ATOLL_ASSIGN_OR_RETURN(const bool adds_space, flag(part, "add_prefix_space", true));
  const std::string scheme = text_or_empty(part, "prepend_scheme");
  if (scheme == "never" || (scheme.empty() && !adds_space)) {
    step.prepend = MetaspaceStep::Prepend::kNever;
  } else if (scheme == "first") {
    step.prepend = MetaspaceStep::Prepend::kFirst;
  } else if (!scheme.empty() && scheme != "always") {
    return unsupported(fmt::format("prepend_scheme {}", scheme), "always, first and never are");
  }
  return step;
}

Status add_byte_level(const json& part, std::vector<PreTokenizerStep>& steps) {
  ATOLL_ASSIGN_OR_RETURN(const bool adds_space, flag(part, "add_prefix_space", true));
  ATOLL_ASSIGN_OR_RETURN(const bool uses_regex, flag(part, "use_regex", true));
  if (adds_space) steps.push_back(PrefixSpaceStep{});
  if (uses_regex) steps.push_back(SplitStep{TextPattern(SplitPattern::kGpt2)});
  steps.push_back(ByteLettersStep{});
  return ok_status();
}

Status add_split(const json& part, std::vector<PreTokenizerStep>& steps) {
  ATOLL_ASSIGN_OR_RETURN(TextPattern pattern, read_pattern(part, "pre_tokenizer Split"));
  ATOLL_ASSIGN_OR_RETURN(const SplitBehavior behavior, read_behavior(part, "Split", ""));
  ATOLL_ASSIGN_OR_RETURN(const bool inverted, flag(part, "invert", false));
  steps.push_back(SplitStep{std::move(pattern), behavior, inverted});
  return ok_status();
}

Status add_steps(const json& part, std::vector<PreTokenizerStep>& steps) {
  const std::string type = text_or_empty(part, "type");
  if (type == "ByteLevel") return add_byte_level(part, steps);
  if (type == "Split") return add_split(part, steps);
  if (type == "Digits") {
    ATOLL_ASSIGN_OR_RETURN(const bool one_by_one, flag(part, "individual_digits", false));
    steps.push_back(
        SplitStep{TextPattern(CharKind::kNumber), one_by_one ? SplitBehavior::kIsolated : SplitBehavior::kContiguous});
  } else if (type == "Punctuation") {
    ATOLL_ASSIGN_OR_RETURN(const SplitBehavior behavior, read_behavior(part, type, "Isolated"));
    steps.push_back(SplitStep{TextPattern(CharKind::kPunctuation), behavior});
  } else if (type == "WhitespaceSplit" || type == "BertPreTokenizer") {
    steps.push_back(SplitStep{TextPattern(CharKind::kSpace), SplitBehavior::kRemoved});
    if (type == "BertPreTokenizer") steps.push_back(SplitStep{TextPattern(CharKind::kPunctuation)});
  } else if (type == "Whitespace") {
    ATOLL_ASSIGN_OR_RETURN(Regex words, rust_words());
    steps.push_back(SplitStep{TextPattern(std::move(words)), SplitBehavior::kRemoved, true});
  } else if (type == "CharDelimiterSplit") {
    ATOLL_ASSIGN_OR_RETURN(std::string delimiter, one_character(part, "delimiter"));
    steps.push_back(SplitStep{TextPattern::of_text(std::move(delimiter)), SplitBehavior::kRemoved});
  } else if (type == "Metaspace") {
    ATOLL_ASSIGN_OR_RETURN(MetaspaceStep step, read_metaspace(part));
    steps.push_back(std::move(step));
  } else {
    return unsupported(fmt::format("pre_tokenizer {}", type.empty() ? "without a type" : type), kKnownForms);
  }
  return ok_status();
}

// The scanner that does all that the steps do.
std::optional<SplitPattern> scanner_of(const std::vector<PreTokenizerStep>& steps) {
  const auto* const split = steps.size() == 1 ? std::get_if<SplitStep>(&steps.front()) : nullptr;
  if (split == nullptr) return std::nullopt;
  // Either way all pieces stay: each of these patterns matches any text throughout.
  const bool keeps_all =
      split->inverted ? split->behavior == SplitBehavior::kRemoved : split->behavior == SplitBehavior::kIsolated;
  return keeps_all ? split->pattern.scanner() : std::nullopt;
}

// ---- decoder

Result<std::size_t> count_of(const json& part, const char* name) {
  const json* const found = find(part, name);
  if (found == nullptr || !found->is_number_unsigned() || found->get<std::uint64_t>() > kMaxText) {
    return bad(fmt::format("{} of decoder Strip is no number up to {}", name, kMaxText));
  }
  return found->get<std::size_t>();
}

Result<DecoderStep> decoder_step(const json& part) {
  using Kind = DecoderStep::Kind;
  const std::string type = text_or_empty(part, "type");
  DecoderStep step;
  if (type == "ByteLevel") {
    step.kind = Kind::kByteLetters;
  } else if (type == "ByteFallback") {
    step.kind = Kind::kByteFallback;
  } else if (type == "Fuse") {
    step.kind = Kind::kFuse;
  } else if (type == "Replace") {
    step.kind = Kind::kReplace;
    const json* const pattern = find(part, "pattern");
    if (pattern == nullptr || !pattern->is_object() || text_or_empty(*pattern, "String").empty()) {
      return unsupported("decoder Replace without a String", kKnownForms);
    }
    ATOLL_ASSIGN_OR_RETURN(step.text, short_text(*pattern, "String"));
    ATOLL_ASSIGN_OR_RETURN(step.replacement, short_text(part, "content"));
  } else if (type == "Strip") {
    step.kind = Kind::kStrip;
    ATOLL_ASSIGN_OR_RETURN(step.text, one_character(part, "content"));
    ATOLL_ASSIGN_OR_RETURN(step.start, count_of(part, "start"));
    ATOLL_ASSIGN_OR_RETURN(step.stop, count_of(part, "stop"));
  } else if (type == "Metaspace") {
    step.kind = Kind::kMetaspace;
    ATOLL_ASSIGN_OR_RETURN(const MetaspaceStep metaspace, read_metaspace(part));
    step.text = metaspace.replacement;
    step.drops_first = metaspace.prepend != MetaspaceStep::Prepend::kNever;
  } else {
    return unsupported(fmt::format("decoder {}", type.empty() ? "without a type" : type), kKnownForms);
  }
  return step;
}

}  // namespace

Status read_normalizer(const json& root, BpeVocabulary& vocabulary) {
  ATOLL_ASSIGN_OR_RETURN(const auto parts, parts_of(root, "normalizer", "normalizers"));
  std::vector<NormalizerStep> steps;
  for (const json* const part : parts) {
    ATOLL_ASSIGN_OR_RETURN(NormalizerStep step, normalizer_step(*part));
    steps.push_back(std::move(step));
  }
  vocabulary.normalizer = Normalizer(std::move(steps));
  return ok_status();
}

Status read_pre_tokenizer(const json& root, BpeVocabulary& vocabulary) {
  ATOLL_ASSIGN_OR_RETURN(const auto parts, parts_of(root, "pre_tokenizer", "pretokenizers"));
  std::vector<PreTokenizerStep> steps;
  for (const json* const part : parts) ATOLL_RETURN_IF_ERROR(add_steps(*part, steps));
  vocabulary.alphabet.of_bytes = !steps.empty() && std::holds_alternative<ByteLettersStep>(steps.back());
  if (vocabulary.alphabet.of_bytes) steps.pop_back();  // pieces stay bytes, and so are the tokens
  const auto scanner = scanner_of(steps);
  if (scanner && vocabulary.alphabet.of_bytes) {
    vocabulary.pattern = *scanner;
  } else {
    vocabulary.pre_tokenizer = PreTokenizer(std::move(steps));
  }
  return ok_status();
}

Status read_decoder(const json& root, BpeVocabulary& vocabulary) {
  ATOLL_ASSIGN_OR_RETURN(const auto parts, parts_of(root, "decoder", "decoders"));
  std::vector<DecoderStep> steps;
  for (const json* const part : parts) {
    ATOLL_ASSIGN_OR_RETURN(DecoderStep step, decoder_step(*part));
    // Tokens of bytes are those already.
    if (step.kind != DecoderStep::Kind::kByteLetters || !vocabulary.alphabet.of_bytes) steps.push_back(std::move(step));
  }
  vocabulary.decoder = TokenDecoder(std::move(steps));
  return ok_status();
}

}  // namespace atl::huggingface
