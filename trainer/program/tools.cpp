#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <thread>

#include "net/base/file.h"
#include "net/control/methods.h"
#include "net/data/token_shard.h"
#include "trainer/island/batch_source.h"
#include "trainer/program/model_source.h"
#include "trainer/program/program.h"

namespace atl {
namespace {

void print(const nlohmann::json& json) { fmt::print("{}\n", json.dump()); }

// Vocabularies are rounded up to a multiple that suits the processor; the ids in between are never trained on.
constexpr std::int64_t kMostVocabPadding = 255;

Status require_byte_level(const Engine& engine) {
  const std::int64_t padding = engine.config().vocab_size - kByteVocabSize;
  if (padding >= 0 && padding <= kMostVocabPadding) return ok_status();
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format(
          "this model has a vocabulary of {}, not the byte-level {}: continue it with the tokenizer that it was "
          "trained with, in HuggingFace transformers",
          engine.config().vocab_size, kByteVocabSize)};
}

// The next token from softmax(logits / temperature) over the top k.
std::int32_t draw(std::span<const float> logits, const SampleCommand& command, std::mt19937_64& random) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto by_logit = [&](std::int32_t a, std::int32_t b) { return logits[a] > logits[b]; };
  if (command.temperature <= 0) return *std::min_element(order.begin(), order.end(), by_logit);
  const std::size_t kept = command.top_k > 0 ? std::min<std::size_t>(command.top_k, order.size()) : order.size();
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), by_logit);
  std::vector<double> weights(kept);
  for (std::size_t i = 0; i < kept; ++i) {
    weights[i] = std::exp((logits[order[i]] - logits[order[0]]) / command.temperature);
  }
  // Not std::discrete_distribution: its results differ between standard libraries.
  const double uniform = static_cast<double>(random() >> 11) * 0x1.0p-53;
  double rest = uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i < kept; ++i) {
    rest -= weights[i];
    if (rest < 0) return order[i];
  }
  return order[0];
}

}  // namespace

Status export_model(const ExportCommand& command) {
  ATOLL_ASSIGN_OR_RETURN(const OuterStep outer_step, export_from_home(command.home, command.output));
  if (command.json) {
    print(encode_message(method::ModelExported{command.output.string(), outer_step.value}));
  } else {
    fmt::print("exported outer step {} to {} (config.json, model.safetensors)\n", outer_step.value,
               command.output.string());
  }
  return ok_status();
}

Status eval_model(const EvalCommand& command) {
  ATOLL_ASSIGN_OR_RETURN(Dataset dataset, Dataset::open(command.data));
  if (dataset.sequences(Split::kValidation, command.sequence_length) == 0) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format(
            "the validation split of {} has no sequence of {} tokens; prepare more text, or ask for shorter ones",
            command.data.string(), command.sequence_length)};
  }
  ATOLL_RETURN_IF_ERROR(dataset.verify(Split::kValidation));
  const std::uint32_t vocab_size = dataset.manifest().vocab_size;
  ATOLL_ASSIGN_OR_RETURN(const auto engine, load_engine(command.source, command.threads));
  if (engine->config().vocab_size < vocab_size) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the dataset's vocabulary ({}) is larger than the model's ({})", vocab_size,
                             engine->config().vocab_size)};
  }
  if (engine->config().vocab_size > vocab_size + kMostVocabPadding) {
    fmt::print(
        stderr,
        "atoll-trainer: the model's vocabulary ({}) is not the dataset's ({}): unless both are of one tokenizer, "
        "this loss means nothing\n",
        engine->config().vocab_size, vocab_size);
  }
  DatasetBatches batches(
      std::move(dataset),
      {.sequences_per_step = 8, .sequence_length = command.sequence_length, .validation_sequences = command.sequences});
  double loss_sum = 0;
  std::int64_t tokens = 0;
  for (std::uint32_t i = 0; i < batches.validation_batches(); ++i) {
    ATOLL_ASSIGN_OR_RETURN(const TokenBatch batch, batches.validation_batch(i));
    ATOLL_ASSIGN_OR_RETURN(const double loss, engine->evaluate(batch));
    loss_sum += loss * static_cast<double>(batch.token_count());
    tokens += batch.token_count();
  }
  const double loss_nats = loss_sum / static_cast<double>(tokens);
  if (command.json) {
    print({{"loss_nats", loss_nats}, {"tokens", tokens}, {"perplexity", std::exp(loss_nats)}});
  } else {
    fmt::print("validation loss {:.4f} nats a token  (perplexity {:.3f}, {} tokens)\n", loss_nats, std::exp(loss_nats),
               tokens);
  }
  return ok_status();
}

Status sample_model(const SampleCommand& command) {
  ATOLL_ASSIGN_OR_RETURN(const auto engine, load_engine(command.source, command.threads));
  ATOLL_RETURN_IF_ERROR(require_byte_level(*engine));
  const auto window = static_cast<std::size_t>(engine->config().max_position_embeddings);
  // A text begins after an end of text: that is what the model saw before each document.
  std::vector<std::int32_t> tokens{kEndOfText};
  for (const char c : command.prompt) tokens.push_back(static_cast<unsigned char>(c));
  std::mt19937_64 random(command.seed);
  std::string continuation;
  if (!command.json) fmt::print("{}", command.prompt);
  for (int i = 0; i < command.tokens; ++i) {
    const auto context = std::span(tokens).last(std::min(tokens.size(), window));
    ATOLL_ASSIGN_OR_RETURN(const std::vector<float> logits, engine->next_token_logits(context));
    const std::int32_t token = draw(std::span(logits).first(kByteVocabSize), command, random);
    if (token == kEndOfText) break;
    tokens.push_back(token);
    continuation += static_cast<char>(token);
    if (!command.json) {
      fmt::print("{}", static_cast<char>(token));
      std::fflush(stdout);
    }
  }
  if (command.json) {
    // Bytes that are not UTF-8 (a character cut off at the end) are replaced.
    const nlohmann::json json{{"prompt", command.prompt}, {"continuation", continuation}};
    fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("\n");
  }
  return ok_status();
}

}  // namespace atl
