#include "net/wire/run_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "net/base/sha256.h"
#include "net/model/train_only.h"
#include "net/wire/decay_fields.h"
#include "net/wire/json_archive.h"
#include "net/wire/ring_frame.h"
#include "net/wire/wire_format_field.h"

namespace atl {
namespace {

constexpr std::size_t kMaxRunBytes = 900u << 10;  // leaves the welcome room within one mesh message
constexpr std::size_t kMaxModelJson = 64u << 10;
constexpr std::size_t kMaxDatasetJson = 512u << 10;
constexpr std::size_t kMaxCheckJson = 16u << 10;
constexpr std::size_t kMaxStoreUrl = 1024;
constexpr std::string_view kStoreScheme = "s3://";
constexpr std::uint64_t kMaxSteps = std::uint64_t{1} << 53;  // of a run: whole numbers that JSON's readers agree on
constexpr int kMaxPartDepth = 16;                            // of those three
constexpr std::uint32_t kMaxMilliseconds = 24 * 60 * 60 * 1000;

// What runs of before do not say: as it is by default.
template <class Archive, class Read>
void if_said(Archive& archive, const char* name, Read read) {
  if constexpr (Archive::kReads) {
    if (!archive.has(name)) return;
  }
  read();
}

template <class Archive>
void fields(Archive& archive, InnerOptimizerConfig& c) {
  archive.field("learning_rate", c.learning_rate);
  archive.field("final_learning_rate", c.final_learning_rate);
  archive.field("warmup_steps", c.warmup_steps);
  archive.field("decay_start_step", c.decay_start_step);
  archive.field("decay_steps", c.decay_steps);
  if_said(archive, "decay_shape", [&] { decay_shape(archive, "decay_shape", c.decay_shape); });
  archive.field("beta1", c.beta1);
  archive.field("beta2", c.beta2);
  archive.field("epsilon", c.epsilon);
  archive.field("weight_decay", c.weight_decay);
  archive.field("clip_grad_norm", c.clip_grad_norm);
  archive.field("max_z_loss", c.max_z_loss);
}

template <class Archive>
void milliseconds(Archive& archive, const char* name, std::chrono::milliseconds& value) {
  std::uint32_t count = static_cast<std::uint32_t>(value.count());
  archive.field(name, count);
  value = std::chrono::milliseconds(count);
}

constexpr std::array<const char*, 2> kWhenLostNames = {"ask", "rollback"};

template <class Archive>
void when_lost(Archive& archive, const char* name, WhenLost& value) {
  if constexpr (Archive::kReads) {
    std::string word;
    archive.bounded(name, word, 16);
    const auto found = std::ranges::find(kWhenLostNames, word);
    if (found == kWhenLostNames.end()) return archive.fail("field 'when_lost' is neither 'ask' nor 'rollback'");
    value = static_cast<WhenLost>(found - kWhenLostNames.begin());
  } else {
    archive.object[name] = kWhenLostNames[static_cast<std::size_t>(value)];
  }
}

// How the run meets loss and lies.
template <class Archive>
void safety_fields(Archive& archive, RunConfig& c) {
  if_said(archive, "quorum", [&] { archive.field("quorum", c.quorum); });
  if_said(archive, "norm_bound", [&] { archive.field("norm_bound", c.norm_bound); });
  if_said(archive, "validation_rise", [&] { archive.field("validation_rise", c.validation_rise); });
  if_said(archive, "safe_copies", [&] { archive.field("safe_copies", c.safe_copies); });
  if_said(archive, "keep_states", [&] { archive.field("keep_states", c.keep_states); });
  if_said(archive, "when_lost", [&] { when_lost(archive, "when_lost", c.when_lost); });
  if_said(archive, "lost_after_ms", [&] { milliseconds(archive, "lost_after_ms", c.lost_after); });
}

// Where outer states come from and go to, beside the islands.
template <class Archive>
void store_fields(Archive& archive, RunConfig& c) {
  if_said(archive, "upload_store", [&] { archive.bounded("upload_store", c.upload_store, kMaxStoreUrl); });
  if_said(archive, "upload_every", [&] { archive.field("upload_every", c.upload_every); });
  if_said(archive, "initial_state", [&] { archive.bounded("initial_state", c.initial_state, kMaxStoreUrl); });
  if_said(archive, "initial_state_sha256",
          [&] { archive.bounded("initial_state_sha256", c.initial_state_sha256, 2 * sizeof(Digest)); });
}

// Written only where it says something, as `check`: islands of before do not know it.
constexpr const char* kAttention = "attention";
template <class Archive>
void attention_scope(Archive& archive, AttentionScope& scope) {
  if constexpr (Archive::kReads) {
    if (!archive.has(kAttention)) return;
    std::string word;
    archive.bounded(kAttention, word, 16);
    const auto found = attention_scope_named(word);
    if (!found) return archive.fail("field 'attention' is neither 'packed' nor 'document'");
    scope = *found;
  } else if (scope != AttentionScope::kPacked) {
    archive.object[kAttention] = attention_scope_name(scope);
  }
}

constexpr const char* kEvaluation = "evaluation";

template <class Archive>
void fields(Archive& archive, EvaluationTask& task) {
  archive.bounded("name", task.name, kMaxPersonName);
  std::string kind(task_kind_name(task.kind));
  archive.bounded("kind", kind, kMaxPersonName);
  if constexpr (Archive::kReads) {
    const auto found = task_kind_named(kind);
    if (!found) return archive.fail("field 'kind' names no kind of task");
    task.kind = *found;
  }
  archive.field("documents", task.documents);
  archive.field("bytes", task.bytes);
  archive.hash("sha256", task.sha256);
}

void read_evaluation(JsonReader& reader, RunEvaluation& evaluation) {
  const nlohmann::json* found = reader.find(kEvaluation);
  if (found == nullptr) return;
  JsonReader part(*found, reader.path_of(kEvaluation));
  part.field("every", evaluation.every);
  if (const nlohmann::json* tasks = part.entries("tasks", kMaxEvaluationTasks)) {
    for (std::size_t i = 0; i < tasks->size(); ++i) {
      JsonReader one((*tasks)[i], part.element_path("tasks", i));
      fields(one, evaluation.tasks.emplace_back());
      if (!one.status().ok()) return reader.fail(one.status().error());
    }
  }
  if (!part.status().ok()) reader.fail(part.status().error());
}

template <class Archive>
void evaluation_of_states(Archive& archive, RunEvaluation& evaluation) {
  if constexpr (Archive::kReads) {
    if (archive.has(kEvaluation)) read_evaluation(archive, evaluation);
  } else if (evaluation.every > 0) {
    nlohmann::json tasks = nlohmann::json::array();
    for (EvaluationTask& task : evaluation.tasks) {
      JsonWriter writer;
      fields(writer, task);
      tasks.push_back(std::move(writer.object));
    }
    archive.object[kEvaluation] = {{"every", evaluation.every}, {"tasks", std::move(tasks)}};
  }
}

constexpr const char* kTrainOnly = "train_only";

void read_train_only(JsonReader& reader, std::vector<std::string>& patterns) {
  const nlohmann::json* entries = reader.entries(kTrainOnly, kMostTrainPatterns);
  if (entries == nullptr) return;
  for (const nlohmann::json& entry : *entries) {
    if (!entry.is_string()) return reader.fail_field(kTrainOnly, "is no list of patterns");
    patterns.push_back(entry.get<std::string>());
  }
  if (patterns.empty()) reader.fail_field(kTrainOnly, "names nothing; where everything is trained it is left out");
}

template <class Archive>
void trained_part(Archive& archive, std::vector<std::string>& patterns) {
  if constexpr (Archive::kReads) {
    if (archive.has(kTrainOnly)) read_train_only(archive, patterns);
  } else if (!patterns.empty()) {
    archive.object[kTrainOnly] = patterns;
  }
}

template <class Archive>
void fields(Archive& archive, RunConfig& c) {
  archive.bounded("run_id", c.run_id, 16);
  archive.text("name", c.name);
  archive.bounded("model_json", c.model_json, kMaxModelJson);
  archive.bounded("dataset_json", c.dataset_json, kMaxDatasetJson);
  archive.field("seed", c.seed);
  archive.field("inner_steps", c.inner_steps);
  archive.field("sequences_per_step", c.sequences_per_step);
  archive.field("sequence_length", c.sequence_length);
  attention_scope(archive, c.attention);
  trained_part(archive, c.train_only);
  archive.field("max_rounds", c.max_rounds);
  if_said(archive, "fragments", [&] { archive.field("fragments", c.fragments); });
  archive.field("outer_learning_rate", c.outer_learning_rate);
  archive.field("outer_momentum", c.outer_momentum);
  wire_format(archive, c.wire);
  archive.field("connections_per_edge", c.connections_per_edge);
  archive.field("min_islands", c.min_islands);
  archive.field("max_islands", c.max_islands);
  archive.field("validate_every", c.validate_every);
  archive.field("validation_sequences", c.validation_sequences);
  evaluation_of_states(archive, c.evaluation);
  milliseconds(archive, "heartbeat_ms", c.heartbeat);
  milliseconds(archive, "dead_after_ms", c.dead_after);
  milliseconds(archive, "straggler_grace_ms", c.straggler_grace);
  safety_fields(archive, c);
  store_fields(archive, c);
}

class Checks {
 public:
  template <class T>
  Checks& range(const char* name, T value, T low, T high) {
    if (!(value >= low && value <= high)) fail(fmt::format("{} = {} is not between {} and {}", name, value, low, high));
    return *this;
  }
  Checks& that(bool good, std::string_view message) {
    if (!good) fail(std::string(message));
    return *this;
  }
  Status status() const { return status_; }

