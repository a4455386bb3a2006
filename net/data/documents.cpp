#include "net/data/documents.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace atl {

DocumentHash hash_of(const Document& document, std::uint64_t offset) {
  const XXH128_hash_t hash =
      XXH3_128bits_withSeed(document.text.data(), document.text.size(), document.piece ? offset + 1 : 0);
  return {hash.high64, hash.low64};
}

Error DocumentReader::no_text(const TextFile& file, const TextBlock& block, std::uint64_t number, std::string_view line,
                              const Error& why) const {
  const std::string place = fmt::format("{} line {}", file.path.string(), number);
  const auto begin = static_cast<std::size_t>(line.data() - block.bytes.data());
  const bool is_first = block.offset == 0 && begin == 0;
  const std::string_view beginning = is_first ? std::string_view(block.bytes) : std::string_view();
  std::size_t broken = broken_utf8_at(line).value_or(std::string_view::npos);
  if (broken == std::string_view::npos && !wide_encoding_of(beginning).empty()) broken = line.find('\0');
  if (broken != std::string_view::npos) {
    return no_utf8(place, block.mark_bytes + block.offset + begin + broken, static_cast<unsigned char>(line[broken]),
                   beginning);
  }
  if (is_chat_) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is no chat ({{\"messages\": [{{\"role\": \"user\", \"content\": ...}}, ...]}}): {}; "
                             "mend or remove the line",
                             place, why.message)};
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} is not a JSON object with a string \"{}\": {}; mend or remove the line, or name "
                           "the field by --field",
                           place, field_, why.message)};
}

Error DocumentReader::no_utf8_text(const TextFile& file, const TextBlock& block, std::size_t begin, std::size_t index,
                                   std::size_t at) {
  const auto byte = static_cast<unsigned char>(block.bytes[begin + at]);
  if (file.format == TextFormat::kParquet) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} row {} is no UTF-8, as text of Parquet is: byte {} of it is {:#04x}; mend the row, or "
                             "name another column by --field",
                             file.path.string(), block.first + index, at, byte)};
  }
  return no_utf8(file.path.string(), block.mark_bytes + block.offset + begin + at, byte,
                 block.offset == 0 ? std::string_view(block.bytes) : std::string_view());
}

Error DocumentReader::too_long(const TextFile& file, std::uint64_t line) {
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} line {} is longer than {} MiB", file.path.string(), line, kMaxDocumentBytes >> 20)};
}

}  // namespace atl
