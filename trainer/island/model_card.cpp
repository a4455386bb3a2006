#include "trainer/island/model_card.h"

#include <fmt/format.h>

#include "net/base/file.h"
#include "net/base/printable.h"
#include "net/data/run_dataset.h"

namespace atl {
namespace {

constexpr std::string_view kOurs = "<!-- Written by `atoll export`, which replaces it; without this line it stays. -->";
constexpr std::size_t kMaxCardBytes = 1u << 20;

// Text of others in a cell of a table, as Markdown shows it unchanged (CommonMark: a backslash before punctuation), and
// makes no link of it (GitHub's autolinks).
std::string cell(std::string_view text) {
  constexpr std::string_view kMeans = "\\`*_{}[]<>()#!|&~$@^=";
  const std::string plain = printable(text, 256);
  std::string safe;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const bool begins_link =
        std::string_view(plain).substr(i).starts_with("://") ||
        (plain[i] == '.' && i >= 3 && (plain[i - 1] | 0x20) == 'w' && (plain[i - 3] | 0x20) == 'w');
    if (kMeans.find(plain[i]) != std::string_view::npos || begins_link) safe += '\\';
    safe += plain[i];
  }
  return safe;
}

std::string row(std::string_view what, std::string_view value) { return fmt::format("| {} | {} |\n", what, value); }

std::string architecture(const ModelConfig& model, std::int64_t parameters) {
  std::string text = "## Model\n\n| | |\n| --- | --- |\n";
  text += row("architecture", "Llama (LlamaForCausalLM)");
  text += row("parameters", fmt::format("{}", parameters));
  text += row("layers", fmt::format("{}", model.num_hidden_layers));
  text += row("hidden size", fmt::format("{}", model.hidden_size));
  text += row("feed-forward size", fmt::format("{}", model.intermediate_size));
  text += row("attention heads",
              fmt::format("{}, {} of keys and values", model.num_attention_heads, model.num_key_value_heads));
  text += row("vocabulary", fmt::format("{}", model.vocab_size));
  text += row("context", fmt::format("{} tokens", model.max_position_embeddings));
  text += row("embeddings", model.tie_word_embeddings ? "tied" : "untied");
  return text;
}

std::string recipe(const RunConfig& run) {
  const InnerOptimizerConfig& inner = run.inner;
  std::string text = "\n## Training\n\n| | |\n| --- | --- |\n";
  text += row("algorithm", run.fragments == 1
                               ? std::string("DiLoCo (arXiv:2311.08105)")
                               : fmt::format("Streaming DiLoCo (arXiv:2501.18512), {} fragments", run.fragments));
  text += row("inner optimiser", fmt::format("AdamW, beta {} and {}, weight decay {}, gradients clipped at norm {}",
                                             inner.beta1, inner.beta2, inner.weight_decay, inner.clip_grad_norm));
  text +=
      row("inner learning rate", fmt::format("{} after {} steps of warm-up", inner.learning_rate, inner.warmup_steps));
  if (inner.decay_steps > 0) {
    text += row("its decay", fmt::format("to {} from step {} to step {}, unless its organiser decided another",
                                         inner.final_learning_rate, inner.decay_start_step,
                                         inner.decay_start_step + inner.decay_steps));
  }
  text += row("outer optimiser", fmt::format("SGD with Nesterov momentum {}, learning rate {}", run.outer_momentum,
                                             run.outer_learning_rate));
  text += row("inner steps a round (H)", fmt::format("{}", run.inner_steps));
  text += row("batch", fmt::format("{} sequences of {} tokens, an inner step and island", run.sequences_per_step,
                                   run.sequence_length));
  if (run.attention == AttentionScope::kDocument) {
    text += row("attention", "kept within a document, whose positions begin at 0");
  }
  text += row("islands", fmt::format("from {} to {}, which may come and go", run.min_islands, run.max_islands));
  text += row("gradients on the wire", wire_format_name(run.wire));
  if (!run.initial_state.empty()) text += row("begins with", cell(run.beginning()));
  return text;
}

std::string license_of(const std::string& license) { return license.empty() ? "unknown" : cell(license); }

std::string source_rows(const RunDataFacts& facts) {
  if (facts.sources.empty()) return row("licence", license_of(facts.license));
  double all = 0;
  for (const RunSource& source : facts.sources) all += source.weight;
  std::string text =
      "\n| source | share, unless its organiser decided another | tokens | licence |\n| --- | --- | --- | --- |\n";
  for (const RunSource& source : facts.sources) {
    text += fmt::format("| {} | {:.4g} % | {} | {} |\n", cell(source.name), 100.0 * source.weight / all,
                        source.train.tokens, license_of(source.license));
  }
  return text;
}

std::string data(const RunConfig& run) {
  const auto facts = facts_of_run_data(run.dataset_json);
  if (!facts.ok()) return {};
  std::string text = "\n## Data\n\n| | |\n| --- | --- |\n";
  text += row("training split", fmt::format("{} tokens", facts->train_tokens));
  text += row("validation split", fmt::format("{} tokens", facts->validation_tokens));
  text += row("tokenizer", cell(facts->tokenizer));
  return text + source_rows(*facts);
}

// What the hub says of the run at the time of the export, which may be further than the model.
std::string contributors(const std::vector<Contributor>& all) {
  std::uint64_t tokens = 0;
  for (const Contributor& one : all) tokens += one.tokens;
  std::string text = fmt::format(
      "\n## Contributors\n\nWhen it was exported, the run had been trained on {} tokens, by:\n\n"
      "| island | tokens | rounds |\n| --- | --- | --- |\n",
      tokens);
  for (const Contributor& one : all) {
    const std::string unnamed =
        one.islands == 1 ? "one that is not named" : fmt::format("{} that are not named", one.islands);
    text += fmt::format("| {} | {} | {} |\n", one.name.empty() ? unnamed : cell(one.name), one.tokens, one.rounds);
  }
  return text;
}

}  // namespace

std::string model_card(const ModelCard& card, const ModelConfig& model, std::int64_t parameters) {
  std::string text =
      "---\nlibrary_name: transformers\npipeline_tag: text-generation\ntags:\n- llama\n- diloco\n- atoll\n---\n\n";
  text += fmt::format("{}\n\n# {}\n\n", kOurs, cell(card.run_name.empty() ? card.run_id : card.run_name));
  text += fmt::format("Trained by the islands of the Atoll run {} ({}); the outer parameters after round {}.\n\n",
                      cell(card.run_name), cell(card.run_id), card.outer_step.value);
  text += architecture(model, parameters);
  if (card.run) text += recipe(*card.run) + data(*card.run);
  if (!card.contributors.empty()) text += contributors(card.contributors);
  return text;
}

bool may_replace_card(const std::filesystem::path& path) {
  const auto text = read_file(path, kMaxCardBytes);
  if (!text.ok()) return text.error().code == ErrorCode::kNotFound;
  return text->find(kOurs) != std::string::npos;
}

}  // namespace atl
