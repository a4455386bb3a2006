// The engine on one GPU. Prints a JSON object.
//
//   gpu_engine reference DIRECTORY RANKS   steps of a small model in fp32, beside the reference's
//   (tests/golden/llama-a), by
//                                          RANKS ranks that share the GPU. Fails where they differ.
//   gpu_engine speed CONFIG.json RANKS LENGTH...    in bf16, on random tokens: tokens a second, where the time goes,
//   memory
//                                          planned and used. Layers are left away until the model fits.
//   gpu_engine inference CONFIG.json       texts that are read and written over a cache: a small model of the same
//   heads
//                                          beside the processor, which fails where they differ; then the model in bf16
//                                          on parameters that mean nothing: tokens a second of prompts and after them.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>

#include "net/step/flops.h"
#include "tests/gpu/machine.h"
#include "tests/trainer/reference.h"
#include "trainer/device/cuda_check.h"
#include "trainer/engine/device_check.h"
#include "trainer/engine/fsdp_engine.h"
#include "trainer/engine/inference_engine.h"

namespace {

using namespace atl;
using namespace atl::gpu;

CudaDevices shared_by(int ranks) { return {.ordinals = std::vector<int>(static_cast<std::size_t>(ranks), 0)}; }

std::unique_ptr<Engine> make(const ModelConfig& config, const EngineOptions& options) {
  const CudaDevices devices = shared_by(options.local_ranks);
  auto engine = create_engine(config, options, std::make_unique<CudaDeviceGroup>(devices, libraries(devices)));
  if (!engine.ok()) throw std::runtime_error(engine.error().message);
  return std::move(engine).value();
}

template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}

// As engine_reference_test: fp32 sums of other orders, which AdamW's division enlarges.
constexpr double kForwardTolerance = 1e-5, kGradientTolerance = 1e-4, kParameterTolerance = 1e-4;

int reference(const std::string& directory, int ranks) {
  (void)::setenv("ATOLL_REFERENCE_DIR", directory.c_str(), 1);  // no thread but this one
  const test::Reference expected;
  const auto& adamw = expected.numbers.at("adamw");
  EngineOptions options{.local_ranks = ranks, .adamw = expected.adamw()};
  options.clip_norm = adamw.at("clip_grad_norm").get<double>();
  const auto engine = make(expected.model.config, options);
  engine->write_parameters(expected.model.parameters);
  const test::ReferenceBatch batch = expected.batch("tokens");

  const GradientReport gradients = value_of(engine->gradients(batch.view()));
  const double loss = expected.expected.floats("loss").value()[0];
  const double loss_error = std::abs(gradients.loss_nats - loss) / loss;
  const double gradient_error = expected.worst_tensor(gradients.gradients, "grad.").first;
  for (std::size_t step = 0; step < 5; ++step) {
    const test::ReferenceBatch trained = expected.batch("batch." + std::to_string(10 + step));
    (void)value_of(engine->train_step(trained.view(), adamw.at("lr").get<float>()));
  }
  std::vector<float> parameters(static_cast<std::size_t>(engine->numel()));
  engine->read_parameters(parameters);
  const double parameter_error = expected.worst_tensor(parameters, "adamw5.").first;
  const bool good =
      loss_error <= kForwardTolerance && gradient_error <= kGradientTolerance && parameter_error <= kParameterTolerance;
  fmt::print("{}\n", nlohmann::json{{"ranks", ranks},
                                    {"loss_error", loss_error},
                                    {"gradient_error", gradient_error},
                                    {"parameter_error_after_5_steps", parameter_error},
                                    {"good", good}}
                         .dump(1));
  return good ? 0 : 1;
}

// --- Speed ---

struct Plan {
  Recompute recompute = Recompute::kNone;
  std::int64_t sequences = 0;
  std::int64_t bytes = 0;  // all ranks' arenas
};

StepOptions step_options(int ranks, Recompute recompute) {
  const CudaDevices devices = shared_by(ranks);
  return {.ranks = ranks,
          .precision = Precision::kBf16,
          .recompute = recompute,
          .traits = cuda_step_traits(GpuAttention::kCudnn, !devices.one_for_all())};
}

std::int64_t planned_bytes(const ModelConfig& config, int ranks, Recompute recompute, std::int64_t sequences,
                           std::int64_t length) {
  const LlamaStep step(config, step_options(ranks, recompute));
  const std::int64_t pass = step.micro_batch(sequences, length, true).step_bytes();
  return ranks * (step.kept_bytes() + std::max(pass, step.reduce().step_bytes()));
}

// About so many tokens of a rank at once fill the matrix units.
constexpr std::int64_t kTokens = 16384;

