#include "tests/cuda_on_cpu/touches.h"

#include <algorithm>

#include "tests/cuda_on_cpu/block.h"

namespace atl::cuda_on_cpu {

void Touches::make_finer(Chunk& chunk, unsigned shift) {
  std::vector<Cell> finer(kChunkBytes >> shift);
  for (std::size_t i = 0; i < finer.size(); ++i) finer[i] = chunk.cells[i >> (chunk.shift - shift)];
  chunk.cells = std::move(finer);
  chunk.shift = shift;
}

bool Touches::other_block_counts(std::uint32_t era) const {
  return !shared_ && !launch_now.fenced && era >= launch_now.first_era_of_launch && era < launch_now.first_era_of_block;
}

bool Touches::comes_after_write(const Cell& cell) const {
  const Launch& l = launch_now;
  if (cell.write_era != l.era) return !other_block_counts(cell.write_era);
  if (cell.write_thread == l.now) return true;
  if (cell.write_thread / kLanes != l.now / kLanes) return false;
  return l.threads[l.now].clock[cell.write_thread % kLanes] >= cell.write_clock;
}

bool Touches::comes_after_reads(const Cell& cell) const {
  const Launch& l = launch_now;
  if (cell.read_era != l.era) return !other_block_counts(cell.read_era);
  if (cell.read_warp != l.now / kLanes) return false;
  const CudaThread& me = l.threads[l.now];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (lane != l.now % kLanes && (cell.read_lanes >> lane & 1u) != 0 && me.clock[lane] < cell.read_clock) return false;
  }
  return true;
}

std::optional<std::string> Touches::touch(Cell& cell, AccessKind kind) const {
  const Launch& l = launch_now;
  const auto lane = static_cast<unsigned>(l.now % kLanes);
  const auto warp = static_cast<std::uint16_t>(l.now / kLanes);
  const std::uint32_t clock = l.threads[l.now].clock[lane];
  if (!(kind == AccessKind::kAtomic && cell.write_was_atomic) && !comes_after_write(cell)) {
    const bool here = cell.write_era >= l.first_era_of_block;
    const unsigned x = l.configuration->block.x, y = l.configuration->block.y, t = cell.write_thread;
    return (here ? "thread " : "another block's thread ") + name_of(uint3{t % x, t / x % y, t / x / y}) + " wrote";
  }
  if (kind == AccessKind::kRead) {
    if (cell.read_era != l.era) {
      cell.read_era = l.era;
      cell.read_warp = warp;
      cell.read_lanes = 1u << lane;
      cell.read_clock = clock;
    } else if (cell.read_warp != warp) {
      cell.read_warp = kManyWarps;
    } else {
      cell.read_lanes |= 1u << lane;
      cell.read_clock = std::min(cell.read_clock, clock);
    }
    return std::nullopt;
  }
  if (!comes_after_reads(cell)) return "another thread read";
  cell.read_era = 0;
  cell.write_era = l.era;
  cell.write_clock = clock;
  cell.write_thread = static_cast<std::uint16_t>(l.now);
  cell.write_was_atomic = kind == AccessKind::kAtomic;
  return std::nullopt;
}

std::optional<std::string> Touches::touch(std::size_t offset, std::size_t bytes, AccessKind kind) {
  const unsigned finest = ((offset | bytes) & 1) != 0 ? 0 : ((offset | bytes) & 2) != 0 ? 1 : 2;
  for (const std::size_t end = offset + bytes; offset < end;) {
    Chunk& chunk = chunks_[offset / kChunkBytes];
    if (chunk.cells.empty()) chunk.cells.resize(kChunkBytes >> chunk.shift);
    if (finest < chunk.shift) make_finer(chunk, finest);
    if (auto race = touch(chunk.cells[offset % kChunkBytes >> chunk.shift], kind)) return race;
    offset += std::size_t{1} << chunk.shift;
  }
  return std::nullopt;
}

}  // namespace atl::cuda_on_cpu
