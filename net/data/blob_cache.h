// What an island keeps of a run's dataset on its disk: chunks and parts of hash trees, by the SHA-256 of their bytes,
// never more than its owner allows. When it is full, what was used least recently goes. Nothing in it is believed: who
// reads compares the hash, so that a file which was cut short or altered is gone and fetched again.
//
// Files lie in 256 directories by the first byte of their hash, so that none is long. Any thread. One process a
// directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <unordered_map>

#include "net/base/bytes.h"
#include "net/base/file.h"
#include "net/base/mutex.h"
#include "net/base/result.h"
#include "net/base/sha256.h"

namespace atl {

class BlobCache {
 public:
  // What earlier processes left stays, in the order of its last use, as far as it is within `most_bytes`; files of
  // other names are left alone.
  static Result<std::unique_ptr<BlobCache>> open(const std::filesystem::path& directory, std::uint64_t most_bytes);

  bool contains(const Digest& digest) const;
  // Its bytes, whose hash is right; it is now the one that was used last. kNotFound: it has to be fetched. What is
  // mapped stays readable when it goes.
  Result<MappedFile> find(const Digest& digest);
  // The same for somebody else: it stays as old as it is.
  Result<MappedFile> find_for_others(const Digest& digest);
  // `digest` is of these bytes. One that is larger than all that may be kept is not kept; nor is one when the disk is
  // full (kDiskFull), nothing else is lost.
  Status put(const Digest& digest, ByteView bytes);

  std::uint64_t bytes() const;
  std::uint64_t most_bytes() const { return most_bytes_; }

 private:
  struct Entry {
    Digest digest{};
    std::uint64_t bytes = 0;
  };
  struct DigestHash {
    std::size_t operator()(const Digest& digest) const;
  };
  using Entries = std::list<Entry>;  // the one that was used last first

  BlobCache(std::filesystem::path directory, std::uint64_t most_bytes)
      : directory_(std::move(directory)), most_bytes_(most_bytes) {}
  Status read_files();
  void make_room(std::uint64_t bytes) ATOLL_REQUIRES(mutex_);
  void remove(Entries::iterator entry) ATOLL_REQUIRES(mutex_);
  void forget(const Digest& digest);
  std::filesystem::path path_of(const Digest& digest) const;

  const std::filesystem::path directory_;
  const std::uint64_t most_bytes_;
  mutable Mutex mutex_;
  Entries entries_ ATOLL_GUARDED_BY(mutex_);
  std::unordered_map<Digest, Entries::iterator, DigestHash> places_ ATOLL_GUARDED_BY(mutex_);
  std::uint64_t bytes_ ATOLL_GUARDED_BY(mutex_) = 0;
};

}  // namespace atl