// As many sequences as are useful and fit, with no more computed again than must be.
std::optional<Plan> plan_for(const ModelConfig& config, int ranks, std::int64_t length, std::int64_t room) {
  const std::int64_t most = std::max<std::int64_t>(1, (fake() ? 64 : kTokens) / length);
  for (std::int64_t sequences = most; sequences > 0; sequences /= 2) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kCheap, Recompute::kAll}) {
      const std::int64_t bytes = planned_bytes(config, ranks, recompute, sequences, length);
      if (bytes <= room) return Plan{recompute, sequences, bytes};
    }
  }
  return std::nullopt;
}

const char* name_of(Recompute recompute) {
  return recompute == Recompute::kNone ? "none" : recompute == Recompute::kCheap ? "cheap" : "all";
}

std::vector<std::int32_t> random_tokens(std::int64_t count, std::int64_t vocab) {
  std::mt19937 random(1);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  for (auto& token : tokens) token = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(vocab));
  return tokens;
}

nlohmann::json parts_of(const StepReport& report) {
  if (!report.parts) return nullptr;
  const auto of = [&](StepPart part) { return (*report.parts)[part]; };
  return {{"matmul", of(StepPart::kMatMul)},           {"attention", of(StepPart::kAttention)},
          {"elementwise", of(StepPart::kElementwise)}, {"loss", of(StepPart::kLoss)},
          {"optimiser", of(StepPart::kOptimiser)},     {"exposed_communication", of(StepPart::kCommunication)}};
}

nlohmann::json measure(Engine& engine, const Plan& plan, int ranks, std::int64_t length) {
  const std::int64_t sequences = plan.sequences * ranks;
  const auto tokens = random_tokens(sequences * (length + 1), engine.config().vocab_size);
  const TokenBatch batch{tokens, sequences, length};
  const ParameterLayout layout = canonical_layout(engine.config());
  const int warm = fake() ? 1 : 3, timed = fake() ? 1 : 5;
  const double first = value_of(engine.train_step(batch, 3e-4f)).loss_nats;
  for (int i = 1; i < warm; ++i) (void)value_of(engine.train_step(batch, 3e-4f));
  std::vector<StepReport> steps;
  for (int i = 0; i < timed; ++i) steps.push_back(value_of(engine.train_step(batch, 3e-4f)));
  const auto best = std::ranges::min_element(steps, {}, [](const StepReport& step) { return step.seconds; });
  const double per_second = static_cast<double>(batch.token_count()) / best->seconds;
  return {{"length", length},
          {"sequences_of_a_rank", plan.sequences},
          {"recompute", name_of(plan.recompute)},
          {"seconds", best->seconds},
          {"tokens_per_second", per_second},
          {"flops_per_second", per_second * flops_per_token(engine.config(), layout, length)},
          {"torchtitan_flops_per_second", per_second * torchtitan_flops_per_token(engine.config(), layout, length)},
          {"parts", parts_of(*best)},
          {"loss_first", first},
          {"loss_last", steps.back().loss_nats},
          {"loss_falls", steps.back().loss_nats < first}};
}

int speed(const std::string& file, int ranks, const std::vector<std::int64_t>& lengths) {
  ModelConfig config = value_of(model_config_from_json(value_of(read_file(file))));
  std::size_t unused = 0, total = 0;
  check_cuda(cudaMemGetInfo(&unused, &total), "cudaMemGetInfo");
  constexpr std::int64_t kReserve = std::int64_t{2} << 30;  // libraries' code, workspaces, what the driver keeps
  const std::int64_t room = static_cast<std::int64_t>(unused) - (fake() ? (std::int64_t{400} << 20) : kReserve);
  const std::int64_t longest = *std::ranges::max_element(lengths);
  while (!plan_for(config, ranks, longest, room)) {
    if (--config.num_hidden_layers == 0) throw std::runtime_error("not even one layer fits");
  }
  nlohmann::json report = {{"layers", config.num_hidden_layers},
                           {"parameters", canonical_layout(config).numel},
                           {"ranks", ranks},
                           {"rows", nlohmann::json::array()}};
  bool good = true;
  std::unique_ptr<Engine> engine;
  Recompute of_engine = Recompute::kNone;
  for (const std::int64_t length : lengths) {
    const Plan plan = *plan_for(config, ranks, length, room);
    if (!engine || of_engine != plan.recompute) {  // fresh parameters take the host longer than the steps take the GPU
      engine.reset();
      EngineOptions options{.local_ranks = ranks, .precision = Precision::kBf16, .recompute = plan.recompute};
      engine = make(config, options);
      of_engine = plan.recompute;
    }
    const std::uint64_t before = total - unused;
    nlohmann::json row = measure(*engine, plan, ranks, length);
    row["planned_bytes"] = plan.bytes;
    row["taken_bytes"] = ranks * (engine->memory().kept_bytes + engine->memory().step_bytes);
    row["used_bytes"] = used_bytes() - before;
    good = good && row.at("loss_falls").get<bool>();
    report["rows"].push_back(std::move(row));
  }
  fmt::print("{}\n", report.dump(1));
  return good ? 0 : 1;
}