 private:
  void fail(std::string message) {
    if (status_.ok()) status_ = Error{ErrorCode::kInvalidArgument, "run configuration: " + std::move(message)};
  }
  Status status_;
};

void check_inner(Checks& checks, const InnerOptimizerConfig& inner) {
  checks.range("inner.learning_rate", inner.learning_rate, 0.0, 10.0)
      .range("inner.final_learning_rate", inner.final_learning_rate, 0.0, 10.0)
      .range<std::uint64_t>("inner.warmup_steps", inner.warmup_steps, 0, kMaxSteps)
      .range<std::uint64_t>("inner.decay_start_step", inner.decay_start_step, 0, kMaxSteps)
      .range<std::uint64_t>("inner.decay_steps", inner.decay_steps, 0, kMaxSteps)
      .range("inner.beta1", inner.beta1, 0.0, 0.999999)
      .range("inner.beta2", inner.beta2, 0.0, 0.999999)
      .range("inner.epsilon", inner.epsilon, 1e-20, 1.0)
      .range("inner.weight_decay", inner.weight_decay, 0.0, 10.0)
      .range("inner.clip_grad_norm", inner.clip_grad_norm, 0.0, 1e6)
      .range("inner.max_z_loss", inner.max_z_loss, 0.0, 1.0);
  checks.that(inner.decay_steps > 0 || inner.decay_start_step == 0,
              fmt::format("the learning rate's decay has a first step ({}) and no length; say how many steps it takes "
                          "(inner.decay_steps; --decay-steps)",
                          inner.decay_start_step));
  if (inner.decay_steps == 0) return;
  checks.that(
      inner.warmup_steps <= inner.decay_start_step,
      fmt::format("the learning rate's decay begins at step {}, within the {} steps of the warm-up; let it begin "
                  "later (inner.decay_start_step; --decay-start), or warm up for fewer steps (--warmup-steps)",
                  inner.decay_start_step, inner.warmup_steps));
  checks.that(
      inner.final_learning_rate <= inner.learning_rate,
      fmt::format("the learning rate would decay from {} up to {}; choose a final rate (inner.final_learning_rate; "
                  "--final-lr) that is no more than the peak (--lr)",
                  inner.learning_rate, inner.final_learning_rate));
}

void check_evaluation(Checks& checks, const RunEvaluation& evaluation) {
  checks.that(evaluation.tasks.empty() == (evaluation.every == 0),
              "evaluation has tasks without a number of rounds, or rounds without tasks");
  checks.that(evaluation.tasks.size() <= kMaxEvaluationTasks, "evaluation has more than 16 tasks");
  std::set<std::string_view> names;
  std::uint64_t bytes = 0;
  for (const EvaluationTask& task : evaluation.tasks) {
    checks.that(is_task_name(task.name), "evaluation has a task whose name is not of 1 to 64 of A-Z a-z 0-9 . _ -");
    checks.that(names.insert(task.name).second, "evaluation has two tasks of one name");
    checks.that(is_sha256_hex(task.sha256), "evaluation has a task without the SHA-256 of its file");
    checks.that(task.documents > 0 && task.bytes > 0, "evaluation has a task that asks nothing");
    bytes += std::min(task.bytes, kMaxEvaluationBytes + 1);
  }
  checks.that(bytes <= kMaxEvaluationBytes, "evaluation has task files of more than 64 MiB together");
}

bool is_json_object(const std::string& text) {
  const auto parsed = parse_bounded_json(text, kMaxDatasetJson, kMaxPartDepth);
  return parsed.ok() && parsed->is_object();
}

}  // namespace

Status RunConfig::validate() const {
  Checks checks;
  checks.that(run_id.size() == 16 && run_id.find_first_not_of("0123456789abcdef") == std::string::npos,
              "run_id is not 16 hex digits");
  checks.that(name.size() <= kMaxPersonText, "name is longer than 512 bytes");
  checks.that(model_json.size() <= kMaxModelJson && is_json_object(model_json),
              "model_json is no JSON object of at most 64 KiB");
  checks.that(dataset_json.size() <= kMaxDatasetJson && is_json_object(dataset_json),
              "dataset_json is no JSON object of at most 512 KiB");
  checks.that(check_json.empty() || (check_json.size() <= kMaxCheckJson && is_json_object(check_json)),
              "check is no JSON object of at most 16 KiB");
  const auto most_connections =
      static_cast<std::uint32_t>(most_connections_per_edge(static_cast<int>(std::clamp(fragments, 1u, kMaxFragments))));
  checks.range("inner_steps", inner_steps, 1u, 1'000'000u)
      .range("sequences_per_step", sequences_per_step, 1u, 1u << 20)
      .range("sequence_length", sequence_length, 1u, 1u << 20)
      .range("fragments", fragments, 1u, kMaxFragments)
      .range("outer_learning_rate", outer_learning_rate, 0.0, 10.0)
      .range("outer_momentum", outer_momentum, 0.0, 0.999999)
      .range("connections_per_edge", connections_per_edge, 0u, most_connections)
      .range("max_islands", max_islands, 1u, 1024u)
      .range("min_islands", min_islands, 1u, max_islands)
      .range("validation_sequences", validation_sequences, 1u, 1u << 20)
      .range("quorum", quorum, 1u, max_islands)
      .range("validation_rise", validation_rise, 0.0, 1e6)
      .range("safe_copies", safe_copies, 1u, 1024u)
      .range("keep_states", keep_states, 1u, 8u)
      .range<long>("lost_after_ms", lost_after.count(), 10, kMaxMilliseconds)
      .that(norm_bound == 0 || (norm_bound >= 1.5 && norm_bound <= 1e6),
            "norm_bound is neither 0 (off) nor from 1.5 to 1000000");
  checks.that(traits_of(wire).for_runs, not_for_runs(wire));
  checks.that(sums_hop_by_hop(wire) || max_islands <= kMaxDirectIslands,
              fmt::format("wire {} is sent straight to each chunk's owner, for which max_islands is at most {}",
                          wire_format_name(wire), kMaxDirectIslands));
  checks.that(upload_store.empty() ? upload_every == 0 : upload_store.starts_with(kStoreScheme) && upload_every > 0,
              "upload_store is no s3://BUCKET/PREFIX with upload_every of 1 or more, nor is there neither");
  const bool begins_somewhere = begins_at_hub() || initial_state.starts_with(kStoreScheme);
  checks.that(
      initial_state.empty() ? initial_state_sha256.empty() : begins_somewhere && is_sha256_hex(initial_state_sha256),
      "initial_state is neither s3://BUCKET/PREFIX/outer-STEP with the SHA-256 of its manifest nor hub:NAME with "
      "the tree hash of outer step 0, nor is there neither");
  checks.that(initial_state.size() <= kMaxStoreUrl && is_printable(initial_state),
              "initial_state is no printable name");
  const auto is_pattern = [](const std::string& pattern) {
    return !pattern.empty() && pattern.size() <= kMostTrainPatternBytes && is_printable(pattern);
  };
  checks.that(train_only.size() <= kMostTrainPatterns && std::ranges::all_of(train_only, is_pattern),
              "train_only is no list of at most 2048 patterns of at most 64 bytes");
  check_evaluation(checks, evaluation);
  check_inner(checks, inner);
  checks.range<long>("heartbeat_ms", heartbeat.count(), 10, kMaxMilliseconds)
      .range<long>("dead_after_ms", dead_after.count(), 10, kMaxMilliseconds)
      .range<long>("straggler_grace_ms", straggler_grace.count(), 0, kMaxMilliseconds)
      .that(dead_after >= 2 * heartbeat,
            "dead_after is less than two heartbeats: one late message would kill an island");
  return checks.status();
}

nlohmann::json RunConfig::to_json() const {
  JsonWriter writer;
  fields(writer, const_cast<RunConfig&>(*this));
  JsonWriter inner_writer;
  fields(inner_writer, const_cast<InnerOptimizerConfig&>(inner));
  writer.object["inner"] = std::move(inner_writer.object);
  // Written only where it says something: islands of before do not know it.
  if (!check_json.empty()) {
    auto check = parse_bounded_json(check_json, kMaxCheckJson, kMaxPartDepth);
    writer.object["check"] = check.ok() ? std::move(*check) : nlohmann::json();
  }
  writer.object["version"] = kVersion;
  return std::move(writer.object);
}

Result<RunConfig> RunConfig::from_json(std::string_view text) {
  auto parsed = parse_bounded_json(text, kMaxRunBytes, 6);
  if (!parsed.ok()) return parsed.error().with_context("run configuration");
  JsonReader reader(*parsed);
  int version = 0;
  reader.field("version", version);
  if (reader.status().ok() && version != kVersion) {
    return Error{
        ErrorCode::kVersionUnsupported,
        fmt::format("run configuration: version {} is not known here ({} is); update atoll", version, kVersion)};
  }
  RunConfig config;
  fields(reader, config);
  if (const nlohmann::json* inner = reader.find("inner")) {
    JsonReader inner_reader(*inner);
    fields(inner_reader, config.inner);
    if (!inner_reader.status().ok()) reader.fail("inner: " + inner_reader.status().error().message);
  }
  if (parsed->contains("check")) config.check_json = dump_json((*parsed)["check"]);
  if (!reader.status().ok()) return reader.status().error().with_context("run configuration");
  // All islands must take every field the same way: one that this version does not know cannot be skipped.
  const nlohmann::json known = RunConfig{}.to_json();
  for (const auto& [name, value] : parsed->items()) {
    if (known.contains(name) || name == "check" || name == kAttention || name == kTrainOnly || name == kEvaluation) {
      continue;
    }
    return Error{
        ErrorCode::kVersionUnsupported,
        fmt::format("run configuration: field '{}' is not known here; update atoll", printable(name, kMaxPersonName))};
  }
  ATOLL_RETURN_IF_ERROR(config.validate());
  return config;
}

}  // namespace atl
