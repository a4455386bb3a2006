#include "trainer/evaluate/batch_loss.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace atl {
namespace {

// Inputs of a sequence that see each other alone.
struct Document {
  std::size_t first = 0;  // of its tokens in the batch's
  std::size_t length = 0;
};

std::vector<Document> documents_of(const TokenBatch& batch) {
  std::vector<Document> documents;
  for (std::int64_t sequence = 0; sequence < batch.sequences; ++sequence) {
    for (std::int64_t i = 0; i < batch.length; ++i) {
      const std::int64_t start =
          batch.starts.empty() ? 0 : batch.starts[static_cast<std::size_t>(sequence * batch.length + i)];
      if (start == i) documents.push_back({static_cast<std::size_t>(sequence * (batch.length + 1) + i), 0});
      ++documents.back().length;
    }
  }
  return documents;
}

void add_scores(const TokenBatch& batch, const Document& document, std::span<const TokenScore> scores, LossSum& loss) {
  for (std::size_t i = 0; i < document.length; ++i) {
    if (!batch.counts.empty() && batch.counts[document.first + 1 + i] == 0) continue;
    loss.nats -= static_cast<double>(scores[i].log_probability);
    ++loss.labels;
  }
}

}  // namespace

Result<LossSum> batch_loss(InferenceEngine& engine, const TokenBatch& batch) {
  const std::vector<Document> documents = documents_of(batch);
  const auto slots = static_cast<std::size_t>(engine.options().slots);
  LossSum loss;
  std::vector<SlotTokens> texts;
  for (std::size_t first = 0; first < documents.size(); first += slots) {
    const auto here = std::span(documents).subspan(first, std::min(slots, documents.size() - first));
    texts.clear();
    for (const Document& document : here) {
      const std::int64_t slot = std::ssize(texts);
      engine.keep(slot, 0);
      texts.push_back({slot, batch.tokens.subspan(document.first, document.length),
                       batch.tokens.subspan(document.first + 1, document.length)});
    }
    ATOLL_ASSIGN_OR_RETURN(const std::vector<TokenScore> scores, engine.scores(texts));
    std::span<const TokenScore> left = scores;
    for (const Document& document : here) {
      add_scores(batch, document, left.first(document.length), loss);
      left = left.subspan(document.length);
    }
  }
  if (std::isfinite(loss.nats)) return loss;
  return Error{ErrorCode::kNonFinite, "the loss of this model on this text is not finite"};
}

}  // namespace atl
