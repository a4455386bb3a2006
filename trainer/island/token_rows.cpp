#include "trainer/island/token_rows.h"

#include "net/data/packed_documents.h"
#include "net/data/token_shard.h"

namespace atl {

TokenRows::TokenRows(std::uint32_t sequences, std::uint32_t sequence_length, AttentionScope attention,
                     std::uint32_t end_of_text)
    : row_(std::size_t{sequence_length} + 1),
      attention_(attention),
      end_of_text_(static_cast<std::int32_t>(end_of_text)),
      tokens_(sequences * row_),
      counts_(tokens_.size()) {
  if (attention_ == AttentionScope::kDocument) starts_.resize(sequences * (row_ - 1));
}

bool TokenRows::take_marks(std::size_t tokens) {
  bool marked = false;
  for (std::size_t i = 0; i < tokens; ++i) {
    const auto token = static_cast<std::uint32_t>(tokens_[i]);
    tokens_[i] = static_cast<std::int32_t>(token_id(token));
    counts_[i] = token_id(token) == token ? 1 : 0;
    marked = marked || counts_[i] == 0;
  }
  return marked;
}

TokenBatch TokenRows::batch(std::uint32_t sequences) {
  TokenBatch batch{std::span(tokens_).first(sequences * row_), sequences, static_cast<std::uint32_t>(row_ - 1)};
  const bool marked = take_marks(sequences * row_);
  if (marked || attention_ == AttentionScope::kDocument) batch.counts = std::span(counts_).first(sequences * row_);
  if (attention_ != AttentionScope::kDocument) return batch;
  for (std::size_t i = 0; i < sequences; ++i) {
    find_documents(row(i), end_of_text_, std::span(starts_).subspan(i * (row_ - 1), row_ - 1),
                   std::span(counts_).subspan(i * row_, row_));
  }
  batch.starts = std::span(starts_).first(sequences * (row_ - 1));
  return batch;
}

}  // namespace atl
