#include "net/disk/snapshot.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "net/base/file.h"
#include "net/base/json_reader.h"
#include "net/base/parallel.h"
#include "net/disk/checkpoint_directory.h"
#include "net/disk/outer_state_file.h"
#include "net/disk/snapshot_format.h"
#include "net/recovery/outer_state.h"

namespace atl {
namespace {

constexpr std::string_view kIndexMagic = "ATLSTATE", kJournalMagic = "ATLCHUNK";
constexpr std::uint32_t kSnapshotVersion = 1;
constexpr std::size_t kHeadBytes = 104, kEntryBytes = 36;
constexpr std::size_t kJournalHeadBytes = 28, kRecordBytes = 48, kChecksumBytes = 8;
constexpr std::uint64_t kMostNumel = kMaxStateChunks * kStateChunkNumel;

Error no_whole_snapshot(const std::filesystem::path& path) {
  return Error{ErrorCode::kCorrupt, fmt::format("{} is no whole checkpoint", path.string())};
}

Error chunk_not_whole(const std::filesystem::path& path, std::uint64_t index) {
  return Error{ErrorCode::kCorrupt, fmt::format("chunk {} of {} is not what was written", index, path.string())};
}

// With the checksum of all that it holds.
Bytes sealed(ByteWriter writer) {
  const Digest digest = sha256(writer.bytes());
  writer.put_bytes(ByteView(digest).first(kChecksumBytes));
  return writer.take();
}

bool is_sealed(ByteView bytes) {
  const Digest digest = sha256(bytes.first(bytes.size() - kChecksumBytes));
  return std::ranges::equal(ByteView(digest).first(kChecksumBytes), bytes.last(kChecksumBytes));
}

Result<SnapshotInfo> parse_index(ByteView hashed, const std::filesystem::path& path) {
  ByteReader reader(hashed);
  SnapshotInfo info;
  const bool known = is_stored(reader, kIndexMagic, kSnapshotVersion);
  info.state.outer_step.value = reader.get<std::uint32_t>();
  info.numel = reader.get<std::uint64_t>();
  info.number = reader.get<std::uint64_t>();
  info.saved_at = reader.get<std::uint64_t>();
  info.state.state_hash = to_string(reader.get_bytes(kStoredHashChars));
  const bool fits = known && reader.ok() && info.numel > 0 && info.numel <= kMostNumel &&
                    is_sha256_hex(info.state.state_hash) &&
                    hashed.size() == kHeadBytes + kEntryBytes * state_chunks(info.numel);
  if (!fits) return no_whole_snapshot(path);
  info.chunks.resize(state_chunks(info.numel));
  for (StoredChunk& chunk : info.chunks) {
    chunk.step.value = reader.get<std::uint32_t>();
    std::ranges::copy(reader.get_bytes(sizeof(Digest)), chunk.sha256.begin());
    if (chunk.step > info.state.outer_step) return no_whole_snapshot(path);
  }
  return info;
}

Result<SnapshotInfo> read_index(const std::filesystem::path& directory) {
  const Result<StoredFile> file = StoredFile::open(directory / kSnapshotIndex);
  if (!file.ok()) return file.error().code == ErrorCode::kNotFound ? no_whole_snapshot(directory) : file.error();
  constexpr std::uint64_t kMostBytes = kHeadBytes + kEntryBytes * kMaxStateChunks + sizeof(Digest);
  if (file->size() < kHeadBytes + sizeof(Digest) || file->size() > kMostBytes) return no_whole_snapshot(directory);
  ATOLL_ASSIGN_OR_RETURN(const Bytes all, file->head(static_cast<std::size_t>(file->size())));
  const ByteView hashed = ByteView(all).first(all.size() - sizeof(Digest));
  if (!std::ranges::equal(sha256(hashed), ByteView(all).last(sizeof(Digest)))) return no_whole_snapshot(directory);
  return parse_index(hashed, directory);
}

Result<SnapshotInfo> info_of_file(const std::filesystem::path& path, const OuterStateInfo& info) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return errno_error("examine", path);
  SnapshotInfo snapshot{.state = {info.outer_step, info.tree_hash},
                        .numel = info.numel,
                        .number = path.filename() == kOuterStateFile ? 1u : 0u,  // the newest was called so
                        .saved_at = static_cast<std::uint64_t>(std::max<std::int64_t>(0, facts.st_mtime)),
                        .chunks = {}};
  snapshot.chunks.assign(state_chunks(info.numel), StoredChunk{info.outer_step, {}});
  return snapshot;
}

}  // namespace

