// Reading text to be made into tokens: plain files, JSON Lines with a "text" field, both also compressed with gzip (a
// dictzip file is gzip too), and directories of them. One thread.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "net/base/result.h"

namespace atl {

// Gets the text of documents piece by piece.
class TextSink {
 public:
  virtual ~TextSink() = default;
  virtual Status text(std::string_view piece) = 0;
  virtual Status end_of_document() = 0;
};

// Files stay, in the order given; a directory becomes the .txt and .jsonl files (also .gz) below it, sorted by path.
// kNotFound when a path does not exist or a directory holds no such file.
Result<std::vector<std::filesystem::path>> expand_text_inputs(const std::vector<std::filesystem::path>& inputs);

// kInvalidArgument when it is not text (a NUL byte), naming the offset, or a line is not JSON with a text, naming the
// line. kCorrupt when the compressed data is damaged.
Status read_text_file(const std::filesystem::path& file, TextSink& sink);

}  // namespace atl
