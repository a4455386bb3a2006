// How a tokenizer.json makes text of tokens: its decoder, a row of steps. Those before a Fuse change each token's text,
// those behind it the text as a whole. Bytes that a token stands for are those bytes, whatever their neighbours are.
// Never changes once made; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace atl {

struct DecoderStep {
  enum class Kind {
    kByteLetters,   // letters of bytes (byte_letters.h) become those bytes
    kReplace,       // `text` becomes `replacement`
    kByteFallback,  // "<0x0A>" becomes that byte
    kFuse,          // what follows is for all of the text
    kStrip,         // up to `start` times `text` off the begin, up to `stop` times off the end
    kMetaspace,     // `text` becomes a space; in a text's first token nothing, where `drops_first`
  };

  Kind kind = Kind::kFuse;
  std::string text, replacement;
  std::size_t start = 0, stop = 0;
  bool drops_first = false;
};

class TokenDecoder {
 public:
  TokenDecoder() = default;
  explicit TokenDecoder(std::vector<DecoderStep> steps) : steps_(std::move(steps)) {}

  bool is_empty() const { return steps_.empty(); }
  // What a token adds to text: to its begin, or within it.
  std::string text_of(std::string_view token, bool is_first) const;
  bool changes_first() const;  // the two differ
  // The text that the tokens' together are.
  std::string finish(std::string text) const;

 private:
  std::vector<DecoderStep> steps_;
};

}  // namespace atl
