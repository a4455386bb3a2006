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

Error DocumentReader::no_text(const TextFile& file, std::uint64_t line, const Error& why) const {
  if (is_chat_) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} line {} is no chat ({{\"messages\": [{{\"role\": \"user\", \"content\": ...}}, ...]}}): {}; "
                    "mend or remove the line",
                    file.path.string(), line, why.message)};
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} line {} is not a JSON object with a string \"{}\": {}; mend or remove the line, or name "
                           "the field by --field",
                           file.path.string(), line, field_, why.message)};
}

Error DocumentReader::too_long(const TextFile& file, std::uint64_t line) {
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} line {} is longer than {} MiB", file.path.string(), line, kMaxDocumentBytes >> 20)};
}

}  // namespace atl
