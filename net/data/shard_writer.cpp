#include "net/data/shard_writer.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "net/base/sha256.h"
#include "net/data/token_shard.h"

namespace atl {
namespace {

constexpr std::size_t kBufferTokens = 256 * 1024;

Status write_at(int fd, ByteView bytes, off_t offset, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error("write", path);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += count;
  }
  return ok_status();
}

}  // namespace

std::filesystem::path ShardWriter::current_path() const {
  return directory_ / fmt::format("{}-{:05}.tok", prefix_, shards_.size());
}

Status ShardWriter::open_shard() {
  file_.reset(::open(current_path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file_) return errno_error("create", current_path());
  tokens_ = 0;
  return ok_status();
}

Status ShardWriter::put_text(std::string_view text) {
  for (const char c : text) ATOLL_RETURN_IF_ERROR(put_token(static_cast<unsigned char>(c)));
  return ok_status();
}

Status ShardWriter::put_token(std::uint16_t token) {
  if (!file_) ATOLL_RETURN_IF_ERROR(open_shard());
  buffer_.push_back(token);
  const bool full = tokens_ + buffer_.size() == shard_tokens_;
  if (full || buffer_.size() == kBufferTokens) ATOLL_RETURN_IF_ERROR(flush());
  if (full) return close_shard();
  return ok_status();
}

Status ShardWriter::flush() {
  const auto offset = static_cast<off_t>(kTokenShardHeaderBytes + tokens_ * sizeof(std::uint16_t));
  ATOLL_RETURN_IF_ERROR(write_at(file_.get(), std::as_bytes(std::span(buffer_)), offset, current_path()));
  tokens_ += buffer_.size();
  buffer_.clear();
  return ok_status();
}

Status ShardWriter::close_shard() {
  const TokenShardHeader header{sizeof(std::uint16_t), kByteVocabSize, tokens_};
  ATOLL_RETURN_IF_ERROR(write_at(file_.get(), encode_token_shard_header(header), 0, current_path()));
  if (::fsync(file_.get()) != 0) return errno_error("flush", current_path());
  file_.reset();
  ATOLL_ASSIGN_OR_RETURN(const MappedFile written, MappedFile::open(current_path()));
  shards_.push_back({current_path().filename().string(), tokens_, written.bytes().size(), sha256_hex(written.bytes())});
  tokens_ = 0;
  return ok_status();
}

Result<std::vector<ShardEntry>> ShardWriter::finish() {
  if (file_) {
    ATOLL_RETURN_IF_ERROR(flush());
    ATOLL_RETURN_IF_ERROR(close_shard());
  }
  return std::move(shards_);
}

}  // namespace atl
