// The bytes of a snapshot's files (snapshot.h): index and journal to values and back. For snapshot.cpp and
// snapshot_writer.cpp. Block on the disk; one thread.
#pragma once

#include "net/disk/snapshot.h"
#include "net/disk/stored_file.h"

namespace atl {

inline constexpr const char* kSnapshotIndex = "index";
inline constexpr const char* kSnapshotJournal = "written";

std::filesystem::path chunk_file(const std::filesystem::path& directory, std::uint64_t number);
inline std::uint64_t chunk_file_of(std::uint64_t index) { return index / kChunksOfFile; }
std::uint64_t chunk_offset(std::uint64_t index);  // in its file
std::uint64_t chunk_bytes_of(std::uint64_t numel, std::uint64_t index);
std::uint64_t chunk_file_bytes(std::uint64_t numel, std::uint64_t number);
std::uint64_t chunk_files(std::uint64_t numel);

// ---- the journal

struct Journal {
  std::vector<std::optional<StoredChunk>> chunks;
  std::uint64_t whole_bytes = 0;  // up to where it is what was written
};
Bytes journal_head(std::uint64_t numel);
Bytes journal_record(std::uint64_t index, const StoredChunk& chunk);
// Empty when there is none, or it is of another model.
std::optional<Journal> read_journal(const std::filesystem::path& file, std::uint64_t numel);

}  // namespace atl
