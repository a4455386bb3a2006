// Cuts a file into blocks: what is read by one thread and worked on by another. Where it is cut depends on the file's
// text and on ReadOptions alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/result.h"
#include "net/data/text_input.h"

namespace atl {

// A document is kept whole in memory, and its tokens beside it.
inline constexpr std::size_t kMaxDocumentBytes = 64u << 20;
inline constexpr int kMaxLineDepth = 256;  // of JSON in JSON

struct ReadOptions {
  std::string field = "text";  // of a line's JSON object, or a Parquet file's column; "a.b": of the object in it
  // A text file is one document. Otherwise it is cut into pieces, at ends of lines, each of which counts as a document
  // for validation: of 512 bytes at its beginning, 16 KiB after half a megabyte, so that a short text has enough of
  // them.
  bool whole_files = false;
  // A line of JSON Lines is a chat (chat.h), of which the tokens that an assistant says count; `field` is not asked
  // for.
  bool chat = false;
  std::string encoding = {};           // of text and JSON Lines (text_encoding.h); empty: UTF-8, as Parquet always is
  std::size_t block_bytes = 1u << 20;  // of text, or the document that is longer
};

struct TextBlock {
  std::string bytes;
  // JSON Lines: empty, `bytes` are whole lines. Else where each document ends in `bytes`.
  std::vector<std::size_t> ends;
  std::uint64_t first = 0;       // the number of the first line, document or row in its file, from 1
  std::uint64_t offset = 0;      // of `bytes` in the file's text
  std::uint64_t mark_bytes = 0;  // of a byte order mark before that
  std::uint64_t disk_bytes = 0;  // of the file that were read for it and those before
};

// One thread at a time.
class TextBlocks {
 public:
  // kNotFound when there is nothing that reads this format. `interrupt`: ends a wait for another program; may be null.
  static Result<std::unique_ptr<TextBlocks>> open(const TextFile& file, const ReadOptions& options,
                                                  const AbortSignal* interrupt);
  virtual ~TextBlocks() = default;
  // Nothing at the end.
  virtual Result<std::optional<TextBlock>> next() = 0;
};

}  // namespace atl
