// A run's data between its islands: what an island that fetches asks of the others, and what they ask of it. Which
// island has a chunk nobody announces. Whoever needs one asks the island that is the chunk's home by its name
// (homes_of), which remembers who asked before: those have it, or soon do. That is a question of a hundred bytes for
// each chunk of a megabyte, and costs the hub nothing.
//
//   GET /data/TREE/CHUNK          its bytes; 404: it has not
//   GET /data/TREE/CHUNK/holders  islands that have it or asked for it, a name a line
//
// Names are believed by nobody: bytes are verified by their hash, and who has not what others say of it costs whoever
// asks a question.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/bytes.h"
#include "net/base/file.h"
#include "net/base/id.h"
#include "net/base/result.h"

namespace atl {

// A source's split, by its number in the run, which all islands count alike; and a chunk of it.
struct ChunkId {
  std::uint32_t tree = 0;
  std::uint64_t chunk = 0;
  auto operator<=>(const ChunkId&) const = default;
};

// ---- what is said. Pure; any thread

inline constexpr std::string_view kDataPrefix = "/data/";
inline constexpr std::size_t kMaxHolders = 8;
inline constexpr std::size_t kMaxHoldersBytes = kMaxHolders * 65;  // names of 64 bytes, a line each

struct DataTarget {
  ChunkId id;
  bool asks_for_holders = false;
};
std::string to_target(const DataTarget& target);
std::optional<DataTarget> parse_data_target(std::string_view target);  // empty: it is none

std::string encode_holders(std::span<const IslandId> holders);        // the first kMaxHolders
Result<std::vector<IslandId>> decode_holders(std::string_view text);  // kProtocol

// The islands in the order in which they are asked about that chunk, the same on all machines (rendezvous hashing:
// Thaler and Ravishankar, 1998): whoever comes or goes changes the home of its own share of the chunks alone, and who
// was a chunk's home before a newcomer is the second now.
std::vector<IslandId> homes_of(ChunkId id, std::vector<IslandId> islands);

// ---- who asks whom

struct WantedChunk {
  ChunkId id;
  std::uint64_t bytes = 0;
  std::function<Status(ByteView)> verify;  // whether these are its bytes
};

enum class PeerChoice {
  kLikely,      // who is said to have it, and gave no reason to be asked last
  kAllThereAre  // where it cannot be had elsewhere
};

// The other islands, as one thread asks them.
class ChunkPeers {
 public:
  virtual ~ChunkPeers() = default;
  // Verified. kNotFound: nobody who was asked has it. Blocks for a bounded time; kAborted soon after `abort` is raised.
  virtual Result<Bytes> fetch(const WantedChunk& wanted, PeerChoice choice, const AbortSignal& abort) = 0;
};

enum class Holding { kNot, kFetched, kHeld };  // the second: at this moment

// The chunks that an island has. Any thread.
class HeldChunks {
 public:
  virtual ~HeldChunks() = default;
  virtual Holding holding(ChunkId id) const = 0;
  // Its bytes, whose hash is right. One that is being fetched is waited for, some seconds, until `abort`. kNotFound.
  virtual Result<MappedFile> held(ChunkId id, const AbortSignal& abort) = 0;
};

// What an island's port answers with. Any thread.
class ServedChunks {
 public:
  virtual ~ServedChunks() = default;
  virtual Result<MappedFile> chunk(ChunkId id, const AbortSignal& abort) = 0;
  // `asker`, who is about to fetch it, is one of them from now on.
  virtual std::vector<IslandId> holders(ChunkId id, const IslandId& asker) = 0;
};

}  // namespace atl
