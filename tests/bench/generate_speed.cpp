// How fast texts are written: tokens a second with a cache of keys and values, one text and several at once, beside
// computing the whole text again for each token; fresh parameters, which compute as fast as any. Verifies that both say
// the same.
//
//   generate_speed [MODEL [PROMPT [TOKENS]]]    a preset (150m), tokens of the prompt (256) and after it (32)
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "net/base/deadline.h"
#include "net/base/file.h"
#include "net/model/initialise.h"
#include "trainer/engine/engine.h"
#include "trainer/engine/inference_engine.h"

namespace {

using namespace atl;
using Tokens = std::vector<std::int32_t>;

std::int32_t likeliest(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
}

double seconds_since(Clock::time_point began) { return Seconds(Clock::now() - began).count(); }

struct Shape {
  ModelConfig config;
  std::int64_t prompt, tokens;
  int threads;
};

Tokens prompt_of(const Shape& shape, std::int64_t text) {
  Tokens tokens;
  for (std::int64_t i = 0; i < shape.prompt; ++i) {
    tokens.push_back(static_cast<std::int32_t>((i * 7919 + text * 104729) % shape.config.vocab_size));
  }
  return tokens;
}

Tokens with_cache(const Shape& shape, std::span<const float> parameters, Precision precision, std::int64_t texts) {
  const InferenceOptions options{.precision = precision,
                                 .slots = texts,
                                 .capacity = shape.prompt + shape.tokens,
                                 .compute_threads = shape.threads};
  const auto engine = InferenceEngine::create(shape.config, options, [&](std::int64_t first, std::span<float> values) {
                        std::copy_n(parameters.begin() + first, values.size(), values.begin());
                      }).value();
  std::vector<Tokens> added;
  std::vector<SlotTokens> slots;
  for (std::int64_t text = 0; text < texts; ++text) added.push_back(prompt_of(shape, text));
  for (std::int64_t text = 0; text < texts; ++text) slots.push_back({text, added[static_cast<std::size_t>(text)], {}});
  const auto began = Clock::now();
  std::vector<float> logits = engine->logits(slots).value();
  const double prefill = seconds_since(began);
  Tokens written;
  const auto then = Clock::now();
  for (std::int64_t i = 0; i < shape.tokens; ++i) {
    for (std::size_t text = 0; text < added.size(); ++text) {
      const auto vocab = static_cast<std::size_t>(shape.config.vocab_size);
      added[text] = {likeliest(std::span(logits).subspan(text * vocab, vocab))};
      slots[text].tokens = added[text];
    }
    written.push_back(added[0][0]);
    logits = engine->logits(slots).value();
  }
  const double decode = seconds_since(then);
  fmt::print("{} with a cache, {:2} at once: prompt {:8.1f} tokens/s, then {:8.2f} tokens/s\n",
             precision_name(precision), texts, static_cast<double>(shape.prompt * texts) / prefill,
             static_cast<double>(shape.tokens * texts) / decode);
  return written;
}

Tokens again_and_again(const Shape& shape, std::span<const float> parameters) {
  EngineOptions options;
  options.seed.reset();
  options.compute_threads = shape.threads;
  const auto engine = Engine::create(shape.config, options).value();
  engine->write_parameters(parameters);
  Tokens tokens = prompt_of(shape, 0), written;
  const auto began = Clock::now();
  for (std::int64_t i = 0; i < shape.tokens; ++i) {
    written.push_back(likeliest(engine->next_token_logits(tokens).value()));
    tokens.push_back(written.back());
  }
  fmt::print("fp32 computed again for each token:               {:8.2f} tokens/s\n",
             static_cast<double>(shape.tokens) / seconds_since(began));
  return written;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string preset = argc > 1 ? argv[1] : "150m";
  const std::string file = std::string(ATOLL_MODEL_PRESETS_DIR "/") + preset + ".json";
  Shape shape{model_config_from_json(read_file(file).value()).value(), argc > 2 ? std::atoll(argv[2]) : 256,
              argc > 3 ? std::atoll(argv[3]) : 32, static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))};
  shape.config.max_position_embeddings = std::max(shape.config.max_position_embeddings, shape.prompt + shape.tokens);
  const std::vector<float> parameters = fresh_parameters(shape.config, 1);
  const Tokens expected = again_and_again(shape, parameters);
  const Tokens written = with_cache(shape, parameters, Precision::kFp32, 1);
  (void)with_cache(shape, parameters, Precision::kFp32, 8);
  (void)with_cache(shape, parameters, Precision::kBf16, 1);
  (void)with_cache(shape, parameters, Precision::kBf16, 8);
  if (written == expected) return 0;
  fmt::print(stderr, "the cache writes another text\n");
  return 1;
}
