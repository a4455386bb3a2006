// Where the sequences of one source lie, in the order in which a run reads them: a pure function of seed and index, so
// that nobody keeps a shuffle buffer, and that needs few chunks at a time, because whoever trains fetches whole ones.
//
// The source is one stream of tokens, cut into chunks of chunk_tokens, and each chunk into sequences (a rest that is
// shorter than one is left out). In each epoch the chunks come in an order of their own, kWindowChunks of them make a
// window, and the sequences of a window are shuffled: as shards and a shuffle buffer do it (WebDataset, MosaicML
// Streaming's "py1b"). The source's last chunk, which may be short, is always the last of an epoch.
//
// Values; any thread. Some 100 ns a sequence.
#pragma once

#include <cstdint>

namespace atl {

inline constexpr std::uint64_t kWindowChunks = 16;

struct SourceShape {
  std::uint64_t tokens = 0;
  std::uint32_t chunk_tokens = 0;
  std::uint32_t sequence_length = 0;  // at most chunk_tokens
  bool operator==(const SourceShape&) const = default;
};

// Tokens [sequence * length, sequence * length + length + 1) of the chunk; the last of these may be the next chunk's
// first.
struct SequencePlace {
  std::uint64_t chunk = 0;
  std::uint32_t sequence = 0;
  bool operator==(const SequencePlace&) const = default;
};

class SequenceMap {
 public:
  // `source`: its number in the run; sources of one shape have orders of their own.
  SequenceMap(std::uint64_t seed, std::uint32_t source, const SourceShape& shape);

  std::uint64_t sequences() const { return sequences_; }  // of an epoch; 0: the source is too short for one
  // The sequence that the run reads as the index-th of this source, for ever: epoch after epoch. sequences() > 0.
  SequencePlace at(std::uint64_t index) const;
  // As they lie in the source: index < sequences().
  SequencePlace in_file_order(std::uint64_t index) const;

 private:
  std::uint64_t key_;
  std::uint64_t whole_chunks_ = 0;  // all but the last
  std::uint64_t a_chunk_ = 1;       // sequences of a whole chunk
  std::uint64_t sequences_ = 0;
};

}  // namespace atl
