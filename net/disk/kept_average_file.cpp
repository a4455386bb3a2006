#include "net/disk/kept_average_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "net/base/json_reader.h"
#include "net/base/sha256.h"
#include "net/collective/canonical_digest.h"
#include "net/disk/stored_file.h"

namespace atl {
namespace {

constexpr std::string_view kKeptAverageMagic = "ATLAVERG";
constexpr std::uint32_t kKeptAverageVersion = 1;
constexpr std::uint64_t kKeptAverageHeaderBytes = 92;

Error not_whole_average(const std::filesystem::path& path) {
  return Error{ErrorCode::kCorrupt, fmt::format("{} is not a whole average of a round", path.string())};
}

Result<KeptAverageInfo> read_info(const StoredFile& file) {
  ATOLL_ASSIGN_OR_RETURN(const Bytes head, file.head(kKeptAverageHeaderBytes));
  ByteReader header(head);
  const bool known = is_stored(header, kKeptAverageMagic, kKeptAverageVersion);
  KeptAverageInfo info;
  info.round.value = header.get<std::uint32_t>();
  const auto wire = header.get<std::uint32_t>();
  info.bytes = header.get<std::uint64_t>();
  info.digest = to_string(header.get_bytes(kStoredHashChars));
  const bool fits = known && header.ok() && wire <= UINT8_MAX && is_wire_format(static_cast<std::uint8_t>(wire)) &&
                    info.bytes == file.size() - kKeptAverageHeaderBytes && is_sha256_hex(info.digest);
  if (!fits) return not_whole_average(file.path());
  info.wire = static_cast<WireFormat>(wire);
  return info;
}

// The average's bytes, a piece of the digest at a time: `room_for(bytes)` is where the next piece goes.
template <class RoomFor>
Status read_pieces(const StoredFile& file, const KeptAverageInfo& info, RoomFor room_for) {
  std::vector<PieceHash> hashes;
  for (std::uint64_t done = 0; done < info.bytes;) {
    const std::span<std::byte> piece =
        room_for(done, static_cast<std::size_t>(std::min<std::uint64_t>(info.bytes - done, kDigestPieceBytes)));
    ATOLL_RETURN_IF_ERROR(file.read_at(kKeptAverageHeaderBytes + done, piece));
    hashes.push_back(hash_of_piece(piece, 0));
    done += piece.size();
  }
  return to_hex(digest_of_pieces(hashes)) == info.digest ? ok_status() : Status(not_whole_average(file.path()));
}

}  // namespace

AverageWriter::AverageWriter(NewFile file, std::filesystem::path path, OuterStep round, WireFormat wire,
                             std::uint64_t bytes)
    : file_(std::move(file)), path_(std::move(path)), round_(round), wire_(wire), bytes_(bytes) {}

Result<AverageWriter> AverageWriter::create(const std::filesystem::path& path, OuterStep round, WireFormat wire,
                                            std::uint64_t bytes) {
  ATOLL_ASSIGN_OR_RETURN(NewFile file, NewFile::create(path, FileMode::kPrivate));
  return AverageWriter(std::move(file), path, round, wire, bytes);
}

Status AverageWriter::write(std::uint64_t offset, ByteView canonical) {
  return file_.write_at(kKeptAverageHeaderBytes + offset, canonical);
}

Status AverageWriter::finish(const std::string& digest) {
  if (!is_sha256_hex(digest)) {
    return Error{ErrorCode::kInternal,
                 fmt::format("an average without its digest is not written to {}", path_.string())};
  }
  ByteWriter header;
  begin_stored(header, kKeptAverageMagic, kKeptAverageVersion);
  header.put(round_.value);
  header.put(static_cast<std::uint32_t>(wire_));
  header.put(bytes_);
  header.put_bytes(as_bytes(digest));
  ATOLL_RETURN_IF_ERROR(file_.write_at(0, header.bytes()));
  return file_.take_place();
}

Status save_average(const std::filesystem::path& path, OuterStep round, WireFormat wire, const std::string& digest,
                    ByteView canonical) {
  ATOLL_ASSIGN_OR_RETURN(AverageWriter file, AverageWriter::create(path, round, wire, canonical.size()));
  ATOLL_RETURN_IF_ERROR(file.write(0, canonical));
  return file.finish(digest);
}

Result<KeptAverageInfo> peek_average(const std::filesystem::path& path) {
  ATOLL_ASSIGN_OR_RETURN(const StoredFile file, StoredFile::open(path));
  return read_info(file);
}

Result<KeptAverageInfo> verify_average(const std::filesystem::path& path) {
  ATOLL_ASSIGN_OR_RETURN(const StoredFile file, StoredFile::open(path));
  ATOLL_ASSIGN_OR_RETURN(KeptAverageInfo info, read_info(file));
  Bytes room(kDigestPieceBytes);
  ATOLL_RETURN_IF_ERROR(
      read_pieces(file, info, [&](std::uint64_t, std::size_t count) { return std::span(room).first(count); }));
  return info;
}

Result<KeptAverage> load_average(const std::filesystem::path& path, OuterStep round, const std::string& digest) {
  ATOLL_ASSIGN_OR_RETURN(const StoredFile file, StoredFile::open(path));
  ATOLL_ASSIGN_OR_RETURN(KeptAverageInfo info, read_info(file));
  if (info.round != round || info.digest != digest) {
    return Error{ErrorCode::kNotFound, fmt::format("{} is of round {}", path.string(), info.round.value)};
  }
  KeptAverage average{info.round, info.wire, info.digest, Bytes(static_cast<std::size_t>(info.bytes))};
  ATOLL_RETURN_IF_ERROR(read_pieces(file, info, [&](std::uint64_t done, std::size_t count) {
    return std::span(average.canonical).subspan(static_cast<std::size_t>(done), count);
  }));
  return average;
}

Result<AverageFile> AverageFile::open(const std::filesystem::path& path) {
  ATOLL_ASSIGN_OR_RETURN(StoredFile file, StoredFile::open(path));
  ATOLL_ASSIGN_OR_RETURN(KeptAverageInfo info, read_info(file));
  return AverageFile(std::move(file), std::move(info));
}

Status AverageFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  if (offset > info_.bytes || bytes.size() > info_.bytes - offset) {
    return Error{ErrorCode::kInvalidArgument, "an average is read past its end"};
  }
  return file_.read_at(kKeptAverageHeaderBytes + offset, bytes);
}

}  // namespace atl
