// Tokens a second of the inner step: a preset's model on random text, in this process. Verifies first (the loss of one
// batch falls when it is trained on), then times. Tokens a CPU second are what a core gives when others use the machine
// too. And the most memory that it held, beside what net/step/memory_needs works out (a program of its own has no
// outer state). When it was timed is told by a clock that other processes have, too: several at once can be compared.
//
//   engine_bench [preset] [sequences] [length] [local ranks] [compute threads] [steps] [micro-batch] [word...]
//
// Words: bf16; cheap or all (what is computed again); whole (units stay gathered for a step).
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "net/base/file.h"
#include "net/step/memory_needs.h"
#include "trainer/engine/engine.h"

namespace {

using namespace atl;

struct Arguments {
  std::string preset = "demo";
  std::int64_t sequences = 8;
  std::int64_t length = 256;
  int local_ranks = 1;
  int compute_threads = 1;
  int steps = 30;
  std::int64_t micro_batch = 0;  // 0: all of a rank's share
  Precision precision = Precision::kFp32;
  Recompute recompute = Recompute::kNone;
  bool keep_gathered = false;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  const auto number = [&](int index, auto& value) {
    if (argc > index) value = static_cast<std::decay_t<decltype(value)>>(std::atoll(argv[index]));
  };
  if (argc > 1) arguments.preset = argv[1];
  number(2, arguments.sequences);
  number(3, arguments.length);
  number(4, arguments.local_ranks);
  number(5, arguments.compute_threads);
  number(6, arguments.steps);
  number(7, arguments.micro_batch);
  for (int i = 8; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "bf16") arguments.precision = Precision::kBf16;
    if (word == "cheap") arguments.recompute = Recompute::kCheap;
    if (word == "all") arguments.recompute = Recompute::kAll;
    if (word == "whole") arguments.keep_gathered = true;
  }
  return arguments;
}

Result<ModelConfig> preset(const std::string& name) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, read_file(std::string(ATOLL_MODEL_PRESETS_DIR "/") + name + ".json"));
  return model_config_from_json(text);
}

double seconds_of(std::chrono::steady_clock::duration time) { return std::chrono::duration<double>(time).count(); }

// Bytes, of this process until now.
double most_resident() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

void print_memory(const ModelConfig& config, const Arguments& arguments, double before) {
  const MemoryNeeds needs = memory_needs(config, {.sequences_per_step = arguments.sequences,
                                                  .sequence_length = arguments.length,
                                                  .island = {.local_ranks = arguments.local_ranks,
                                                             .micro_batch = arguments.micro_batch,
                                                             .precision = arguments.precision,
                                                             .recompute = arguments.recompute,
                                                             .keep_gathered = arguments.keep_gathered}});
  const double expected = static_cast<double>(needs.engine + needs.step);
  const double held = most_resident() - before;
  fmt::print("micro_batch={} engine_and_step_bytes={:.0f} worked_out={:.0f} ratio={:.3f} before_bytes={:.0f}\n",
             arguments.micro_batch, held, expected, held / expected, before);
}

Status run(const Arguments& arguments) {
  ATOLL_ASSIGN_OR_RETURN(const ModelConfig config, preset(arguments.preset));
  EngineOptions options;
  options.local_ranks = arguments.local_ranks;
  options.compute_threads = arguments.compute_threads;
  options.micro_batch_sequences = arguments.micro_batch;
  options.precision = arguments.precision;
  options.recompute = arguments.recompute;
  options.keep_gathered = arguments.keep_gathered;
  const double bytes_before = most_resident();
  ATOLL_ASSIGN_OR_RETURN(const auto engine, Engine::create(config, options));
  std::mt19937 random(7);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(arguments.sequences * (arguments.length + 1)));
  for (auto& token : tokens) token = static_cast<std::int32_t>(random() % static_cast<unsigned>(config.vocab_size));
  const TokenBatch batch{tokens, arguments.sequences, arguments.length};

  ATOLL_ASSIGN_OR_RETURN(const double before, engine->evaluate(batch));
  for (int i = 0; i < 3; ++i) ATOLL_RETURN_IF_ERROR(engine->train_step(batch, 1e-3f));
  ATOLL_ASSIGN_OR_RETURN(const double after, engine->evaluate(batch));
  if (!(after < before)) return Error{ErrorCode::kInternal, fmt::format("the loss went from {} to {}", before, after)};

  const auto begin = std::chrono::steady_clock::now();
  const std::clock_t cpu_begin = std::clock();
  for (int i = 0; i < arguments.steps; ++i) ATOLL_RETURN_IF_ERROR(engine->train_step(batch, 1e-3f));
  const auto end = std::chrono::steady_clock::now();
  const double seconds = seconds_of(end - begin);
  const double cpu_seconds = static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC;
  const double rate = static_cast<double>(batch.token_count() * arguments.steps) / seconds;
  fmt::print(
      "preset={} parameters={} sequences={} length={} local_ranks={} compute_threads={} tokens_per_second={:.0f} "
      "tokens_per_cpu_second={:.0f} "
      "gflops={:.1f}\n",
      arguments.preset, engine->numel(), arguments.sequences, arguments.length, arguments.local_ranks,
      arguments.compute_threads, rate, rate * seconds / cpu_seconds,
      6e-9 * static_cast<double>(engine->numel()) * rate);
  fmt::print("timed_from={:.3f} timed_to={:.3f}\n", seconds_of(begin.time_since_epoch()),
             seconds_of(end.time_since_epoch()));
  fmt::print("peak_bytes={:.0f}\n", most_resident());
  print_memory(config, arguments, bytes_before);
  return ok_status();
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = run(parse(argc, argv));
  if (!status.ok()) fmt::print(stderr, "engine_bench: {}\n", status.error().message);
  return status.ok() ? 0 : 1;
}
