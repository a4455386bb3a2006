#include "net/disk/stored_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "net/base/file.h"

namespace atl {

Result<StoredFile> StoredFile::open(const std::filesystem::path& path) {
  // Not waiting for whoever writes into a pipe of that name.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return errno_error("open", path);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return errno_error("examine", path);
  if (!S_ISREG(info.st_mode)) return Error{ErrorCode::kCorrupt, fmt::format("{} is no regular file", path.string())};
  return StoredFile(path, std::move(fd), static_cast<std::uint64_t>(info.st_size));
}

Status StoredFile::read_at(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::pread(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error("read", path_);
    if (count == 0) return Error{ErrorCode::kCorrupt, fmt::format("{} ends where more is needed", path_.string())};
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return ok_status();
}

Result<Bytes> StoredFile::head(std::size_t count) const {
  Bytes bytes(static_cast<std::size_t>(std::min<std::uint64_t>(count, size_)));
  ATOLL_RETURN_IF_ERROR(read_at(0, bytes));
  return bytes;
}

Status read_hashed(const StoredFile& file, std::uint64_t offset, std::span<std::byte> bytes, Sha256& hash) {
  while (!bytes.empty()) {
    const std::span<std::byte> piece = bytes.first(std::min(bytes.size(), kStoredPieceBytes));
    ATOLL_RETURN_IF_ERROR(file.read_at(offset, piece));
    hash.update(piece);
    bytes = bytes.subspan(piece.size());
    offset += piece.size();
  }
  return ok_status();
}

void begin_stored(ByteWriter& header, std::string_view magic, std::uint32_t version) {
  header.put_bytes(as_bytes(magic));
  header.put(version);
}

bool is_stored(ByteReader& header, std::string_view magic, std::uint32_t version) {
  const bool magic_fits = to_string(header.get_bytes(kMagicBytes)) == magic;
  return header.get<std::uint32_t>() == version && magic_fits && header.ok();
}

HashedFile::HashedFile(NewFile file) : file_(std::move(file)), hash_(std::make_unique<Sha256>()) {}

Result<HashedFile> HashedFile::create(const std::filesystem::path& path) {
  ATOLL_ASSIGN_OR_RETURN(NewFile file, NewFile::create(path, FileMode::kPrivate));
  return HashedFile(std::move(file));
}

Status HashedFile::write(ByteView bytes) {
  while (!bytes.empty()) {
    const ByteView piece = bytes.first(std::min(bytes.size(), kStoredPieceBytes));
    hash_->update(piece);
    ATOLL_RETURN_IF_ERROR(file_.write(piece));
    bytes = bytes.subspan(piece.size());
  }
  return ok_status();
}

Status HashedFile::finish() {
  const Digest digest = hash_->finish();
  ATOLL_RETURN_IF_ERROR(file_.write(digest));
  return file_.take_place();
}

}  // namespace atl