// ---- the format
// --------------------------------------------------------------------------------------------------

std::filesystem::path chunk_file(const std::filesystem::path& directory, std::uint64_t number) {
  return directory / fmt::format("chunks.{:05}", number);
}

std::uint64_t chunk_offset(std::uint64_t index) { return index % kChunksOfFile * kStateChunkBytes; }

std::uint64_t chunk_bytes_of(std::uint64_t numel, std::uint64_t index) {
  return std::min(kStateChunkBytes, kOuterValueBytes * numel - index * kStateChunkBytes);
}

std::uint64_t chunk_files(std::uint64_t numel) { return (state_chunks(numel) + kChunksOfFile - 1) / kChunksOfFile; }

std::uint64_t chunk_file_bytes(std::uint64_t numel, std::uint64_t number) {
  constexpr std::uint64_t kWhole = kChunksOfFile * kStateChunkBytes;
  return std::min(kWhole, kOuterValueBytes * numel - number * kWhole);
}

Bytes journal_head(std::uint64_t numel) {
  ByteWriter head;
  begin_stored(head, kJournalMagic, kSnapshotVersion);
  head.put(numel);
  return sealed(std::move(head));
}

Bytes journal_record(std::uint64_t index, const StoredChunk& chunk) {
  ByteWriter record;
  record.put(static_cast<std::uint32_t>(index));
  record.put(chunk.step.value);
  record.put_bytes(chunk.sha256);
  return sealed(std::move(record));
}

std::optional<Journal> read_journal(const std::filesystem::path& path, std::uint64_t numel) {
  const Result<StoredFile> file = StoredFile::open(path);
  if (!file.ok()) return std::nullopt;
  // One that is put again has a record more; nobody does that so often.
  constexpr std::uint64_t kMostBytes = kJournalHeadBytes + 64 * kRecordBytes * kMaxStateChunks;
  const auto all = file->head(static_cast<std::size_t>(std::min(file->size(), kMostBytes)));
  if (!all.ok() || all->size() < kJournalHeadBytes) return std::nullopt;
  const ByteView bytes(*all);
  if (!std::ranges::equal(bytes.first(kJournalHeadBytes), journal_head(numel))) return std::nullopt;
  Journal journal;
  journal.chunks.resize(state_chunks(numel));
  std::size_t at = kJournalHeadBytes;
  for (; bytes.size() - at >= kRecordBytes; at += kRecordBytes) {
    const ByteView record = bytes.subspan(at, kRecordBytes);
    ByteReader reader(record);
    const auto index = reader.get<std::uint32_t>();
    if (!is_sealed(record) || index >= journal.chunks.size()) break;
    StoredChunk& chunk = journal.chunks[index].emplace();
    chunk.step.value = reader.get<std::uint32_t>();
    std::ranges::copy(reader.get_bytes(sizeof(Digest)), chunk.sha256.begin());
  }
  journal.whole_bytes = at;
  return journal;
}

Status write_snapshot_index(const std::filesystem::path& directory, const SnapshotInfo& info) {
  if (!is_sha256_hex(info.state.state_hash) || info.chunks.size() != state_chunks(info.numel)) {
    return Error{ErrorCode::kInternal,
                 fmt::format("a state without its hash or its chunks is not written to {}", directory.string())};
  }
  ByteWriter index;
  begin_stored(index, kIndexMagic, kSnapshotVersion);
  index.put(info.state.outer_step.value);
  index.put(info.numel);
  index.put(info.number);
  index.put(info.saved_at);
  index.put_bytes(as_bytes(info.state.state_hash));
  for (const StoredChunk& chunk : info.chunks) {
    index.put(chunk.step.value);
    index.put_bytes(chunk.sha256);
  }
  ATOLL_ASSIGN_OR_RETURN(HashedFile file, HashedFile::create(directory / kSnapshotIndex));
  ATOLL_RETURN_IF_ERROR(file.write(index.bytes()));
  return file.finish();
}

// ---- reading
// -----------------------------------------------------------------------------------------------------

OuterStep SnapshotInfo::oldest_chunk() const { return std::ranges::min(chunks, {}, &StoredChunk::step).step; }

OuterStep SnapshotInfo::newest_chunk() const { return std::ranges::max(chunks, {}, &StoredChunk::step).step; }

struct SnapshotReader::Impl {
  std::filesystem::path path;
  SnapshotInfo info;
  std::optional<OuterStateInfo> single;  // a file of the layout before
  std::vector<StoredFile> files;
};

