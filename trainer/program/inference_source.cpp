#include "trainer/program/inference_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/base/memory.h"
#include "net/data/token_shard.h"
#include "net/model_files/end_tokens.h"
#include "net/tokenizer/byte_tokenizer.h"
#include "net/tokenizer/load_tokenizer.h"

namespace atl {
namespace {

// Enough for the products' full speed, and a bounded need of memory however long a prompt is.
constexpr std::int64_t kRowsAtOnce = 512;

bool has_tokenizer(const std::filesystem::path& directory) {
  std::error_code ignored;
  return std::filesystem::exists(directory / "tokenizer.json", ignored) ||
         std::filesystem::exists(directory / "tokenizer.model", ignored);
}

// Some models round theirs up further (Qwen 2.5 by 271), so that it is nothing to refuse.
void warn_of_vocabularies(std::int64_t tokenizer, std::int64_t model) {
  if (model <= tokenizer + 2 * kMostVocabPadding) return;
  fmt::print(stderr,
             "atoll-trainer: the model's vocabulary ({}) is not the tokenizer's ({}): unless they belong together, "
             "what comes of it means nothing\n",
             model, tokenizer);
}

}  // namespace

Result<ModelText> load_model_text(const OpenedModel& model, const InferenceChoice& choice) {
  const std::int64_t vocab_size = model.reader.config().vocab_size;
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::int64_t> ends, end_tokens(model.directory, model.reader.config()));
  const auto text_of = [&](std::unique_ptr<Tokenizer> tokenizer) {
    return ModelText::make(std::move(tokenizer), vocab_size, ends);
  };
  if (choice.tokenizer == kByteTokenizerName) return text_of(std::make_unique<ByteTokenizer>());
  const std::filesystem::path& named = choice.tokenizer.empty() ? model.directory : choice.tokenizer;
  if (!choice.tokenizer.empty() || has_tokenizer(named)) {
    ATOLL_ASSIGN_OR_RETURN(auto tokenizer, load_tokenizer(named));
    warn_of_vocabularies(tokenizer->facts().vocab_size, vocab_size);
    return text_of(std::move(tokenizer));
  }
  const std::int64_t padding = vocab_size - kByteVocabSize;
  if (padding < 0 || padding > kMostVocabPadding) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("this model has a vocabulary of {}, not the byte-level {}, and no tokenizer lies beside it: "
                    "name the one that it was trained with by --tokenizer",
                    vocab_size, kByteVocabSize)};
  }
  return text_of(std::make_unique<ByteTokenizer>());
}

Result<std::unique_ptr<InferenceEngine>> load_inference(const OpenedModel& model, const InferenceChoice& choice,
                                                        std::int64_t slots, std::int64_t capacity) {
  const InferenceOptions options{.precision = choice.bf16 ? Precision::kBf16 : Precision::kFp32,
                                 .slots = std::clamp<std::int64_t>(slots, 1, choice.batch),
                                 .capacity = capacity,
                                 .most_rows = kRowsAtOnce,
                                 .compute_threads = threads_or_all(choice.threads),
                                 .available_bytes = usable_memory().available};
  return InferenceEngine::create(model.reader.config(), options, [&](std::int64_t first, std::span<float> values) {
    model.reader.read(first, values);
  });
}

}  // namespace atl
