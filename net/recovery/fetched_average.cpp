#include "net/recovery/fetched_average.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/recovery/outer_state.h"

namespace atl {
namespace {

struct FlatSpan {
  std::int64_t begin = 0, end = 0;  // of values, in the order of the average
};

// Ranges ascend, so that those of a chunk lie side by side in the average. In whole blocks, as they are decoded.
FlatSpan values_of_chunk(std::span<const ParameterRange> ranges, WireFormat wire, std::uint64_t chunk) {
  const auto begin = static_cast<std::int64_t>(chunk * kStateChunkNumel);
  const std::int64_t end = begin + static_cast<std::int64_t>(kStateChunkNumel);
  FlatSpan found;
  std::int64_t before = 0, numel = 0;
  bool any = false;
  for (const ParameterRange& range : ranges) {
    const std::int64_t from = std::max(begin, range.offset), to = std::min(end, range.offset + range.numel);
    if (from < to) {
      if (!any) found.begin = before + from - range.offset;
      found.end = before + to - range.offset;
      any = true;
    }
    before += range.numel;
  }
  numel = before;
  if (!any) return {};
  const std::int64_t block = block_numel(wire);
  return {found.begin / block * block, std::min(numel, (found.end + block - 1) / block * block)};
}

struct ByteSpan {
  std::uint64_t begin = 0, end = 0;
};

ByteSpan bytes_of_chunk(std::span<const ParameterRange> ranges, WireFormat wire, std::uint64_t chunk) {
  const FlatSpan values = values_of_chunk(ranges, wire, chunk);
  if (values.begin == values.end) return {};
  const auto begin = static_cast<std::uint64_t>(encoded_bytes(wire, values.begin));
  return {begin, begin + static_cast<std::uint64_t>(encoded_bytes(wire, values.end - values.begin))};
}

}  // namespace

std::uint64_t average_bytes_of_chunk(std::span<const ParameterRange> ranges, WireFormat wire, std::uint64_t chunk) {
  const ByteSpan bytes = bytes_of_chunk(ranges, wire, chunk);
  return bytes.end - bytes.begin;
}

FetchedAverage::FetchedAverage(RoundManifest manifest, std::span<const ParameterRange> ranges)
    : manifest_(std::move(manifest)),
      ranges_(ranges),
      wanted_by_(manifest_.pieces.size()),
      first_chunk_(manifest_.pieces.size()),
      asked_(manifest_.pieces.size()) {}

PieceSpan FetchedAverage::pieces_of(std::uint64_t chunk) const {
  const ByteSpan bytes = bytes_of_chunk(ranges_, manifest_.wire, chunk);
  if (bytes.begin == bytes.end) return {};
  const auto first = static_cast<std::size_t>(bytes.begin / kDigestPieceBytes);
  return {first, static_cast<std::size_t>((bytes.end - 1) / kDigestPieceBytes) + 1 - first};
}

void FetchedAverage::open_or_close(std::size_t piece) {
  const bool is_open = wanted_by_[piece] > 0 && asked_[piece] == 0 && !came_.contains(piece);
  is_open ? static_cast<void>(open_.insert(piece)) : static_cast<void>(open_.erase(piece));
}

void FetchedAverage::want_nothing() {
  std::ranges::fill(wanted_by_, 0);
  open_.clear();
  keeps_all_ = true;
}

void FetchedAverage::want(std::uint64_t chunk) {
  const PieceSpan pieces = pieces_of(chunk);
  for (std::size_t piece = pieces.first; piece < pieces.end(); ++piece) {
    first_chunk_[piece] = wanted_by_[piece] == 0 ? chunk : std::min(first_chunk_[piece], chunk);
    ++wanted_by_[piece];
    open_or_close(piece);
  }
}

bool FetchedAverage::is_wanted() const {
  return std::ranges::any_of(wanted_by_, [](std::uint32_t chunks) { return chunks > 0; });
}

bool FetchedAverage::has(std::uint64_t chunk) const {
  const PieceSpan pieces = pieces_of(chunk);
  for (std::size_t piece = pieces.first; piece < pieces.end(); ++piece) {
    if (!came_.contains(piece)) return false;
  }
  return true;
}

void FetchedAverage::stepped(std::uint64_t chunk) {
  const PieceSpan pieces = pieces_of(chunk);
  for (std::size_t piece = pieces.first; piece < pieces.end(); ++piece) {
    if (--wanted_by_[piece] == 0) came_.erase(piece);
    open_or_close(piece);
  }
}

void FetchedAverage::trim() {
  keeps_all_ = false;
  std::erase_if(came_, [&](const auto& entry) { return wanted_by_[entry.first] == 0; });
}

std::uint64_t FetchedAverage::first_open_chunk() const { return first_chunk_[*open_.begin()]; }

PieceSpan FetchedAverage::ask(std::size_t most) {
  PieceSpan span{*open_.begin(), 0};
  while (span.count < most && open_.erase(span.end()) > 0) {
    asked_[span.end()] = 1;
    ++span.count;
  }
  return span;
}

void FetchedAverage::ask_again(PieceSpan span) {
  for (std::size_t piece = span.first; piece < span.end(); ++piece) ++asked_[piece];
}

void FetchedAverage::give_back(PieceSpan asked) {
  for (std::size_t piece = asked.first; piece < asked.end(); ++piece) {
    --asked_[piece];
    open_or_close(piece);
  }
}

FetchedAverage::Accepted FetchedAverage::accept(PieceSpan asked, ByteView bytes) {
  Accepted accepted;
  for (std::size_t piece = asked.first; piece < asked.end(); ++piece) {
    const std::size_t count = manifest_.piece_bytes(piece);
    if (bytes.size() < count) break;
    const ByteView body = bytes.first(count);
    bytes = bytes.subspan(count);
    if (hash_of_piece(body, 0) != manifest_.pieces[piece]) {
      accepted.status = Error{ErrorCode::kCorrupt, fmt::format("piece {} of the average of round {} has a wrong hash",
                                                               piece, manifest_.record.commit.round.value)};
      return accepted;
    }
    if (!needs(piece)) continue;
    came_.emplace(piece, Bytes(body.begin(), body.end()));
    accepted.fresh_bytes += count;
    accepted.fresh_pieces.push_back(piece);
    open_or_close(piece);
  }
  return accepted;
}

Result<ByteView> FetchedAverage::read(std::uint64_t offset, std::size_t bytes, Bytes& room) const {
  const auto first = static_cast<std::size_t>(offset / kDigestPieceBytes);
  const auto at = static_cast<std::size_t>(offset % kDigestPieceBytes);
  const auto missing = [&] {
    return Error{ErrorCode::kNotFound,
                 fmt::format("the average of round {} has not come whole", manifest_.record.commit.round.value)};
  };
  const auto found = came_.find(first);
  if (found == came_.end()) return missing();
  if (at + bytes <= found->second.size()) return ByteView(found->second).subspan(at, bytes);
  room.clear();
  for (std::size_t piece = first, from = at; room.size() < bytes; ++piece, from = 0) {
    const auto next = came_.find(piece);
    if (next == came_.end()) return missing();
    const ByteView part = ByteView(next->second).subspan(from);
    const ByteView wanted = part.first(std::min(part.size(), bytes - room.size()));
    room.insert(room.end(), wanted.begin(), wanted.end());
  }
  return ByteView(room);
}

}  // namespace atl
