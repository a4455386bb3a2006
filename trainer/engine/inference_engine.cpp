#include "trainer/engine/inference_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>
#include <utility>

#include "kernels/model/cached_attention_split.h"
#include "kernels/model/model_kernels.h"
#include "net/step/llama_inference.h"
#include "net/step/rope.h"
#include "trainer/device/cpu_device_group.h"
#include "trainer/engine/program_runner.h"

namespace atl {
namespace {

// Of programs that are kept: each is a list of some thousand operations.
constexpr std::size_t kMostShapes = 64;
// Above so many rows programs are made for multiples of it, the rest being rows that are not there.
constexpr std::int64_t kRowStep = 8;

std::int64_t rounded_rows(std::int64_t rows) {
  return rows <= kRowStep ? rows : (rows + kRowStep - 1) / kRowStep * kRowStep;
}

double gigabytes(double bytes) { return bytes / 1e9; }

enum class Wanted : std::uint8_t { kLogits, kScores };

// One row of a pass, and what is wanted of it.
struct Row {
  std::int32_t token = 0, slot = -1, position = 0;
  bool chosen = false;
  std::int32_t label = 0;
};

class DeviceInferenceEngine final : public InferenceEngine {
 public:
  DeviceInferenceEngine(const ModelConfig& config, const InferenceOptions& options,
                        std::unique_ptr<DeviceGroup> devices)
      : config_(config),
        options_(options),
        group_(std::move(devices)),
        step_(config_, {.precision = options.precision,
                        .slots = options.slots,
                        .capacity = options.capacity,
                        .traits = group_->traits()}),
        device_(group_->device(LocalRank{0})),
        runner_(*device_),
        rope_(rope_table(config_, options.capacity)),
        lengths_(static_cast<std::size_t>(options.slots), 0) {}

  // The most that a pass takes, whichever is asked for.
  std::int64_t step_bytes() const {
    const std::int64_t rows = rounded_rows(options_.most_rows);
    const std::int64_t texts = rounded_rows(std::min(options_.slots, options_.most_rows));
    return std::max(step_.scores(rows, rows).step_bytes(), step_.logits(rows, texts).step_bytes());
  }
  void take_memory(const ReadParameters& parameters);

  const ModelConfig& config() const override { return config_; }
  const InferenceOptions& options() const override { return options_; }
  std::int64_t kept_bytes() const override { return step_.kept_bytes(); }
  DeviceKind device_kind() const override { return group_->traits().kind; }
  std::int64_t weight_bytes() const { return step_.weight_bytes(); }
  std::int64_t length(std::int64_t slot) const override { return lengths_[static_cast<std::size_t>(slot)]; }
  void keep(std::int64_t slot, std::int64_t length) override {
    std::int64_t& held = lengths_[static_cast<std::size_t>(slot)];
    held = std::min(held, length);
  }
  Result<std::vector<float>> logits(std::span<const SlotTokens> texts) override;
  Result<std::vector<TokenScore>> scores(std::span<const SlotTokens> texts) override;

 private:
  Status check(std::span<const SlotTokens> texts, Wanted wanted) const;
  std::vector<Row> rows_of(std::span<const SlotTokens> texts, Wanted wanted);
  // take(program, chosen rows) after each pass.
  template <class Take>
  Status run(std::span<const SlotTokens> texts, Wanted wanted, Take&& take);
  const Program& program(Wanted wanted, std::int64_t rows, std::int64_t chosen);
  void take_step_arena(std::int64_t bytes);
  void upload(const Program& program, std::span<const Row> rows, std::int64_t count, std::int64_t chosen,
              Wanted wanted);
  // Behind what is there.
  void download(const Tensor& tensor, std::vector<float>& values);

