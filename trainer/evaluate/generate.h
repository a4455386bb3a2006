// A model continues texts, several at once: each as if it were alone, up to rounding. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"
#include "trainer/engine/inference_engine.h"
#include "trainer/evaluate/model_text.h"
#include "trainer/evaluate/sampler.h"

namespace atl {

// Why a text ended.
enum class TextEnd : std::uint8_t { kLength, kEndToken, kStop };
constexpr std::string_view text_end_name(TextEnd end) {
  return end == TextEnd::kLength ? "length" : end == TextEnd::kEndToken ? "end_of_text" : "stop";
}

struct GenerateOptions {
  std::int64_t tokens = 200;  // at most so many are added
  Sampling sampling;
  std::vector<std::string> stops;  // a text ends before the first of them
};

struct Completion {
  std::string text;  // without the prompt
  TextEnd end = TextEnd::kLength;
  std::int64_t tokens = 0;
};

// The tokens of a slot that all prompts need, bounded by what the model takes. A text that grows beyond its slot goes
// on with the later half of what the slot holds, read anew as if nothing had been before it; of a longer prompt the end
// counts.
std::int64_t needed_capacity(std::span<const std::vector<std::int32_t>> prompts, std::int64_t tokens,
                             std::int64_t max_position_embeddings);

// `prompts`: tokens, at least one each. As many are written at once as the engine has slots; who ends makes room for
// the next. on_text(prompt, text): in whole characters, as it is written; on_end(prompt, completion). kNonFinite: what
// the model says is no number.
struct GenerateEvents {
  std::function<void(std::size_t prompt, std::string_view text)> on_text;
  std::function<void(std::size_t prompt, const Completion& completion)> on_end;
};
Status generate(InferenceEngine& engine, const ModelText& text, std::span<const std::vector<std::int32_t>> prompts,
                const GenerateOptions& options, const GenerateEvents& events);

}  // namespace atl
