#include "net/data/shard_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/base/sha256.h"
#include "net/data/token_shard.h"

namespace atl {

std::filesystem::path ShardWriter::current_path() const {
  return directory_ / fmt::format("{}-{:05}.tok", prefix_, written_.shards.size());
}

Status ShardWriter::open_shard() {
  const std::uint64_t bytes =
      written_.open_tokens == 0 ? 0 : kTokenShardHeaderBytes + written_.open_tokens * format_.token_bytes;
  auto file = AppendFile::open(current_path(), bytes);
  if (!file.ok()) return file.error();
  file_.emplace(std::move(*file));
  // How many tokens there are is known when it is closed.
  return bytes > 0 ? ok_status() : file_->append(Bytes(kTokenShardHeaderBytes));
}

Status ShardWriter::append(ByteView tokens) {
  while (!tokens.empty()) {
    if (!file_) ATOLL_RETURN_IF_ERROR(open_shard());
    const std::uint64_t room = (format_.shard_tokens - written_.open_tokens) * format_.token_bytes;
    const ByteView part = tokens.first(std::min<std::uint64_t>(room, tokens.size()));
    ATOLL_RETURN_IF_ERROR(file_->append(part));
    written_.open_tokens += part.size() / format_.token_bytes;
    tokens = tokens.subspan(part.size());
    if (written_.open_tokens == format_.shard_tokens) ATOLL_RETURN_IF_ERROR(close_shard());
  }
  return ok_status();
}

Status ShardWriter::close_shard() {
  const TokenShardHeader header{format_.token_bytes, format_.vocab_size, written_.open_tokens, format_.marked};
  ATOLL_RETURN_IF_ERROR(file_->write_at(0, encode_token_shard_header(header)));
  ATOLL_RETURN_IF_ERROR(file_->flush());
  file_.reset();
  ATOLL_ASSIGN_OR_RETURN(const MappedFile whole, MappedFile::open(current_path()));
  written_.shards.push_back(
      {current_path().filename().string(), written_.open_tokens, whole.bytes().size(), sha256_hex(whole.bytes())});
  written_.open_tokens = 0;
  return ok_status();
}

Result<WrittenShards> ShardWriter::flush() {
  if (file_) ATOLL_RETURN_IF_ERROR(file_->flush());
  return written_;
}

Result<std::vector<ShardEntry>> ShardWriter::finish() {
  if (written_.open_tokens > 0 && !file_) ATOLL_RETURN_IF_ERROR(open_shard());
  if (file_) ATOLL_RETURN_IF_ERROR(close_shard());
  return std::move(written_.shards);
}

}  // namespace atl
