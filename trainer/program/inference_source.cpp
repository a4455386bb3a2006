#include "trainer/program/inference_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "net/base/memory.h"
#include "net/base/printable.h"
#include "net/data/token_shard.h"
#include "net/model_files/end_tokens.h"
#include "net/tokenizer/byte_tokenizer.h"
#include "net/tokenizer/load_tokenizer.h"
#include "trainer/device/device_choice.h"
#include "trainer/engine/device_check.h"

namespace atl {
namespace {

// Enough for the products' full speed, and a bounded need of memory however long a prompt is.
constexpr std::int64_t kRowsAtOnce = 512;
constexpr std::int64_t kGpuRowsAtOnce = 2048;
constexpr std::uint64_t kGpuReserve = std::uint64_t{768} << 20;  // libraries' code and workspaces
constexpr std::chrono::seconds kLongestPass{600};

// Some models round theirs up further (Qwen 2.5 by 271), so that it is nothing to refuse.
void warn_of_vocabularies(std::int64_t tokenizer, std::int64_t model) {
  if (model <= tokenizer + 2 * kMostVocabPadding) return;
  fmt::print(stderr,
             "atoll-trainer: the model's vocabulary ({}) is not the tokenizer's ({}): unless they belong together, "
             "what comes of it means nothing\n",
             model, tokenizer);
}

// On the first of them, of what is free there; the check's device is given back before.
Result<std::unique_ptr<InferenceEngine>> on_gpu(Gpus& machine, std::span<const UsableGpu> gpus,
                                                const ModelConfig& config, InferenceOptions options,
                                                const ReadParameters& read) {
  const auto first = gpus.first(1);
  ATOLL_ASSIGN_OR_RETURN(auto tried, machine.devices(first, kLongestPass));
  ATOLL_RETURN_IF_ERROR(check_inference_device(config, options.precision, std::move(tried)));
  options.most_rows = kGpuRowsAtOnce;
  const std::uint64_t free_bytes = first.front().free_bytes;
  options.available_bytes = free_bytes > kGpuReserve ? free_bytes - kGpuReserve : 0;
  ATOLL_ASSIGN_OR_RETURN(auto device, machine.devices(first, kLongestPass));
  return InferenceEngine::create(config, options, read, std::move(device));
}

}  // namespace

Result<ModelText> load_model_text(const OpenedModel& model, const InferenceChoice& choice) {
  const std::int64_t vocab_size = model.reader.config().vocab_size;
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::int64_t> ends, end_tokens(model.directory, model.reader.config()));
  const auto text_of = [&](std::unique_ptr<Tokenizer> tokenizer) {
    return ModelText::make(std::move(tokenizer), vocab_size, ends);
  };
  if (choice.tokenizer == kByteTokenizerName) return text_of(std::make_unique<ByteTokenizer>());
  ATOLL_ASSIGN_OR_RETURN(
      auto tokenizer, choice.tokenizer.empty() ? tokenizer_beside(model.directory) : load_tokenizer(choice.tokenizer));
  if (tokenizer != nullptr) {
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
  const ReadParameters read = [&](std::int64_t first, std::span<float> values) { model.reader.read(first, values); };
  const auto tell = [](const std::string& text) { fmt::print(stderr, "atoll-trainer: {}\n", printable(text)); };
  const auto machine = gpus_of_machine();
  std::unique_ptr<InferenceEngine> engine;
  const auto make = [&](std::span<const UsableGpu> gpus) -> Status {
    ATOLL_ASSIGN_OR_RETURN(engine, on_gpu(*machine, gpus, model.reader.config(), options, read));
    return ok_status();
  };
  ATOLL_ASSIGN_OR_RETURN(const DeviceOutcome outcome, choose_device(choice.device, *machine, make, {.say = tell}));
  if (!outcome.trouble.empty()) tell(outcome.trouble);
  if (outcome.on_gpus) return engine;
  return InferenceEngine::create(model.reader.config(), options, read);
}

}  // namespace atl
