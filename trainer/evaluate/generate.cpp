#include "trainer/evaluate/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "trainer/evaluate/text_stream.h"

namespace atl {
namespace {

using Tokens = std::vector<std::int32_t>;

// A text that is being written.
struct Written {
  std::size_t prompt = 0;
  Tokens tokens;         // all that its slot holds or is to be given
  std::size_t held = 0;  // of these the slot holds
  std::int64_t added = 0;
  Sampler sampler;
  TextStream stream;
};

// What does not fit makes room: the later half stays.
void fit(Written& text, std::int64_t capacity) {
  const auto most = static_cast<std::size_t>(capacity);
  if (text.tokens.size() <= most) return;
  const std::size_t kept = text.held == 0 ? most : std::max<std::size_t>(most / 2, 1);
  text.tokens.erase(text.tokens.begin(), text.tokens.end() - static_cast<std::ptrdiff_t>(kept));
  text.held = 0;
}

std::optional<TextEnd> add_token(Written& text, std::int32_t token, const ModelText& model,
                                 const GenerateOptions& options, const GenerateEvents& events) {
  if (model.ends_text(token)) return TextEnd::kEndToken;
  ++text.added;
  text.tokens.push_back(token);
  const std::string shown = text.stream.add(model.decode(token));
  if (!shown.empty() && events.on_text) events.on_text(text.prompt, shown);
  if (text.stream.stopped()) return TextEnd::kStop;
  if (text.added == options.tokens) return TextEnd::kLength;
  return std::nullopt;
}

void end(Written& text, TextEnd how, const GenerateEvents& events) {
  const std::string rest = text.stream.finish();
  if (!rest.empty() && events.on_text) events.on_text(text.prompt, rest);
  if (events.on_end) events.on_end(text.prompt, {text.stream.text(), how, text.added});
}

}  // namespace

std::int64_t needed_capacity(std::span<const std::vector<std::int32_t>> prompts, std::int64_t tokens,
                             std::int64_t max_position_embeddings) {
  std::int64_t longest = 1;
  for (const Tokens& prompt : prompts) longest = std::max(longest, std::ssize(prompt));
  return std::min(max_position_embeddings, longest + tokens);
}

Status generate(InferenceEngine& engine, const ModelText& model, std::span<const std::vector<std::int32_t>> prompts,
                const GenerateOptions& options, const GenerateEvents& events) {
  std::vector<std::optional<Written>> slots(static_cast<std::size_t>(engine.options().slots));
  const auto vocab = static_cast<std::size_t>(engine.config().vocab_size);
  const auto drawn_from = std::min(vocab, static_cast<std::size_t>(model.vocab_size()));
  std::size_t next = 0;
  while (true) {
    std::vector<SlotTokens> texts;
    for (std::size_t s = 0; s < slots.size(); ++s) {
      if (!slots[s] && next < prompts.size()) {
        slots[s].emplace(
            Written{next, prompts[next], 0, 0, Sampler(options.sampling, next), TextStream(options.stops)});
        ++next;
      }
      if (!slots[s]) continue;
      Written& text = *slots[s];
      fit(text, engine.options().capacity);
      const auto slot = static_cast<std::int64_t>(s);
      engine.keep(slot, static_cast<std::int64_t>(text.held));
      texts.push_back({slot, std::span(text.tokens).subspan(text.held), {}});
    }
    if (texts.empty()) return ok_status();
    ATOLL_ASSIGN_OR_RETURN(const std::vector<float> logits, engine.logits(texts));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      std::optional<Written>& slot = slots[static_cast<std::size_t>(texts[i].slot)];
      slot->held = slot->tokens.size();
      const auto said = std::span(logits).subspan(i * vocab, drawn_from);
      if (!std::ranges::all_of(said, [](float logit) { return std::isfinite(logit); })) {
        return Error{
            ErrorCode::kNonFinite,
            fmt::format("what the model says after {} tokens of text {} is not finite: its weights are damaged, "
                        "or too large for this precision",
                        slot->tokens.size(), slot->prompt + 1)};
      }
      const std::int32_t token = slot->sampler.draw(said);
      const auto how = add_token(*slot, token, model, options, events);
      if (!how) continue;
      end(*slot, *how, events);
      slot.reset();
    }
  }
}

}  // namespace atl