// --- Inference ---

std::unique_ptr<DeviceGroup> one_gpu() {
  const CudaDevices devices = shared_by(1);
  return std::make_unique<CudaDeviceGroup>(devices, libraries(devices));
}

// As inference_engine_test: of the largest logit.
double inference_tolerance(Precision precision) { return precision == Precision::kFp32 ? 6e-5 : 4.0 / 256; }

double inference_error(const ModelConfig& model, Precision precision) {
  const InferenceDifference by = value_of(compare_inference(model, precision, one_gpu()));
  return by.probability <= by.next_token ? by.next_token : by.probability;  // NaN too
}

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

// Of so many texts: the prompts at once, then a token of each with its logits handed to the host, and with the label's
// probability alone.
nlohmann::json measure_inference(InferenceEngine& engine, std::int64_t texts, std::int64_t prompt, std::int64_t added) {
  const auto tokens = random_tokens(texts * prompt, engine.config().vocab_size);
  const std::vector<std::int32_t> one{1};
  std::vector<SlotTokens> prompts, next, labelled;
  for (std::int64_t text = 0; text < texts; ++text) {
    prompts.push_back(
        {text,
         std::span(tokens).subspan(static_cast<std::size_t>(text * prompt), static_cast<std::size_t>(prompt)),
         {}});
    next.push_back({text, one, {}});
    labelled.push_back({text, one, one});
  }
  const auto forget = [&](std::int64_t length) {
    for (std::int64_t text = 0; text < texts; ++text) engine.keep(text, length);
  };
  const auto timed = [](std::int64_t times, const std::function<void()>& work) {
    const auto began = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < times; ++i) work();
    return seconds_since(began) / static_cast<double>(times);
  };
  const auto read = [&] {
    forget(0);
    (void)value_of(engine.logits(prompts));
  };
  const auto write = [&] { (void)value_of(engine.logits(next)); };
  const auto score = [&] { (void)value_of(engine.scores(labelled)); };
  read();
  const double reading = timed(fake() ? 1 : 3, read);
  write();
  const double writing = timed(added, write);
  forget(prompt);
  score();
  const double scoring = timed(added, score);
  return {{"texts", texts},
          {"prompt", prompt},
          {"prompt_tokens_per_second", static_cast<double>(texts * prompt) / reading},
          {"tokens_per_second", static_cast<double>(texts) / writing},
          {"scored_tokens_per_second", static_cast<double>(texts) / scoring},
          {"weight_gigabytes_per_second",
           2.0 * static_cast<double>(canonical_layout(engine.config()).numel) / scoring / 1e9}};
}

int inference(const std::string& file) {
  const ModelConfig config = value_of(model_config_from_json(value_of(read_file(file))));
  nlohmann::json report = {{"parameters", canonical_layout(config).numel}};
  bool good = true;
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const double error = inference_error(config, precision), most = inference_tolerance(precision);
    report["checks"][precision_name(precision)] = {{"error", error}, {"tolerance", most}, {"good", error <= most}};
    good = good && error <= most;
  }
  const std::int64_t prompt = fake() ? 16 : 512, added = fake() ? 3 : 64, most_texts = fake() ? 4 : 32;
  const InferenceOptions options{.precision = Precision::kBf16,
                                 .slots = most_texts,
                                 .capacity = prompt + added + 1,
                                 .most_rows = fake() ? 32 : 2048};
  const auto cheap = [](std::int64_t first, std::span<float> values) {
    auto state = static_cast<std::uint32_t>(first) * 2654435761u + 1u;
    for (float& value : values) {
      state = state * 1664525u + 1013904223u;
      value = 0.04f * (static_cast<float>(state >> 8) * 0x1p-24f - 0.5f);
    }
  };
  const auto engine = value_of(InferenceEngine::create(config, options, cheap, one_gpu()));
  for (const std::int64_t texts : {std::int64_t{1}, most_texts}) {
    report["rows"].push_back(measure_inference(*engine, texts, prompt, added));
  }
  report["good"] = good;
  fmt::print("{}\n", report.dump(1));
  return good ? 0 : 1;
}

int run(const std::vector<std::string>& words) {
  if (words.size() == 2 && words[0] == "inference") return inference(words[1]);
  if (words.size() == 3 && words[0] == "reference") return reference(words[1], std::stoi(words[2]));
  if (words.size() >= 4 && words[0] == "speed") {
    std::vector<std::int64_t> lengths;
    for (std::size_t i = 3; i < words.size(); ++i) lengths.push_back(std::stoll(words[i]));
    return speed(words[1], std::stoi(words[2]), lengths);
  }
  fmt::print(stderr,
             "gpu_engine reference DIRECTORY RANKS | speed CONFIG.json RANKS LENGTH... | inference CONFIG.json\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  atl::gpu::log_to_stderr();
  try {
    return run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_engine: {}\n", error.what());
    return 1;
  }
}
