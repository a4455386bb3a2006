#include "net/data/tokenizer_of_data.h"

#include <fmt/format.h>

#include "net/base/file.h"
#include "net/base/sha256.h"
#include "net/tokenizer/byte_tokenizer.h"
#include "net/tokenizer/load_tokenizer.h"

namespace atl {

Result<std::unique_ptr<Tokenizer>> tokenizer_of_data(const std::string& kind, const std::optional<TokenizerEntry>& file,
                                                     const std::filesystem::path& directory) {
  if (!file) {
    return kind == kByteTokenizerName ? std::unique_ptr<Tokenizer>(std::make_unique<ByteTokenizer>()) : nullptr;
  }
  const std::filesystem::path path = directory / file->file;
  ATOLL_ASSIGN_OR_RETURN(const std::string content, read_file(path, kMaxTokenizerFile));
  if (sha256_hex(as_bytes(content)) != file->sha256) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} is another file than the one that the data was made with", path.string())};
  }
  auto tokenizer = read_tokenizer(content);
  if (!tokenizer.ok()) return tokenizer.error().with_context(path.string());
  return tokenizer;
}

}  // namespace atl
