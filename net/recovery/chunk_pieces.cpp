#include "net/recovery/chunk_pieces.h"

#include <algorithm>
#include <utility>

namespace atl {

ChunkPieces::ChunkPieces(std::uint64_t bytes)
    : size_(bytes),
      asked_((bytes + kChunkPieceBytes - 1) / kChunkPieceBytes),
      is_here_(asked_.size()),
      source_(asked_.size()) {}

std::uint64_t ChunkPieces::bytes_of(PieceSpan span) const {
  return std::min<std::uint64_t>(span.end() * kChunkPieceBytes, size_) - span.first * kChunkPieceBytes;
}

std::uint64_t ChunkPieces::bytes_here() const {
  std::uint64_t bytes = 0;
  for (std::size_t piece = 0; piece < pieces(); ++piece) bytes += is_here_[piece] ? bytes_of({piece, 1}) : 0;
  return bytes;
}

// ---- what is asked for

std::size_t ChunkPieces::open() const {
  std::size_t count = 0;
  for (std::size_t piece = 0; piece < pieces(); ++piece) count += asked_[piece] == 0 && !is_here_[piece] ? 1 : 0;
  return count;
}

PieceSpan ChunkPieces::ask(std::size_t most) {
  const auto is_open = [&](std::size_t piece) { return piece < pieces() && asked_[piece] == 0 && !is_here_[piece]; };
  if (of_one_) most = pieces();
  PieceSpan span;
  while (!is_open(span.first)) ++span.first;
  while (span.count < most && is_open(span.end())) ++span.count;
  ask_again(span);
  return span;
}

void ChunkPieces::ask_again(PieceSpan span) {
  for (std::size_t piece = span.first; piece < span.end(); ++piece) ++asked_[piece];
}

void ChunkPieces::give_back(PieceSpan asked) {
  for (std::size_t piece = asked.first; piece < asked.end(); ++piece) --asked_[piece];
}

bool ChunkPieces::asked_by_anybody() const {
  return std::ranges::any_of(asked_, [](std::uint8_t requests) { return requests > 0; });
}

// ---- what came

std::uint64_t ChunkPieces::put(PieceSpan asked, Bytes&& bytes, const IslandId& from) {
  const bool is_all = asked.first == 0 && bytes.size() == size_;
  if (of_one_ && !is_all) return 0;
  if (is_all && here_ == 0) {
    bytes_ = std::move(bytes);
    is_here_.assign(pieces(), true);
    source_.assign(pieces(), from);
    here_ = pieces();
    from_ = {from};
    return size_;
  }
  const std::uint64_t before = bytes_here();
  ByteView rest(bytes);
  for (std::size_t piece = asked.first; piece < asked.end(); ++piece) {
    const auto count = static_cast<std::size_t>(bytes_of({piece, 1}));
    if (rest.size() < count) break;
    if (!is_here_[piece]) take(piece, rest.first(count), from);
    rest = rest.subspan(count);
  }
  return bytes_here() - before;
}

void ChunkPieces::take(std::size_t piece, ByteView bytes, const IslandId& from) {
  bytes_.resize(static_cast<std::size_t>(size_));
  std::ranges::copy(bytes, bytes_.begin() + static_cast<std::ptrdiff_t>(piece * kChunkPieceBytes));
  is_here_[piece] = true;
  source_[piece] = from;
  from_.insert(from);
  ++here_;
}

void ChunkPieces::was_wrong() {
  if (wrong_.empty() && had_several()) {
    wrong_ = std::move(bytes_);
    wrong_source_ = source_;
  }
  bytes_ = {};
  of_one_ = true;
  is_here_.assign(pieces(), false);
  here_ = 0;
  from_.clear();
}

std::vector<IslandId> ChunkPieces::liars() const {
  std::set<IslandId> found;
  for (std::size_t piece = 0; piece < pieces() && !wrong_.empty(); ++piece) {
    const std::size_t begin = piece * kChunkPieceBytes, count = static_cast<std::size_t>(bytes_of({piece, 1}));
    const ByteView right = ByteView(bytes_).subspan(begin, count), sent = ByteView(wrong_).subspan(begin, count);
    if (!std::ranges::equal(right, sent)) found.insert(wrong_source_[piece]);
  }
  return {found.begin(), found.end()};
}

}  // namespace atl