SnapshotReader::SnapshotReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SnapshotReader::SnapshotReader(SnapshotReader&&) noexcept = default;
SnapshotReader& SnapshotReader::operator=(SnapshotReader&&) noexcept = default;
SnapshotReader::~SnapshotReader() = default;
const SnapshotInfo& SnapshotReader::info() const { return impl_->info; }

Result<SnapshotReader> SnapshotReader::open(const std::filesystem::path& path) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  std::error_code failed;
  if (!std::filesystem::is_directory(path, failed)) {
    ATOLL_ASSIGN_OR_RETURN(StoredFile file, StoredFile::open(path));
    ATOLL_ASSIGN_OR_RETURN(impl->single, read_outer_state_info(file));
    ATOLL_ASSIGN_OR_RETURN(impl->info, info_of_file(path, *impl->single));
    impl->files.push_back(std::move(file));
    return SnapshotReader(std::move(impl));
  }
  ATOLL_ASSIGN_OR_RETURN(impl->info, read_index(path));
  for (std::uint64_t i = 0; i < chunk_files(impl->info.numel); ++i) {
    Result<StoredFile> file = StoredFile::open(chunk_file(path, i));
    if (!file.ok()) return file.error().code == ErrorCode::kNotFound ? no_whole_snapshot(path) : file.error();
    if (file->size() != chunk_file_bytes(impl->info.numel, i)) return no_whole_snapshot(path);
    impl->files.push_back(std::move(*file));
  }
  return SnapshotReader(std::move(impl));
}

Result<Digest> SnapshotReader::read(std::uint64_t index, std::span<float> parameters, std::span<float> momentum) const {
  const bool fits = index < impl_->info.chunks.size() && parameters.size() == momentum.size() &&
                    parameters.size_bytes() + momentum.size_bytes() == chunk_bytes_of(impl_->info.numel, index);
  if (!fits) return Error{ErrorCode::kInvalidArgument, fmt::format("{} has no such chunk", impl_->path.string())};
  if (impl_->single) return read_outer_state_chunk(impl_->files[0], *impl_->single, index, parameters, momentum);
  const StoredFile& file = impl_->files[chunk_file_of(index)];
  Sha256 hash;
  ATOLL_RETURN_IF_ERROR(read_hashed(file, chunk_offset(index), std::as_writable_bytes(parameters), hash));
  const std::uint64_t half = chunk_offset(index) + parameters.size_bytes();
  ATOLL_RETURN_IF_ERROR(read_hashed(file, half, std::as_writable_bytes(momentum), hash));
  const Digest digest = hash.finish();
  if (digest != impl_->info.chunks[index].sha256) return chunk_not_whole(impl_->path, index);
  return digest;
}

Result<SnapshotInfo> peek_snapshot(const std::filesystem::path& path) {
  ATOLL_ASSIGN_OR_RETURN(const SnapshotReader reader, SnapshotReader::open(path));
  return reader.info();
}

Result<SnapshotInfo> verify_snapshot(const std::filesystem::path& path) {
  ATOLL_ASSIGN_OR_RETURN(const SnapshotReader reader, SnapshotReader::open(path));
  const SnapshotInfo& info = reader.info();
  StateManifest manifest{info.state.outer_step, kOuterValueBytes * info.numel, {}};
  manifest.chunk_sha256.resize(info.chunks.size());
  std::vector<Status> read(info.chunks.size(), ok_status());
  parallel_for(read.size(), [&](std::size_t index) {
    std::vector<float> chunk(chunk_bytes_of(info.numel, index) / sizeof(float));
    const std::span<float> halves(chunk);
    const auto digest = reader.read(index, halves.first(chunk.size() / 2), halves.last(chunk.size() / 2));
    digest.ok() ? void(manifest.chunk_sha256[index] = *digest) : void(read[index] = digest.error());
  });
  for (const Status& status : read) ATOLL_RETURN_IF_ERROR(status);
  const bool is_whole_itself = info.oldest_chunk() == info.state.outer_step;
  if (is_whole_itself && to_hex(manifest.tree_hash()) != info.state.state_hash) return no_whole_snapshot(path);
  return info;
}

std::uint64_t snapshot_bytes(const std::filesystem::path& path) {
  std::error_code failed;
  if (std::filesystem::is_regular_file(path, failed)) {
    const auto bytes = std::filesystem::file_size(path, failed);
    return failed ? 0 : bytes;
  }
  std::uint64_t bytes = 0;
  std::filesystem::directory_iterator entries(path, failed);
  for (; !failed && entries != std::filesystem::directory_iterator(); entries.increment(failed)) {
    std::error_code gone;
    const auto size = entries->file_size(gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

}  // namespace atl
