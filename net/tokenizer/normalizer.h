// What a tokenizer.json does to text before anything else: its normalizer, a row of steps. Never changes once made; any
// thread, each with a room of its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/tokenizer/normal_form.h"
#include "net/tokenizer/text_pattern.h"

namespace atl {

struct NormalizerStep {
  enum class Kind {
    kForm,         // to `form`
    kPrepend,      // `text` before each text that is not empty
    kReplace,      // each match of `pattern` by `text`
    kStrip,        // white space off the ends, `left`, `right`
    kByteLetters,  // each byte as its letter (byte_letters.h)
  };

  Kind kind = Kind::kForm;
  NormalForm form = NormalForm::kC;
  std::string text;
  std::optional<TextPattern> pattern;
  bool left = false, right = false;
};

class Normalizer {
 public:
  Normalizer() = default;
  explicit Normalizer(std::vector<NormalizerStep> steps) : steps_(std::move(steps)) {}

  // The text itself, or what is made of it, in `changed`. kInvalidArgument: a search takes too long.
  Result<std::string_view> apply(std::string_view text, RegexRoom& room, std::string& changed) const;

 private:
  std::vector<NormalizerStep> steps_;
};

}  // namespace atl