  const ModelConfig config_;
  const InferenceOptions options_;
  const std::unique_ptr<DeviceGroup> group_;
  const LlamaInference step_;
  const std::unique_ptr<Device> device_;
  ProgramRunner runner_;
  const RopeTable rope_;
  std::vector<std::int64_t> lengths_;  // of the slots
  std::map<std::tuple<Wanted, std::int64_t, std::int64_t>, Program> programs_;
  std::int64_t step_bytes_ = 0;
};

void DeviceInferenceEngine::take_memory(const ReadParameters& parameters) {
  device_->take_arena(Arena::kKept, step_.kept_bytes());
  constexpr std::int64_t kPiece = std::int64_t{1} << 20;
  std::vector<float> values;
  std::vector<Bf16> rounded;
  for (std::int64_t first = 0; first < step_.layout().numel; first += kPiece) {
    const std::int64_t count = std::min(kPiece, step_.layout().numel - first);
    values.resize(static_cast<std::size_t>(count));
    parameters(first, values);
    const Tensor to = step_.weights().view(first, 1, count);
    if (options_.precision == Precision::kFp32) {
      device_->upload(to, bytes_of(values));
      continue;
    }
    rounded.resize(values.size());
    value_kernels().round_to_bf16(values.data(), count, rounded.data());
    device_->upload(to, bytes_of(rounded));
  }
}

const Program& DeviceInferenceEngine::program(Wanted wanted, std::int64_t rows, std::int64_t chosen) {
  const auto key = std::tuple(wanted, rows, chosen);
  auto found = programs_.find(key);
  if (found == programs_.end()) {
    runner_.join();  // it may hold the address of one that goes now
    if (programs_.size() == kMostShapes) programs_.clear();
    Program made = wanted == Wanted::kLogits ? step_.logits(rows, chosen) : step_.scores(rows, chosen);
    found = programs_.emplace(key, std::move(made)).first;
  }
  const Program& program = found->second;
  // Asked of each, also of one that was made before: what was to give it memory may have failed.
  if (program.step_bytes() > step_bytes_) take_step_arena(program.step_bytes());
  return program;
}

void DeviceInferenceEngine::take_step_arena(std::int64_t bytes) {
  runner_.join();
  device_->synchronize();
  step_bytes_ = 0;  // the old one goes before the new one comes
  device_->take_arena(Arena::kStep, bytes);
  step_bytes_ = bytes;
}

Status DeviceInferenceEngine::check(std::span<const SlotTokens> texts, Wanted wanted) const {
  const auto bad = [](std::string what) { return Error{ErrorCode::kInvalidArgument, "inference: " + what}; };
  for (const SlotTokens& text : texts) {
    if (text.slot < 0 || text.slot >= options_.slots) return bad(fmt::format("there is no slot {}", text.slot));
    if (text.tokens.empty()) return bad("no token is added to a slot");
    const std::int64_t length = this->length(text.slot) + static_cast<std::int64_t>(text.tokens.size());
    if (length > options_.capacity) {
      return bad(fmt::format("a text of {} tokens is longer than a slot, which holds {}", length, options_.capacity));
    }
    if (wanted == Wanted::kScores && text.labels.size() > text.tokens.size()) return bad("more labels than tokens");
    for (const auto& tokens : {text.tokens, text.labels}) {
      const auto outside = std::ranges::find_if(tokens, [&](auto t) { return t < 0 || t >= config_.vocab_size; });
      if (outside == tokens.end()) continue;
      return bad(fmt::format("token {} is not of the model's vocabulary of {}", *outside, config_.vocab_size));
    }
  }
  return ok_status();
}

std::vector<Row> DeviceInferenceEngine::rows_of(std::span<const SlotTokens> texts, Wanted wanted) {
  std::vector<Row> rows;
  for (const SlotTokens& text : texts) {
    std::int64_t& length = lengths_[static_cast<std::size_t>(text.slot)];
    const std::size_t labels = wanted == Wanted::kLogits ? 1 : text.labels.size();
    const std::size_t unlabelled = text.tokens.size() - labels;
    for (std::size_t i = 0; i < text.tokens.size(); ++i, ++length) {
      const bool chosen = i >= unlabelled;
      rows.push_back({.token = text.tokens[i],
                      .slot = static_cast<std::int32_t>(text.slot),
                      .position = static_cast<std::int32_t>(length),
                      .chosen = chosen,
                      .label = chosen && wanted == Wanted::kScores ? text.labels[i - unlabelled] : 0});
    }
  }
  return rows;
}

void DeviceInferenceEngine::upload(const Program& program, std::span<const Row> rows, std::int64_t count,
                                   std::int64_t chosen_count, Wanted wanted) {
  const auto half = static_cast<std::size_t>(config_.head_dim / 2);
  std::vector<std::int32_t> tokens, slots, positions, chosen, labels;
  std::vector<float> cosines, sines;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const Row row = i < rows.size() ? rows[i] : Row{};
    tokens.push_back(row.token);
    slots.push_back(row.slot);
    positions.push_back(row.position);
    const auto angle = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row.position) * half);
    const auto end = angle + static_cast<std::ptrdiff_t>(half);
    cosines.insert(cosines.end(), rope_.cosines.begin() + angle, rope_.cosines.begin() + end);
    sines.insert(sines.end(), rope_.sines.begin() + angle, rope_.sines.begin() + end);
    if (row.chosen) chosen.push_back(static_cast<std::int32_t>(i));
    if (row.chosen) labels.push_back(row.label);
  }
  chosen.resize(static_cast<std::size_t>(chosen_count), 0);
  labels.resize(static_cast<std::size_t>(chosen_count), 0);
  device_->upload(program.input("tokens"), bytes_of(tokens));
  device_->upload(program.input("slots"), bytes_of(slots));
  device_->upload(program.input("positions"), bytes_of(positions));
  device_->upload(program.input("cosines"), bytes_of(cosines));
  device_->upload(program.input("sines"), bytes_of(sines));
  if (chosen_count == 0) return;
  device_->upload(program.input("chosen"), bytes_of(chosen));
  if (wanted == Wanted::kScores) device_->upload(program.input("labels"), bytes_of(labels));
}

