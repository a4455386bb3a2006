#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "net/base/file.h"
#include "net/base/mutex.h"
#include "net/base/new_file.h"
#include "net/base/unique_fd.h"
#include "net/base/unix_time.h"
#include "net/disk/checkpoint_directory.h"
#include "net/disk/snapshot.h"
#include "net/disk/snapshot_format.h"
#include "net/recovery/outer_state.h"

namespace atl {
namespace {

Status write_at(int fd, std::uint64_t offset, ByteView bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error("write", path);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return ok_status();
}

Status flush_file(int fd, const std::filesystem::path& path) {
  return ::fdatasync(fd) == 0 ? ok_status() : Status(errno_error("flush", path));
}

// In a directory that is its owner's alone.
Result<UniqueFd> open_to_write(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
  if (!fd) return errno_error("open", path);
  return fd;
}

// Held from looking at what is there until it has taken its place: a state that was fetched and one that was written
// may be whole at the same time, and of two with one number nobody could tell which is the newer.
Mutex& placing() {
  static Mutex mutex;
  return mutex;
}

// Higher than that of any snapshot there; 1 and 0 are those of single files.
std::uint64_t next_number(const std::filesystem::path& directory) {
  std::uint64_t number = 1;
  const auto all = outer_state_files(directory);
  for (std::size_t i = 0; all.ok() && i < all->size(); ++i) {
    if (const auto info = peek_snapshot((*all)[i]); info.ok()) number = std::max(number, info->number);
  }
  return number + 1;
}

// outer.7.state, then outer.7.2.state, ...
std::filesystem::path free_place(const std::filesystem::path& place) {
  std::filesystem::path free = place;
  std::error_code failed;
  for (int i = 2; std::filesystem::exists(std::filesystem::symlink_status(free, failed)); ++i) {
    free = place.parent_path() / fmt::format("{}.{}{}", place.stem().string(), i, place.extension().string());
  }
  return free;
}

}  // namespace

struct SnapshotWriter::Impl {
  std::filesystem::path directory;
  std::uint64_t numel = 0;
  std::vector<std::optional<StoredChunk>> chunks;
  std::vector<bool> believed;  // written or read by this process
  std::map<std::uint64_t, UniqueFd> files;
  std::set<std::uint64_t> unflushed_files;
  bool unflushed_names = false;
  std::map<std::uint64_t, StoredChunk> unflushed;  // by index
  UniqueFd journal;
  std::uint64_t journal_bytes = 0;

  Status begin();
  Status go_on(Journal found);
  Result<int> file_of(std::uint64_t index);
  Status flush_all();
};

// Whatever lies there is of another model, or damaged.
Status SnapshotWriter::Impl::begin() {
  std::error_code failed;
  std::filesystem::remove_all(directory, failed);
  ATOLL_RETURN_IF_ERROR(make_directories(directory, FileMode::kPrivate));
  const auto path = directory / kSnapshotJournal;
  ATOLL_ASSIGN_OR_RETURN(journal, open_to_write(path));
  const Bytes head = journal_head(numel);
  ATOLL_RETURN_IF_ERROR(write_at(journal.get(), 0, head, path));
  ATOLL_RETURN_IF_ERROR(flush_file(journal.get(), path));
  journal_bytes = head.size();
  chunks.assign(state_chunks(numel), std::nullopt);
  return flush_directory(directory);
}

// An index would say that all is there, while chunks are replaced.
Status SnapshotWriter::Impl::go_on(Journal found) {
  std::error_code failed;
  std::filesystem::remove(directory / kSnapshotIndex, failed);
  if (failed) return Error{ErrorCode::kIo, fmt::format("cannot go on in {}: {}", directory.string(), failed.message())};
  const auto path = directory / kSnapshotJournal;
  ATOLL_ASSIGN_OR_RETURN(journal, open_to_write(path));
  journal_bytes = found.whole_bytes;
  if (::ftruncate(journal.get(), static_cast<off_t>(journal_bytes)) != 0) return errno_error("shorten", path);
  chunks = std::move(found.chunks);
  for (std::uint64_t i = 0; i < chunks.size(); ++i) {
    std::error_code missing;
    const auto size = chunks[i] ? std::filesystem::file_size(chunk_file(directory, chunk_file_of(i)), missing) : 0;
    if (missing || size < chunk_offset(i) + chunk_bytes_of(numel, i)) chunks[i].reset();
  }
  return flush_directory(directory);
}

Result<int> SnapshotWriter::Impl::file_of(std::uint64_t index) {
  const std::uint64_t number = chunk_file_of(index);
  UniqueFd& fd = files[number];
  if (!fd) {
    ATOLL_ASSIGN_OR_RETURN(fd, open_to_write(chunk_file(directory, number)));
    unflushed_names = true;
  }
  return fd.get();
}

// The chunks before the journal that says they are there.
Status SnapshotWriter::Impl::flush_all() {
  for (const std::uint64_t number : unflushed_files) {
    ATOLL_RETURN_IF_ERROR(flush_file(files[number].get(), chunk_file(directory, number)));
    // What is read next of it is read after a restart: the memory is worth more for other files.
    (void)::posix_fadvise(files[number].get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  if (unflushed_names) ATOLL_RETURN_IF_ERROR(flush_directory(directory));
  ByteWriter records;
  for (const auto& [index, chunk] : unflushed) records.put_bytes(journal_record(index, chunk));
  const auto path = directory / kSnapshotJournal;
  ATOLL_RETURN_IF_ERROR(write_at(journal.get(), journal_bytes, records.bytes(), path));
  ATOLL_RETURN_IF_ERROR(flush_file(journal.get(), path));
  journal_bytes += records.bytes().size();
  return ok_status();
}

SnapshotWriter::SnapshotWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SnapshotWriter::SnapshotWriter(SnapshotWriter&&) noexcept = default;
SnapshotWriter& SnapshotWriter::operator=(SnapshotWriter&&) noexcept = default;
SnapshotWriter::~SnapshotWriter() = default;

const std::vector<std::optional<StoredChunk>>& SnapshotWriter::chunks() const { return impl_->chunks; }

Result<SnapshotWriter> SnapshotWriter::open(const std::filesystem::path& directory, std::uint64_t numel) {
  if (numel == 0 || numel > kMaxStateChunks * kStateChunkNumel) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("no state has {} parameters", numel)};
  }
  auto impl = std::make_unique<Impl>();
  impl->directory = directory;
  impl->numel = numel;
  auto journal = read_journal(directory / kSnapshotJournal, numel);
  ATOLL_RETURN_IF_ERROR(journal ? impl->go_on(std::move(*journal)) : impl->begin());
  impl->believed.assign(impl->chunks.size(), false);
  return SnapshotWriter(std::move(impl));
}

Status SnapshotWriter::put(std::uint64_t index, const StoredChunk& chunk, ByteView bytes) {
  if (index >= impl_->chunks.size() || bytes.size() != chunk_bytes_of(impl_->numel, index)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} bytes are no chunk {} of {}", bytes.size(), index, impl_->directory.string())};
  }
  impl_->chunks[index].reset();
  impl_->unflushed.erase(index);
  ATOLL_ASSIGN_OR_RETURN(const int fd, impl_->file_of(index));
  impl_->unflushed_files.insert(chunk_file_of(index));
  ATOLL_RETURN_IF_ERROR(write_at(fd, chunk_offset(index), bytes, chunk_file(impl_->directory, chunk_file_of(index))));
  impl_->chunks[index] = chunk;
  impl_->believed[index] = true;
  impl_->unflushed[index] = chunk;
  return ok_status();
}

