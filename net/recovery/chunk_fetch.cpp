#include "net/recovery/chunk_fetch.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace atl {

std::map<std::uint64_t, ChunkFetch::OnWay>::iterator ChunkFetch::find(const ChunkPart& part) {
  const auto found = on_way_.find(part.index);
  return found != on_way_.end() && found->second.is.sha256 == part.is.sha256 ? found : on_way_.end();
}

std::map<std::uint64_t, ChunkFetch::OnWay>::const_iterator ChunkFetch::find(const ChunkPart& part) const {
  const auto found = on_way_.find(part.index);
  return found != on_way_.end() && found->second.is.sha256 == part.is.sha256 ? found : on_way_.end();
}

// ---- what is asked for

// The sources have left the outer step that the rest of these is of, or it is there in another way.
void ChunkFetch::forget_stale() {
  for (auto entry = on_way_.begin(); entry != on_way_.end();) {
    auto& [index, chunk] = *entry;
    const StoredChunk wanted = plan_.wanted(index);
    const bool is_of_use = plan_.is_to_fetch(index) && chunk.is.sha256 == wanted.sha256;
    if (is_of_use) chunk.is = wanted;  // an outer step that did not touch it
    if (is_of_use || chunk.pieces.asked_by_anybody()) {
      ++entry;
      continue;
    }
    forgotten_ += chunk.pieces.bytes_here();
    plan_.give_back_chunk(index);
    entry = on_way_.erase(entry);
  }
}

// Of what is left each request has its part, and the last ones are small. From one source, nothing is gained by that.
std::size_t ChunkFetch::pieces_at_once(std::size_t sources, std::size_t requests) const {
  if (sources <= 1) return kChunkPieces;
  std::uint64_t open =
      (plan_.chunks_to_fetch() - std::min<std::uint64_t>(plan_.chunks_to_fetch(), on_way_.size())) * kChunkPieces;
  for (const auto& [index, chunk] : on_way_) open += chunk.pieces.open();
  return static_cast<std::size_t>(std::bit_floor(std::clamp<std::uint64_t>(open / (2 * requests), 1, kChunkPieces)));
}

std::optional<ChunkPart> ChunkFetch::next(std::size_t sources, std::size_t requests) {
  forget_stale();
  const std::size_t most = pieces_at_once(sources, requests);
  for (auto& [index, chunk] : on_way_) {
    if (chunk.pieces.open() > 0 && chunk.is == plan_.wanted(index))
      return ChunkPart{index, chunk.is, chunk.pieces.ask(most)};
  }
  if (on_way_.size() >= kMostChunks) return std::nullopt;
  const auto index = plan_.next_chunk();
  if (!index || on_way_.contains(*index)) return std::nullopt;
  OnWay chunk{plan_.wanted(*index), ChunkPieces(plan_.state().chunk_bytes(*index))};
  const ChunkPart part{*index, chunk.is, chunk.pieces.ask(most)};
  on_way_.emplace(*index, std::move(chunk));
  return part;
}

void ChunkFetch::ask_again(const ChunkPart& part) {
  if (const auto found = find(part); found != on_way_.end()) found->second.pieces.ask_again(part.pieces);
}

void ChunkFetch::give_back(const ChunkPart& part) {
  if (const auto found = find(part); found != on_way_.end()) found->second.pieces.give_back(part.pieces);
}

bool ChunkFetch::needs(const ChunkPart& part, std::size_t piece) const {
  const auto found = find(part);
  return found != on_way_.end() && !found->second.pieces.has(piece);
}

int ChunkFetch::asked(const ChunkPart& part, std::size_t piece) const {
  const auto found = find(part);
  return found != on_way_.end() ? found->second.pieces.asked(piece) : 0;
}

bool ChunkFetch::may_be_split(const ChunkPart& part) const {
  const auto found = find(part);
  return found != on_way_.end() && !found->second.pieces.is_of_one();
}

bool ChunkFetch::is_all(const ChunkPart& part) const { return bytes_of(part) == plan_.state().chunk_bytes(part.index); }

std::uint64_t ChunkFetch::bytes_of(const ChunkPart& part) const {
  const std::uint64_t end =
      std::min<std::uint64_t>(part.pieces.end() * kChunkPieceBytes, plan_.state().chunk_bytes(part.index));
  return end - offset_of(part);
}

// ---- what came

ChunkFetch::Taken ChunkFetch::take(const ChunkPart& part, Bytes&& bytes, const IslandId& from) {
  Taken taken;
  taken.lost = std::exchange(forgotten_, 0) + bytes.size();
  const auto found = find(part);
  if (found == on_way_.end()) return taken;
  ChunkPieces& pieces = found->second.pieces;
  taken.lost -= pieces.put(part.pieces, std::move(bytes), from);
  if (!pieces.is_whole()) return taken;
  const std::uint64_t size = pieces.bytes().size();
  const Result<bool> was_wanted = plan_.take_chunk(part.index, found->second.is, pieces.bytes());
  if (!was_wanted.ok()) {
    taken.lost += size;
    if (!pieces.had_several()) taken.liars.push_back(from);
    pieces.was_wrong();
    return taken;
  }
  (*was_wanted ? taken.useful : taken.lost) += size;
  taken.liars = pieces.liars();
  on_way_.erase(found);
  return taken;
}

}  // namespace atl