template <class Take>
Status DeviceInferenceEngine::run(std::span<const SlotTokens> texts, Wanted wanted, Take&& take) {
  ATOLL_RETURN_IF_ERROR(check(texts, wanted));
  try {
    const std::vector<Row> rows = rows_of(texts, wanted);
    std::span<const Row> left = rows;
    while (!left.empty()) {
      const auto here = left.first(std::min(left.size(), static_cast<std::size_t>(options_.most_rows)));
      left = left.subspan(here.size());
      const std::int64_t chosen = std::ranges::count_if(here, &Row::chosen);
      const std::int64_t count = rounded_rows(static_cast<std::int64_t>(here.size()));
      const Program& pass = program(wanted, count, rounded_rows(chosen));
      runner_.join();
      upload(pass, here, count, rounded_rows(chosen), wanted);
      runner_.run(pass);
      runner_.join();
      if (chosen > 0) take(pass, chosen);
    }
  } catch (const std::exception& error) {
    for (const SlotTokens& text : texts) lengths_[static_cast<std::size_t>(text.slot)] = 0;
    device_->reset();
    runner_.forget();
    return Error{ErrorCode::kInternal, fmt::format("cannot compute the model: {}", error.what())};
  }
  return ok_status();
}

void DeviceInferenceEngine::download(const Tensor& tensor, std::vector<float>& values) {
  const std::size_t before = values.size();
  values.resize(before + static_cast<std::size_t>(tensor.numel()));
  const std::span<float> added = std::span(values).subspan(before);
  if (tensor.dtype == DType::kFloat32) {
    device_->download(tensor, std::as_writable_bytes(added));
    return;
  }
  std::vector<Bf16> rounded(added.size());
  device_->download(tensor, std::as_writable_bytes(std::span(rounded)));
  value_kernels().widen(rounded.data(), tensor.numel(), added.data());
}

Result<std::vector<float>> DeviceInferenceEngine::logits(std::span<const SlotTokens> texts) {
  std::vector<float> all;
  ATOLL_RETURN_IF_ERROR(run(texts, Wanted::kLogits, [&](const Program& program, std::int64_t chosen) {
    download(program.output("logits")->row_range(0, chosen), all);
  }));
  return all;
}

Result<std::vector<TokenScore>> DeviceInferenceEngine::scores(std::span<const SlotTokens> texts) {
  std::vector<TokenScore> all;
  std::vector<float> values;
  std::vector<std::int32_t> greedy;
  ATOLL_RETURN_IF_ERROR(run(texts, Wanted::kScores, [&](const Program& program, std::int64_t chosen) {
    values.clear();
    download(program.output("log probabilities")->column_range(0, chosen), values);
    greedy.resize(values.size());
    device_->download(program.output("greedy")->column_range(0, chosen), std::as_writable_bytes(std::span(greedy)));
    for (std::size_t i = 0; i < values.size(); ++i) all.push_back({values[i], greedy[i] != 0});
  }));
  return all;
}

