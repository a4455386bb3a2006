// The documents of a block, one after the other, with what tells them apart. One reader per thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "net/base/result.h"
#include "net/data/chat.h"
#include "net/data/json_line_scanner.h"
#include "net/data/json_lines.h"
#include "net/data/text_blocks.h"
#include "net/data/text_encoding.h"

namespace atl {

// XXH3 (128 bits) of a document's text; of a piece of a longer text also of where in it the piece stands.
struct DocumentHash {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const DocumentHash&) const = default;
};

struct Document {
  std::string_view text;  // of a chat, as document_of has it
  bool piece = false;     // goes on where the one before it ended
};

DocumentHash hash_of(const Document& document, std::uint64_t offset);

class DocumentReader {
 public:
  explicit DocumentReader(const ReadOptions& options)
      : whole_files_(options.whole_files), is_chat_(options.chat), field_(options.field), json_(options.field) {}

  // on_document(document, offset): a Status. `offset`: of a piece in its file's text. Documents without text, and empty
  // lines, are left out, and text begins without byte order marks. An error names the file, and the line or row.
  template <class OnDocument>
  Status read(const TextFile& file, TextBlock& block, OnDocument on_document) {
    without_text_ = 0;
    if (file.format == TextFormat::kJsonLines) return read_lines(file, block, on_document);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < block.ends.size(); ++i) {
      std::string_view text(block.bytes.data() + begin, block.ends[i] - begin);
      const bool piece = file.format == TextFormat::kText && !whole_files_;
      if (file.format != TextFormat::kTokens) {
        if (const auto broken = broken_utf8_at(text)) return no_utf8_text(file, block, begin, i, *broken);
        if (file.format == TextFormat::kParquet) text = without_byte_order_mark(text);
      }
      if (text.empty()) {
        ++without_text_;
      } else {
        ATOLL_RETURN_IF_ERROR(on_document(Document{text, piece}, block.offset + begin));
      }
      begin = block.ends[i];
    }
    return ok_status();
  }
  // Documents of the block that was read last that were left out, because their text is null or empty.
  std::uint64_t without_text() const { return without_text_; }

 private:
  template <class OnDocument>
  Status read_lines(const TextFile& file, TextBlock& block, OnDocument& on_document) {
    block.bytes.reserve(block.bytes.size() + kJsonPaddingBytes);
    const std::string_view all = block.bytes;
    std::uint64_t number = block.first;
    for (std::size_t begin = 0; begin < all.size(); ++number) {
      const std::size_t end = std::min(all.find('\n', begin), all.size());
      const std::string_view line = without_byte_order_mark(all.substr(begin, end - begin));
      begin = end + 1;
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      if (line.size() > kMaxDocumentBytes) return too_long(file, number);
      const auto read = is_chat_ ? chat_in(line) : json_.text_of(line);
      if (!read.ok()) return no_text(file, block, number, line, read.error());
      const std::string_view text = is_chat_ ? **read : without_byte_order_mark(read->value_or(""));
      if (text.empty()) {
        ++without_text_;
      } else {
        ATOLL_RETURN_IF_ERROR(on_document(Document{text, false}, 0));
      }
    }
    return ok_status();
  }
  // Valid until the next call.
  Result<std::optional<std::string_view>> chat_in(std::string_view line) {
    auto read = read_chat(line);
    if (!read.ok()) read = read_chat(finite_json_line(line));  // what stands beside a chat is anybody's
    ATOLL_ASSIGN_OR_RETURN(const std::vector<ChatMessage> chat, std::move(read));
    chat_ = document_of(chat);
    return std::optional(std::string_view(chat_));
  }
  // `line`: within the block.
  Error no_text(const TextFile& file, const TextBlock& block, std::uint64_t number, std::string_view line,
                const Error& why) const;
  // Of the block's document `index`, which begins at `begin`, the byte `at`.
  static Error no_utf8_text(const TextFile& file, const TextBlock& block, std::size_t begin, std::size_t index,
                            std::size_t at);
  static Error too_long(const TextFile& file, std::uint64_t line);

  const bool whole_files_, is_chat_;
  const std::string field_;
  JsonLineText json_;
  std::string chat_;
  std::uint64_t without_text_ = 0;
};

}  // namespace atl