Result<Bytes> SnapshotWriter::read(std::uint64_t index) {
  if (index >= impl_->chunks.size() || !impl_->chunks[index]) {
    return Error{ErrorCode::kNotFound, fmt::format("chunk {} is not in {}", index, impl_->directory.string())};
  }
  const auto path = chunk_file(impl_->directory, chunk_file_of(index));
  Bytes bytes(static_cast<std::size_t>(chunk_bytes_of(impl_->numel, index)));
  Status read;
  {
    const Result<StoredFile> file = StoredFile::open(path);
    read = file.ok() ? file->read_at(chunk_offset(index), bytes) : Status(file.error());
  }
  const bool is_whole = read.ok() && sha256(bytes) == impl_->chunks[index]->sha256;
  impl_->believed[index] = is_whole;
  if (is_whole) return bytes;
  impl_->chunks[index].reset();
  impl_->unflushed.erase(index);
  return Error{ErrorCode::kCorrupt,
               fmt::format("chunk {} of {} is not what was written{}", index, impl_->directory.string(),
                           read.ok() ? "" : ": " + read.error().message)};
}

Status SnapshotWriter::flush() {
  if (impl_->unflushed.empty() && impl_->unflushed_files.empty()) return ok_status();
  Status flushed = impl_->flush_all();
  // After an error nobody knows what of it the disk has; a kernel may say so once and be silent the next time.
  for (const auto& [index, chunk] : impl_->unflushed) {
    if (!flushed.ok()) impl_->chunks[index].reset();
  }
  impl_->unflushed.clear();
  impl_->unflushed_files.clear();
  if (flushed.ok()) impl_->unflushed_names = false;
  return flushed;
}

Status SnapshotWriter::finish(const HeldState& state, const std::filesystem::path& place) && {
  SnapshotInfo info{.state = state, .numel = impl_->numel, .chunks = {}};
  for (std::uint64_t i = 0; i < impl_->chunks.size(); ++i) {
    if (impl_->chunks[i] && !impl_->believed[i]) {
      const auto whole = read(i);
      if (!whole.ok()) return whole.error();
    }
    if (!impl_->chunks[i] || impl_->chunks[i]->step > state.outer_step) {
      return Error{ErrorCode::kInternal, fmt::format("chunk {} of {} does not lead to outer step {}", i,
                                                     impl_->directory.string(), state.outer_step.value)};
    }
    info.chunks.push_back(*impl_->chunks[i]);
  }
  ATOLL_RETURN_IF_ERROR(flush());
  const MutexLock lock(placing());
  info.number = next_number(place.parent_path());
  info.saved_at = static_cast<std::uint64_t>(std::max<std::int64_t>(0, unix_seconds_now()));
  ATOLL_RETURN_IF_ERROR(write_snapshot_index(impl_->directory, info));
  const auto taken = free_place(place);
  ATOLL_RETURN_IF_ERROR(rename_and_flush(impl_->directory, taken));
  std::error_code ignored;
  std::filesystem::remove(taken / kSnapshotJournal, ignored);
  return ok_status();
}

}  // namespace atl
