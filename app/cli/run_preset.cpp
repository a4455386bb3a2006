#include "app/cli/run_preset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/cli/resources.h"
#include "net/base/file.h"
#include "net/base/json_reader.h"
#include "net/model/config.h"
#include "net/wire/ring_frame.h"

namespace atl {
namespace {

constexpr std::size_t kMaxPresetBytes = 64 * 1024;
constexpr int kMaxPresetDepth = 8;

std::optional<std::string_view> find(const std::vector<Resource>& resources, std::string_view name) {
  for (const Resource& resource : resources) {
    if (resource.name == name) return resource.content;
  }
  return std::nullopt;
}

Result<std::string> named_or_file(const std::vector<Resource>& resources, const std::string& name,
                                  std::string_view what) {
  if (const auto content = find(resources, name)) return std::string(*content);
  auto content = read_file(name, kMaxPresetBytes);
  if (content.ok() || content.error().code != ErrorCode::kNotFound) return content;
  std::vector<std::string_view> names;
  names.reserve(resources.size());
  for (const Resource& resource : resources) names.push_back(resource.name);
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("there is no {} '{}': neither a file nor one of {}", what, name, fmt::join(names, ", "))};
}

template <class T>
void set(nlohmann::json& run, const char* key, const std::optional<T>& value) {
  if (value) run[key] = *value;
}

void apply(const RunOverrides& overrides, nlohmann::json& run) {
  set(run, "wire", overrides.wire);
  set(run, "seed", overrides.seed);
  set(run, "inner_steps", overrides.inner_steps);
  set(run, "min_islands", overrides.min_islands);
  set(run, "max_rounds", overrides.max_rounds);
  set(run, "sequences_per_step", overrides.sequences_per_step);
  set(run, "sequence_length", overrides.sequence_length);
  set(run, "attention", overrides.attention);
  set(run, "validate_every", overrides.validate_every);
  set(run, "quorum", overrides.quorum);
  set(run, "when_lost", overrides.when_lost);
  set(run, "keep_states", overrides.keep_states);
  set(run, "safe_copies", overrides.safe_copies);
  set(run, "upload_every", overrides.upload_every);
  set(run, "upload_store", overrides.upload_store);
  set(run, "fragments", overrides.fragments);
  if (!overrides.train_only.empty()) run["train_only"] = overrides.train_only;
  set(run, "norm_bound", overrides.norm_bound);
  set(run, "validation_rise", overrides.validation_rise);
  set(run["inner"], "warmup_steps", overrides.warmup_steps);
  set(run["inner"], "learning_rate", overrides.learning_rate);
  set(run["inner"], "decay_steps", overrides.decay_steps);
  set(run["inner"], "decay_shape", overrides.decay_shape);
  set(run["inner"], "decay_start_step", overrides.decay_start_step);
  set(run["inner"], "final_learning_rate", overrides.final_learning_rate);
  set(run, "outer_learning_rate", overrides.outer_learning_rate);
  set(run, "outer_momentum", overrides.outer_momentum);
  // The preset's connections are for an edge; fragments share them.
  if (overrides.fragments && *overrides.fragments > 0 && run["connections_per_edge"].is_number_unsigned()) {
    const auto most = static_cast<std::uint32_t>(most_connections_per_edge(static_cast<int>(*overrides.fragments)));
    run["connections_per_edge"] = std::min(run["connections_per_edge"].get<std::uint32_t>(), most);
  }
  // A peak below the preset's end would make the rate rise when it should fall.
  auto& inner = run["inner"];
  if (overrides.learning_rate && !overrides.final_learning_rate &&
      inner["final_learning_rate"] > inner["learning_rate"]) {
    inner["final_learning_rate"] = inner["learning_rate"];
  }
}

std::uint64_t whole(const nlohmann::json& value) {
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;  // what is none is refused with the run
}

// Where the decay begins when only its length was said, and whether what was said of it does anything.
Status settle_decay(const RunOverrides& overrides, nlohmann::json& run) {
  const auto wrong = [](std::string why) { return Error{ErrorCode::kInvalidArgument, std::move(why)}; };
  nlohmann::json& inner = run["inner"];
  const std::uint64_t decay_steps = whole(inner["decay_steps"]);
  if (overrides.final_learning_rate && decay_steps == 0) {
    return wrong(
        "--final-lr is where a decay ends, and this run has none; say how many steps it takes: --decay-steps N");
  }
  if (!overrides.decay_steps || overrides.decay_start_step) return ok_status();
  inner["decay_start_step"] = 0;  // the preset's fitted its own length
  if (decay_steps == 0) return ok_status();
  const std::uint64_t rounds = whole(run["max_rounds"]), steps = rounds * whole(run["inner_steps"]);
  if (rounds == 0) {
    return wrong(
        "when does the learning rate begin to fall? Say at which step, --decay-start N, or how many rounds the run "
        "has, --rounds N, with which the decay then ends");
  }
  if (decay_steps > steps) {
    return wrong(
        fmt::format("--decay-steps {} is more than the run has, {} in {} rounds; choose fewer, or more --rounds",
                    decay_steps, steps, rounds));
  }
  inner["decay_start_step"] = steps - decay_steps;
  return ok_status();
}

// Rounded up, because processors compute products of odd sizes slowly.
constexpr std::int64_t kVocabularyMultiple = 128;

Result<std::string> with_tokens(const std::string& model, const DataTokens& tokens) {
  if (tokens.vocab_size == 0) return model;
  ATOLL_ASSIGN_OR_RETURN(ModelConfig config, model_config_from_json(model));
  if (config.vocab_size < tokens.vocab_size) {
    config.vocab_size = (tokens.vocab_size + kVocabularyMultiple - 1) / kVocabularyMultiple * kVocabularyMultiple;
  }
  if (tokens.begin_of_text) config.bos_token_ids = {*tokens.begin_of_text};
  if (tokens.end_of_text) config.eos_token_ids = {*tokens.end_of_text};
  return to_json(config);
}

}  // namespace

