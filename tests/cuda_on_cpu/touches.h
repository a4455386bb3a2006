// Who touched the bytes of a piece of memory last, and whether a barrier lies between two accesses of the same bytes:
// the happens-before test of FastTrack (Flanagan and Freund, PLDI 2009) with one writer and one warp of readers a cell.
// What it reports is a race; of races between blocks it may miss one. Under the launch lock.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/cuda_on_cpu/memory.h"

namespace atl::cuda_on_cpu {

class Touches {
 public:
  // Shared memory begins anew with each block, so that no other block's accesses count.
  Touches(std::size_t bytes, bool shared) : shared_(shared), chunks_((bytes + kChunkBytes - 1) / kChunkBytes) {}

  // Of the thread that runs, at [offset, offset + bytes); what it races with, if with something.
  std::optional<std::string> touch(std::size_t offset, std::size_t bytes, AccessKind kind);

 private:
  static constexpr std::size_t kChunkBytes = 256;
  static constexpr std::uint16_t kManyWarps = 0xffff;
  struct Cell {
    std::uint32_t write_era = 0, read_era = 0;  // of the launch's eras; 0 of none
    std::uint32_t write_clock = 0, read_clock = 0;
    std::uint32_t read_lanes = 0;
    std::uint16_t read_warp = 0;
    std::uint16_t write_thread = 0;
    bool write_was_atomic = false;
  };
  // A cell covers as many bytes as the smallest access so far, 4 to begin with.
  struct Chunk {
    unsigned shift = 2;
    std::vector<Cell> cells;
  };

  void make_finer(Chunk& chunk, unsigned shift);
  bool comes_after_write(const Cell& cell) const;
  bool comes_after_reads(const Cell& cell) const;
  bool other_block_counts(std::uint32_t era) const;
  std::optional<std::string> touch(Cell& cell, AccessKind kind) const;

  bool shared_;
  std::vector<Chunk> chunks_;
};

}  // namespace atl::cuda_on_cpu
