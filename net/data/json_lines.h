// The text of a line of JSON Lines. simdjson reads the line; what it refuses, json_line_scanner.h decides and words.
// One per thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"

namespace atl {

// Bytes that may be read behind a line, and belong to the block's buffer.
inline constexpr std::size_t kJsonPaddingBytes = 64;

class JsonLineText {
 public:
  explicit JsonLineText(std::string_view field);  // "text", or "a.b": of the object in it
  ~JsonLineText();
  JsonLineText(const JsonLineText&) = delete;
  JsonLineText& operator=(const JsonLineText&) = delete;

  // Valid until the next call; nothing where it is null. `line` without its end; kJsonPaddingBytes behind it can be
  // read. Of a key that stands twice the last counts, as for most readers. kInvalidArgument says why there is no text.
  Result<std::optional<std::string_view>> text_of(std::string_view line);

 private:
  struct Parser;

  std::vector<std::string> path_;
  std::unique_ptr<Parser> parser_;
  std::string text_;
};

}  // namespace atl
