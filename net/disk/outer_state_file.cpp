#include "net/disk/outer_state_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "net/base/encoding.h"
#include "net/base/json_reader.h"
#include "net/base/parallel.h"

namespace atl {
namespace {

constexpr std::string_view kMagic = "ATLOUTER";
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kHeaderBytes = 24, kHashBytes = 64;
constexpr std::uint64_t kValueBytes = 2 * sizeof(float);  // of one parameter

Error not_whole(const StoredFile& file) {
  return Error{ErrorCode::kCorrupt, fmt::format("{} is no whole checkpoint", file.path().string())};
}

Error not_of_this_model(const std::filesystem::path& path) {
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} is not a whole checkpoint of this model; it is left as it is", path.string())};
}

Result<OuterStateInfo> read_info(const StoredFile& file) {
  ATOLL_ASSIGN_OR_RETURN(const Bytes head, file.head(kHeaderBytes));
  ByteReader header(head);
  const bool known = is_stored(header, kMagic, kVersion);
  OuterStateInfo info;
  info.outer_step.value = header.get<std::uint32_t>();
  info.numel = header.get<std::uint64_t>();
  const bool fits = known && header.ok() && info.numel <= file.size() / kValueBytes &&
                    file.size() == kHeaderBytes + info.numel * kValueBytes + kHashBytes;
  if (!fits) return not_whole(file);
  info.tree_hash.resize(kHashBytes);
  ATOLL_RETURN_IF_ERROR(
      file.read_at(file.size() - kHashBytes, std::as_writable_bytes(std::span(info.tree_hash.data(), kHashBytes))));
  if (!is_sha256_hex(info.tree_hash)) return not_whole(file);
  return info;
}

// A chunk's parameters and momentum from where they lie in the file, and its digest.
Status read_chunk(const StoredFile& file, const OuterStateInfo& info, std::uint64_t index, std::span<float> parameters,
                  std::span<float> momentum, Digest& digest) {
  Sha256 hash;
  std::uint64_t offset = kHeaderBytes + index * kStateChunkNumel * sizeof(float);
  for (const std::span<float> half : {parameters, momentum}) {
    const auto bytes = std::as_writable_bytes(half);
    for (std::size_t at = 0; at < bytes.size(); at += kStoredPieceBytes) {
      const auto piece = bytes.subspan(at, std::min(kStoredPieceBytes, bytes.size() - at));
      ATOLL_RETURN_IF_ERROR(file.read_at(offset + at, piece));
      hash.update(piece);
    }
    offset += info.numel * sizeof(float);
  }
  digest = hash.finish();
  return ok_status();
}

// All chunks on all processors, into memory for all of the values or, where that is empty, beside it, a chunk at a
// time. The first error, or whether the values are those of the file's tree hash.
Result<bool> read_chunks(const StoredFile& file, const OuterStateInfo& info, std::span<float> parameters = {},
                         std::span<float> momentum = {}) {
  StateManifest manifest{info.outer_step, kValueBytes * info.numel, {}};
  manifest.chunk_sha256.resize(state_chunks(info.numel));
  std::vector<Status> read(manifest.chunk_sha256.size(), ok_status());
  parallel_for(read.size(), [&](std::size_t index) {
    Digest& digest = manifest.chunk_sha256[index];
    if (!parameters.empty()) {
      read[index] = read_chunk(file, info, index, of_chunk(parameters, index), of_chunk(momentum, index), digest);
      return;
    }
    std::vector<float> chunk(manifest.chunk_bytes(index) / sizeof(float));
    const auto halves = std::span(chunk);
    read[index] = read_chunk(file, info, index, halves.first(chunk.size() / 2), halves.last(chunk.size() / 2), digest);
  });
  for (const Status& status : read) ATOLL_RETURN_IF_ERROR(status);
  return to_hex(manifest.tree_hash()) == info.tree_hash;
}

Status read_values(const StoredFile& file, const OuterStateInfo& info, std::span<float> parameters,
                   std::span<float> momentum) {
  ATOLL_ASSIGN_OR_RETURN(const bool are_right, read_chunks(file, info, parameters, momentum));
  return are_right ? ok_status() : Status(not_of_this_model(file.path()));
}

// The file and what it says of itself, where it is of a model of so many parameters.
struct Opened {
  StoredFile file;
  OuterStateInfo info;
};

Result<Opened> open_for_model(const std::filesystem::path& path, std::uint64_t numel) {
  ATOLL_ASSIGN_OR_RETURN(StoredFile file, StoredFile::open(path));
  Result<OuterStateInfo> info = read_info(file);
  if (!info.ok()) return info.error().code == ErrorCode::kCorrupt ? not_of_this_model(path) : info.error();
  if (info->numel != numel) return not_of_this_model(path);
  return Opened{std::move(file), std::move(*info)};
}

}  // namespace

Status write_outer_state(const std::filesystem::path& path, OuterStep step, std::span<const float> parameters,
                         std::span<const float> momentum, const std::string& tree_hash) {
  if (momentum.size() != parameters.size() || !is_sha256_hex(tree_hash)) {
    return Error{ErrorCode::kInternal, fmt::format("an outer state of unequal halves or without its hash is not "
                                                   "written to {}",
                                                   path.string())};
  }
  ATOLL_ASSIGN_OR_RETURN(NewFile file, NewFile::create(path, FileMode::kPrivate));
  ByteWriter header;
  begin_stored(header, kMagic, kVersion);
  header.put(step.value);
  header.put(static_cast<std::uint64_t>(parameters.size()));
  ATOLL_RETURN_IF_ERROR(file.write(header.bytes()));
  ATOLL_RETURN_IF_ERROR(file.write(std::as_bytes(parameters)));
  ATOLL_RETURN_IF_ERROR(file.write(std::as_bytes(momentum)));
  ATOLL_RETURN_IF_ERROR(file.write(as_bytes(tree_hash)));
  return file.take_place();
}

Result<OuterStateInfo> peek_outer_state(const std::filesystem::path& path) {
  ATOLL_ASSIGN_OR_RETURN(const StoredFile file, StoredFile::open(path));
  return read_info(file);
}

Result<OuterStateInfo> verify_outer_state(const std::filesystem::path& path) {
  ATOLL_ASSIGN_OR_RETURN(const StoredFile file, StoredFile::open(path));
  ATOLL_ASSIGN_OR_RETURN(OuterStateInfo info, read_info(file));
  ATOLL_ASSIGN_OR_RETURN(const bool are_right, read_chunks(file, info));
  if (!are_right) return not_whole(file);
  return info;
}

Result<FetchedState> read_outer_state(const std::filesystem::path& path, std::uint64_t numel) {
  ATOLL_ASSIGN_OR_RETURN(const Opened opened, open_for_model(path, numel));
  FetchedState state;
  state.version = opened.info.outer_step;
  state.parameters.resize(static_cast<std::size_t>(numel));
  state.momentum.resize(static_cast<std::size_t>(numel));
  ATOLL_RETURN_IF_ERROR(read_values(opened.file, opened.info, state.parameters, state.momentum));
  return state;
}

Result<OuterStateInfo> read_outer_state(const std::filesystem::path& path, std::span<float> parameters,
                                        std::span<float> momentum) {
  ATOLL_ASSIGN_OR_RETURN(Opened opened, open_for_model(path, parameters.size()));
  if (momentum.size() != parameters.size()) return not_of_this_model(path);
  ATOLL_RETURN_IF_ERROR(read_values(opened.file, opened.info, parameters, momentum));
  return std::move(opened.info);
}

}  // namespace atl