// What fits in place of what was asked.
Status check_memory(const ModelConfig& config, const InferenceOptions& options, const DeviceInferenceEngine& engine) {
  if (!options.available_bytes) return ok_status();
  const auto available = static_cast<double>(*options.available_bytes);
  const auto step = static_cast<double>(engine.step_bytes());
  const auto weights = static_cast<double>(engine.weight_bytes());
  if (static_cast<double>(engine.kept_bytes()) + step <= available) return ok_status();
  const double room = available - weights - step;
  const auto token = static_cast<double>(LlamaInference::cache_bytes_per_token(config, options.precision));
  const std::string asked = fmt::format(
      "the model's weights take {:.2f} GB, a cache of {} {} of {} tokens {:.2f} GB and the computation {:.2f} GB, and "
      "{:.2f} GB are free{}: ",
      gigabytes(weights), options.slots, options.slots == 1 ? "text" : "texts", options.capacity,
      gigabytes(static_cast<double>(engine.kept_bytes()) - weights), gigabytes(step), gigabytes(available),
      engine.device_kind() == DeviceKind::kCuda ? " on the GPU" : "");
  const auto tokens = room < 0 ? 0 : static_cast<std::int64_t>(room / token);
  if (tokens < 1) {
    return Error{ErrorCode::kInvalidArgument,
                 asked + "end other programs, take a smaller model, or compute in bf16 (--bf16)"};
  }
  const std::int64_t texts = tokens / options.capacity;
  const std::string fits = texts >= 1 ? fmt::format("{} at once of {} tokens fit", texts, options.capacity)
                                      : fmt::format("one text of {} tokens fits", tokens);
  return Error{ErrorCode::kInvalidArgument, asked + fits};
}

}  // namespace

Result<std::unique_ptr<InferenceEngine>> InferenceEngine::create(const ModelConfig& config,
                                                                 const InferenceOptions& options,
                                                                 const ReadParameters& parameters) {
  if (options.compute_threads < 1 || options.compute_threads > 1024) {
    return Error{ErrorCode::kInvalidArgument, "inference: from 1 to 1024 threads compute"};
  }
  return create(config, options, parameters,
                std::make_unique<CpuDeviceGroup>(1, options.compute_threads, std::chrono::minutes(10)));
}

Result<std::unique_ptr<InferenceEngine>> InferenceEngine::create(const ModelConfig& config,
                                                                 const InferenceOptions& options,
                                                                 const ReadParameters& parameters,
                                                                 std::unique_ptr<DeviceGroup> devices) {
  ATOLL_RETURN_IF_ERROR(config.validate());
  const auto bad = [](std::string what) { return Error{ErrorCode::kInvalidArgument, "inference: " + what}; };
  if (options.slots < 1 || options.most_rows < 1) return bad("there must be a slot, and a row at once");
  if (devices->world_size() != 1) return bad("one device computes");
  if (devices->traits().kind == DeviceKind::kCuda && config.head_dim > kMostCachedHeadDim) {
    return bad(fmt::format("heads of {} values: GPUs take up to {}", config.head_dim, kMostCachedHeadDim));
  }
  if (options.capacity < 1 || options.capacity > config.max_position_embeddings) {
    return bad(fmt::format("slots of {} tokens: the model takes from 1 to {}", options.capacity,
                           config.max_position_embeddings));
  }
  try {
    auto engine = std::make_unique<DeviceInferenceEngine>(config, options, std::move(devices));
    ATOLL_RETURN_IF_ERROR(check_memory(config, options, *engine));
    engine->take_memory(parameters);
    return std::unique_ptr<InferenceEngine>(std::move(engine));
  } catch (const std::exception& error) {
    return Error{ErrorCode::kInternal, fmt::format("cannot set up the model: {}", error.what())};
  }
}

}  // namespace atl
