// The loss of each inner step on given tokens, from given parameters, and the most memory that it held, beside what
// net/step/memory_needs works out. tests/bench/curves.py runs it beside HuggingFace transformers.
//
//   training_curve fresh --preset demo --output MODEL          a model at the beginning of a run, as a HuggingFace
//   directory training_curve train --model MODEL --tokens FILE --sequences 4 --length 256 --steps 50 ...
//
// FILE: int32, [steps, sequences, length + 1]; a row's inputs are all but the last, its labels all but the first.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "app/cli/bench/bench_figures.h"
#include "net/base/file.h"
#include "net/model_files/model_reader.h"
#include "net/model_files/model_writer.h"
#include "net/step/memory_needs.h"
#include "trainer/engine/engine.h"
#include "trainer/optim/schedule.h"

namespace {

using namespace atl;

struct Options {
  std::string preset = "demo", output;  // of fresh
  std::string model, tokens;
  std::int64_t sequences = 4, length = 256, steps = 50;
  std::int64_t micro_batch = 0;  // 0: all of a rank's share
  int threads = 1;               // and ranks
  bool bf16 = false;
  WarmupStableDecay schedule;  // in steps
};

Status write_fresh(const Options& options) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text,
                         read_file(std::string(ATOLL_MODEL_PRESETS_DIR "/") + options.preset + ".json"));
  ATOLL_ASSIGN_OR_RETURN(const ModelConfig config, model_config_from_json(text));
  ATOLL_ASSIGN_OR_RETURN(const auto engine, Engine::create(config, EngineOptions{}));
  std::vector<float> parameters(static_cast<std::size_t>(engine->numel()));
  engine->read_parameters(parameters);
  return write_model_directory(options.output, config, parameters);
}

Result<std::vector<std::int32_t>> read_tokens(const Options& options, std::int64_t vocab_size) {
  const auto count = static_cast<std::size_t>(options.steps * options.sequences * (options.length + 1));
  ATOLL_ASSIGN_OR_RETURN(const std::string bytes, read_file(options.tokens, std::size_t{1} << 30));
  if (bytes.size() != count * sizeof(std::int32_t)) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} has {} bytes, not the {} of {} steps of {} sequences of {} + 1 tokens", options.tokens,
                    bytes.size(), count * sizeof(std::int32_t), options.steps, options.sequences, options.length)};
  }
  std::vector<std::int32_t> tokens(count);
  std::memcpy(tokens.data(), bytes.data(), bytes.size());
  for (const std::int32_t token : tokens) {
    if (token >= 0 && token < vocab_size) continue;
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} has the token {}, beyond the model's vocabulary of {}",
                                                          options.tokens, token, vocab_size)};
  }
  return tokens;
}

EngineOptions engine_options(const Options& options) {
  EngineOptions engine;
  engine.local_ranks = engine.compute_threads = options.threads;
  engine.micro_batch_sequences = options.micro_batch;
  engine.precision = options.bf16 ? Precision::kBf16 : Precision::kFp32;
  return engine;
}

// With the model's parameters, whose copy here is gone when it returns.
Result<std::unique_ptr<Engine>> engine_of(const Options& options) {
  ATOLL_ASSIGN_OR_RETURN(const ModelDirectory model, read_model_directory(options.model));
  ATOLL_ASSIGN_OR_RETURN(auto engine, Engine::create(model.config, engine_options(options)));
  engine->write_parameters(model.parameters);
  return engine;
}

void print_memory(const Options& options, const ModelConfig& config, std::uint64_t resident_before) {
  const MemoryNeeds needs = memory_needs(config, {.sequences_per_step = options.sequences,
                                                  .sequence_length = options.length,
                                                  .island = {.local_ranks = options.threads,
                                                             .micro_batch = options.micro_batch,
                                                             .precision = engine_options(options).precision}});
  const std::uint64_t held = process_use().peak_resident_bytes;
  fmt::print("planned_bytes={} held_bytes={} planned_program_bytes={} held_before_bytes={}\n",
             needs.engine + needs.step, held - resident_before, needs.program, resident_before);
}

Status train(const Options& options) {
  ATOLL_RETURN_IF_ERROR(options.schedule.validate());
  const std::uint64_t resident_before = process_use().resident_bytes;
  ATOLL_ASSIGN_OR_RETURN(const auto engine, engine_of(options));
  ATOLL_ASSIGN_OR_RETURN(const auto tokens, read_tokens(options, engine->config().vocab_size));
  reset_peak();
  const auto step_tokens = static_cast<std::size_t>(options.sequences * (options.length + 1));
  for (std::int64_t step = 0; step < options.steps; ++step) {
    const auto rows = std::span(tokens).subspan(static_cast<std::size_t>(step) * step_tokens, step_tokens);
    const double rate = learning_rate_at(options.schedule, step, 1);
    ATOLL_ASSIGN_OR_RETURN(const StepReport report,
                           engine->train_step({rows, options.sequences, options.length}, static_cast<float>(rate)));
    fmt::print("step={} learning_rate={:.9g} loss={:.9g} gradient_norm={:.9g}\n", step, rate, report.loss_nats,
               report.gradient_norm);
  }
  print_memory(options, engine->config(), resident_before);
  return ok_status();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Losses of inner steps on given tokens, from given parameters");
  app.require_subcommand(1);
  CLI::App* fresh = app.add_subcommand("fresh", "write a model at the beginning of a run");
  fresh->add_option("--preset", options.preset)->capture_default_str();
  fresh->add_option("--output", options.output)->required();
  CLI::App* training = app.add_subcommand("train", "train it");
  training->add_option("--model", options.model, "HuggingFace directory")->required();
  training->add_option("--tokens", options.tokens, "int32, [steps, sequences, length + 1]")->required();
  training->add_option("--sequences", options.sequences)->check(CLI::PositiveNumber);
  training->add_option("--length", options.length)->check(CLI::PositiveNumber);
  training->add_option("--steps", options.steps)->check(CLI::PositiveNumber);
  training->add_option("--micro-batch", options.micro_batch)->check(CLI::NonNegativeNumber);
  training->add_option("--threads", options.threads, "a rank each")->check(CLI::Range(1, 64));
  training->add_flag("--bf16", options.bf16);
  training->add_option("--learning-rate", options.schedule.peak);
  training->add_option("--final-ratio", options.schedule.final_ratio);
  training->add_option("--warmup", options.schedule.warmup, "steps");
  training->add_option("--decay", options.schedule.decay, "the last so many steps");
  CLI11_PARSE(app, argc, argv);
  options.schedule.total = options.schedule.decay > 0 ? options.steps : 0;
  const Status status = fresh->parsed() ? write_fresh(options) : train(options);
  if (!status.ok()) fmt::print(stderr, "training_curve: {}\n", status.error().message);
  return status.ok() ? 0 : 1;
}
