// What the binary formats of this room have in common. Each begins with eight characters that name it and the version
// of its layout (u32, 1); all numbers are little-endian, without padding. Values are read and written in pieces, so
// that a model's size is held once: in the caller's memory. Read with pread(2), not mapped: a bad sector is an error
// then, and not the end of the process. For .cpp files and headers of net/disk. Block on the disk; one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "net/base/bytes.h"
#include "net/base/new_file.h"
#include "net/base/result.h"
#include "net/base/sha256.h"
#include "net/base/unique_fd.h"

namespace atl {

inline constexpr std::size_t kMagicBytes = 8;
inline constexpr std::size_t kStoredHashChars = 64;         // a SHA-256 in hex
inline constexpr std::size_t kStoredPieceBytes = 4u << 20;  // read and hashed at once: stays in a processor's cache

class StoredFile {
 public:
  // kNotFound when there is none; kCorrupt when it is no regular file.
  static Result<StoredFile> open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }  // bytes, when it was opened

  // All of `bytes`, from `offset`. kCorrupt when the file ends before.
  Status read_at(std::uint64_t offset, std::span<std::byte> bytes) const;
  // The first `count` bytes, fewer where it is shorter.
  Result<Bytes> head(std::size_t count) const;

 private:
  StoredFile(std::filesystem::path path, UniqueFd fd, std::uint64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}

  std::filesystem::path path_;
  UniqueFd fd_;
  std::uint64_t size_ = 0;
};

// The bytes at `offset`, hashed a piece after the other while they are in a processor's cache.
Status read_hashed(const StoredFile& file, std::uint64_t offset, std::span<std::byte> bytes, Sha256& hash);

// Magic and version.
void begin_stored(ByteWriter& header, std::string_view magic, std::uint32_t version);
// Whether that is what stands there.
bool is_stored(ByteReader& header, std::string_view magic, std::uint32_t version);

// A new file whose bytes are hashed while they are written.
class HashedFile {
 public:
  static Result<HashedFile> create(const std::filesystem::path& path);

  Status write(ByteView bytes);
  // Appends the SHA-256 of all that was written; then the file takes its place (NewFile::take_place).
  Status finish();

 private:
  explicit HashedFile(NewFile file);

  NewFile file_;
  std::unique_ptr<Sha256> hash_;
};

}  // namespace atl