std::vector<std::string_view> preset_names() {
  const auto& presets = run_presets();
  std::vector<std::string_view> names;
  names.reserve(presets.size());
  for (const Resource& resource : presets) names.push_back(resource.name);
  return names;
}

DataTokens tokens_of(const DatasetManifest& manifest) {
  if (!manifest.tokenizer_file) return {};  // bytes, which every preset has room for
  return {manifest.vocab_size, manifest.begin_of_text, manifest.end_of_text};
}

Result<RunConfig> make_run(const std::string& preset, const std::string& run_name, const RunOverrides& overrides,
                           const DataTokens& tokens) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, named_or_file(run_presets(), preset, "run preset"));
  const auto unformed = [&](const Error& why) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("preset '{}' is not a JSON object {{\"model\": NAME, \"run\": {{...}}}}: {}", preset, why.message)};
  };
  const auto parsed = parse_bounded_json(text, kMaxPresetBytes, kMaxPresetDepth);
  if (!parsed.ok()) return unformed(parsed.error());
  JsonReader reader(*parsed);
  std::string model_name;
  reader.bounded("model", model_name, kMaxPresetBytes);
  const nlohmann::json* overridden = reader.find("run");
  if (overridden != nullptr && !overridden->is_object()) reader.fail_field("run", "is no JSON object");
  if (!reader.status().ok()) return unformed(reader.status().error());
  if (overrides.model) model_name = *overrides.model;
  ATOLL_ASSIGN_OR_RETURN(std::string model, named_or_file(model_presets(), model_name, "model"));
  if (find(model_presets(), model_name)) {
    ATOLL_ASSIGN_OR_RETURN(model, with_tokens(model, tokens));
  }
  nlohmann::json run = RunConfig{}.to_json();
  run.merge_patch(*overridden);
  apply(overrides, run);
  run["name"] = run_name;
  run["model_json"] = model;
  run["run_id"] = "0000000000000000";
  run["dataset_json"] = "{}";
  ATOLL_RETURN_IF_ERROR(settle_decay(overrides, run));
  auto config = RunConfig::from_json(run.dump());
  if (!config.ok()) return Error{ErrorCode::kInvalidArgument, config.error().message};
  config->run_id.clear();
  config->dataset_json.clear();
  return config;
}

Result<RunConfig> change_run(const RunConfig& run, const RunOverrides& changes) {
  nlohmann::json json = run.to_json();
  apply(changes, json);
  ATOLL_RETURN_IF_ERROR(settle_decay(changes, json));
  auto changed = RunConfig::from_json(json.dump());
  if (!changed.ok()) return Error{ErrorCode::kInvalidArgument, changed.error().message};
  return changed;
}

}  // namespace atl
