#include "net/data/blob_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "net/base/json_reader.h"
#include "net/base/new_file.h"

namespace atl {
namespace {

std::optional<Digest> parse_digest(const std::string& hex) {
  if (!is_sha256_hex(hex)) return std::nullopt;
  Digest digest{};
  const auto nibble = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::byte>(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
  }
  return digest;
}

// A file that a process which was killed had begun (net/base/new_file).
bool is_unfinished(const std::string& name) {
  constexpr std::size_t kHexDigits = 2 * sizeof(Digest);
  return name.size() > kHexDigits && is_sha256_hex(name.substr(0, kHexDigits)) && name[kHexDigits] == '.';
}

Error not_here() { return {ErrorCode::kNotFound, "it is not on this disk"}; }

}  // namespace

std::size_t BlobCache::DigestHash::operator()(const Digest& digest) const {
  std::size_t hash = 0;
  std::memcpy(&hash, digest.data(), sizeof hash);
  return hash;
}

Result<std::unique_ptr<BlobCache>> BlobCache::open(const std::filesystem::path& directory, std::uint64_t most_bytes) {
  ATOLL_RETURN_IF_ERROR(make_directories(directory));
  std::unique_ptr<BlobCache> cache(new BlobCache(directory, most_bytes));
  ATOLL_RETURN_IF_ERROR(cache->read_files());
  return cache;
}

std::filesystem::path BlobCache::path_of(const Digest& digest) const {
  const std::string hex = to_hex(digest);
  return directory_ / hex.substr(0, 2) / hex;
}

Status BlobCache::read_files() {
  struct Found {
    std::filesystem::file_time_type used;
    Entry entry;
  };
  std::vector<Found> found;
  std::error_code failed;
  for (std::filesystem::recursive_directory_iterator at(directory_, failed), end; !failed && at != end;
       at.increment(failed)) {
    const std::string name = at->path().filename().string();
    std::error_code gone;
    if (!at->is_regular_file(gone)) continue;
    if (is_unfinished(name)) std::filesystem::remove(at->path(), gone);
    const auto digest = parse_digest(name);
    if (!digest) continue;
    const std::uintmax_t bytes = at->file_size(gone);
    const auto used = gone ? std::filesystem::file_time_type{} : at->last_write_time(gone);
    if (!gone) found.push_back({used, {*digest, bytes}});
  }
  if (failed) {
    return Error{ErrorCode::kIo, fmt::format("cannot list {}: {}", directory_.string(), failed.message())};
  }
  std::ranges::sort(found, std::greater<>(), &Found::used);
  const MutexLock lock(mutex_);
  for (const Found& one : found) {
    entries_.push_back(one.entry);
    places_[one.entry.digest] = std::prev(entries_.end());
    bytes_ += one.entry.bytes;
  }
  make_room(0);
  return ok_status();
}

bool BlobCache::contains(const Digest& digest) const {
  const MutexLock lock(mutex_);
  return places_.contains(digest);
}

std::uint64_t BlobCache::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

Result<MappedFile> BlobCache::find(const Digest& digest) {
  {
    const MutexLock lock(mutex_);
    const auto place = places_.find(digest);
    if (place == places_.end()) return not_here();
    entries_.splice(entries_.begin(), entries_, place->second);
  }
  const std::filesystem::path path = path_of(digest);
  Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok() || sha256(file->bytes()) != digest) {
    forget(digest);
    return not_here();
  }
  // The order of use outlives the process; where it cannot be noted, this one is thought to be older than it is.
  (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  return file;
}

Result<MappedFile> BlobCache::find_for_others(const Digest& digest) {
  if (!contains(digest)) return not_here();
  Result<MappedFile> file = MappedFile::open(path_of(digest));
  if (!file.ok()) return not_here();  // it is being written
  if (sha256(file->bytes()) == digest) return file;
  forget(digest);
  return not_here();
}

Status BlobCache::put(const Digest& digest, ByteView bytes) {
  if (bytes.size() > most_bytes_) return ok_status();
  {
    const MutexLock lock(mutex_);
    if (places_.contains(digest)) return ok_status();
    // Room is made, and taken, before the file is there: several threads stay within the bound together.
    make_room(bytes.size());
    entries_.push_front({digest, bytes.size()});
    places_[digest] = entries_.begin();
    bytes_ += bytes.size();
  }
  const std::filesystem::path path = path_of(digest);
  const auto write = [&]() -> Status {
    ATOLL_RETURN_IF_ERROR(make_directories(path.parent_path()));
    ATOLL_ASSIGN_OR_RETURN(NewFile file, NewFile::create(path, FileMode::kPublic));
    ATOLL_RETURN_IF_ERROR(file.write(bytes));
    return file.take_place();
  };
  const Status written = write();
  if (!written.ok()) forget(digest);
  // Room may have been made of it before it was there.
  std::error_code ignored;
  if (written.ok() && !contains(digest)) std::filesystem::remove(path, ignored);
  return written;
}

void BlobCache::make_room(std::uint64_t bytes) {
  while (!entries_.empty() && bytes_ + bytes > most_bytes_) remove(std::prev(entries_.end()));
}

void BlobCache::remove(Entries::iterator entry) {
  std::error_code ignored;
  std::filesystem::remove(path_of(entry->digest), ignored);
  bytes_ -= entry->bytes;
  places_.erase(entry->digest);
  entries_.erase(entry);
}

void BlobCache::forget(const Digest& digest) {
  const MutexLock lock(mutex_);
  const auto place = places_.find(digest);
  if (place != places_.end()) remove(place->second);
}

}  // namespace atl
