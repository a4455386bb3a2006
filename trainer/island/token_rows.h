// The sequences of one batch, which of their tokens count as labels, and where their documents begin, if attention is
// kept within documents: filled row by row, seen as a TokenBatch. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "net/model/attention_scope.h"
#include "trainer/engine/engine.h"

namespace atl {

class TokenRows {
 public:
  // Of `sequences` rows of sequence_length + 1 tokens.
  TokenRows(std::uint32_t sequences, std::uint32_t sequence_length, AttentionScope attention,
            std::uint32_t end_of_text);

  // To be filled with tokens as a shard has them, kUncountedBit where they count for nothing.
  std::span<std::int32_t> row(std::size_t i) { return std::span(tokens_).subspan(i * row_, row_); }
  // The first so many rows, once after they were filled; valid until they are filled again.
  TokenBatch batch(std::uint32_t sequences);

 private:
  const std::size_t row_;
  const AttentionScope attention_;
  const std::int32_t end_of_text_;
  // Takes the marks off the tokens; whether there were any.
  bool take_marks(std::size_t tokens);

  std::vector<std::int32_t> tokens_;
  std::vector<std::int32_t> starts_;  // as TokenBatch has them; where attention is kept within documents
  std::vector<std::uint8_t> counts_;  // as TokenBatch has them
};

}  // namespace atl
