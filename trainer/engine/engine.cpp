#include "trainer/engine/engine.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trainer/engine/rank_model.h"
#include "trainer/engine/rank_threads.h"

namespace atl {
namespace {

constexpr int kMaxLocalRanks = 64;

Error bad_option(std::string_view what) { return Error{ErrorCode::kInvalidArgument, fmt::format("engine: {}", what)}; }

// Sequences [first, end) of a batch of `total` for one rank: as even as can be, in rank order.
std::int64_t first_sequence(std::int64_t total, int rank, int world_size) { return total * rank / world_size; }

}  // namespace

Status EngineOptions::validate() const {
  if (local_ranks < 1 || local_ranks > kMaxLocalRanks) {
    return bad_option(fmt::format("local_ranks is {}; it must be from 1 to {}", local_ranks, kMaxLocalRanks));
  }
  if (compute_threads < 1 || compute_threads > 1024) return bad_option("compute_threads must be from 1 to 1024");
  if (!(clip_norm >= 0)) return bad_option("clip_norm must not be negative");
  if (!(max_z_loss >= 0)) return bad_option("max_z_loss must not be negative");
  if (micro_batch_sequences < 0) return bad_option("micro_batch_sequences must not be negative");
  if (collective_timeout.count() < 1) return bad_option("collective_timeout must be at least a second");
  return adamw.validate();
}

struct Engine::Impl {
  Impl(const ModelConfig& model_config, const EngineOptions& engine_options)
      : config(model_config),
        options(engine_options),
        layout(canonical_layout(model_config)),
        group(engine_options.local_ranks, engine_options.collective_timeout),
        threads(group, std::max(1, engine_options.compute_threads / engine_options.local_ranks)) {
    for (int rank = 0; rank < options.local_ranks; ++rank) {
      communicators.push_back(group.communicator(LocalRank{rank}));
      models.push_back(std::make_unique<RankModel>(config, layout, *communicators.back()));
    }
  }

  Status check(const TokenBatch& batch) const;
  RankBatch share(const TokenBatch& batch, LocalRank rank);
  // Runs on every rank; after a failure nothing unsharded stays behind.
  Status run(const std::function<void(LocalRank, RankModel&, Communicator&)>& task);
  // Loss of the whole batch (sums over ranks divided by tokens), gradients left in the shards.
  struct Passed {
    double loss_nats = 0;
    double max_z_loss = 0;
    double gradient_sum_of_squares = 0;
  };
  Passed forward_backward(const TokenBatch& batch, LocalRank rank, RankModel& model, Communicator& communicator);
  std::vector<ParameterRange> whole() const { return {{0, layout.numel}}; }
  void read(ShardArray array, std::span<const ParameterRange> ranges, std::span<float> values) const;
  void read(ShardArray array, std::span<float> canonical) const { read(array, whole(), canonical); }
  void write(ShardArray array, std::span<const ParameterRange> ranges, std::span<const float> canonical);
  void write(ShardArray array, std::span<const float> canonical) { write(array, whole(), canonical); }

  const ModelConfig config;
  const EngineOptions options;
  const ParameterLayout layout;
  std::int64_t steps = 0;
  bool given_up = false;  // by on_micro_batch, in the call under way; rank 0's thread writes it, and is waited for
  SharedMemoryGroup group;
  std::vector<std::unique_ptr<Communicator>> communicators;
  std::vector<std::unique_ptr<RankModel>> models;
  RankThreads threads;  // last: joins before what its tasks use dies
};

Status Engine::Impl::check(const TokenBatch& batch) const {
  if (batch.sequences < 1 || batch.length < 1) return bad_option("a batch needs at least one sequence of one token");
  if (batch.tokens.size() != static_cast<std::size_t>(batch.sequences * (batch.length + 1))) {
    return bad_option(fmt::format("a batch of {} sequences of {} + 1 tokens has {} tokens", batch.sequences,
                                  batch.length, batch.tokens.size()));
  }
  if (batch.length > config.max_position_embeddings) {
    return bad_option(fmt::format("sequences of {} tokens are longer than max_position_embeddings = {}", batch.length,
                                  config.max_position_embeddings));
  }
  const auto [smallest, largest] = std::minmax_element(batch.tokens.begin(), batch.tokens.end());
  if (*smallest < 0 || *largest >= config.vocab_size) {
    return bad_option(
        fmt::format("tokens from {} to {} do not fit a vocabulary of {}", *smallest, *largest, config.vocab_size));
  }
  return ok_status();
}

RankBatch Engine::Impl::share(const TokenBatch& batch, LocalRank rank) {
  const int world_size = options.local_ranks;
  const std::int64_t first = first_sequence(batch.sequences, rank.value, world_size);
  const std::int64_t count = first_sequence(batch.sequences, rank.value + 1, world_size) - first;
  const std::int64_t largest_share = (batch.sequences + world_size - 1) / world_size;
  const std::int64_t micro =
      options.micro_batch_sequences == 0 ? largest_share : std::min(options.micro_batch_sequences, largest_share);
  const auto row = static_cast<std::size_t>(batch.length + 1);
  std::function<void(std::int64_t)> after_micro_batch;
  if (rank.value == 0 && options.on_micro_batch) {
    after_micro_batch = [this](std::int64_t left) {
      if (options.on_micro_batch() || left == 0) return;
      given_up = true;
      throw std::runtime_error("given up between two micro-batches");
    };
  }
  return {batch.tokens.subspan(static_cast<std::size_t>(first) * row, static_cast<std::size_t>(count) * row),
          {count, batch.length},
          micro,
          (largest_share + micro - 1) / micro,
          std::move(after_micro_batch)};
}

Status Engine::Impl::run(const std::function<void(LocalRank, RankModel&, Communicator&)>& task) {
  given_up = false;
  Status status = threads.run([&](LocalRank rank) {
    const auto index = static_cast<std::size_t>(rank.value);
    task(rank, *models[index], *communicators[index]);
  });
  if (status.ok()) return status;
  for (const auto& model : models) model->release_units();
  return given_up ? Status(Error{ErrorCode::kAborted, "given up between two micro-batches"}) : status;
}

Engine::Impl::Passed Engine::Impl::forward_backward(const TokenBatch& batch, LocalRank rank, RankModel& model,
                                                    Communicator& communicator) {
  const auto tokens = static_cast<double>(batch.token_count());
  const LossScale scale{static_cast<float>(1.0 / tokens), static_cast<float>(options.max_z_loss)};
  model.zero_gradients();
  const LossSums sums = model.forward_backward(share(batch, rank), scale);
  double totals[] = {sums.cross_entropy, sums.squared_max_logit, model.gradient_sum_of_squares()};
  communicator.all_reduce_sum(totals);
  return {totals[0] / tokens, options.max_z_loss * totals[1] / tokens, totals[2]};
}

void Engine::Impl::read(ShardArray array, std::span<const ParameterRange> ranges, std::span<float> values) const {
  for (const auto& model : models) model->read_shard(array, ranges, values);
}

void Engine::Impl::write(ShardArray array, std::span<const ParameterRange> ranges, std::span<const float> canonical) {
  for (const auto& model : models) model->write_shard(array, ranges, canonical);
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::create(const ModelConfig& config, const EngineOptions& options) {
  ATOLL_RETURN_IF_ERROR(config.validate());
  ATOLL_RETURN_IF_ERROR(options.validate());
  try {
    auto impl = std::make_unique<Impl>(config, options);
    ATOLL_RETURN_IF_ERROR(
        impl->run([&](LocalRank, RankModel& model, Communicator&) { model.initialise(options.seed); }));
    return std::unique_ptr<Engine>(new Engine(std::move(impl)));
  } catch (const std::exception& error) {
    return Error{ErrorCode::kInternal, fmt::format("cannot set up the model: {}", error.what())};
  }
}

const ModelConfig& Engine::config() const { return impl_->config; }
std::int64_t Engine::numel() const { return impl_->layout.numel; }

void Engine::read_parameters(std::span<float> canonical) const { impl_->read(ShardArray::kParameters, canonical); }
void Engine::write_parameters(std::span<const float> canonical) { impl_->write(ShardArray::kParameters, canonical); }
void Engine::read_parameters(std::span<const ParameterRange> ranges, std::span<float> values) const {
  impl_->read(ShardArray::kParameters, ranges, values);
}
void Engine::write_parameters(std::span<const ParameterRange> ranges, std::span<const float> canonical) {
  impl_->write(ShardArray::kParameters, ranges, canonical);
}

Result<StepReport> Engine::train_step(const TokenBatch& batch, float learning_rate) {
  ATOLL_RETURN_IF_ERROR(impl_->check(batch));
  StepReport report{.tokens = batch.token_count()};
  bool finite = false;
  const std::int64_t step = impl_->steps + 1;
  ATOLL_RETURN_IF_ERROR(impl_->run([&](LocalRank rank, RankModel& model, Communicator& communicator) {
    const Impl::Passed passed = impl_->forward_backward(batch, rank, model, communicator);
    const double norm = std::sqrt(passed.gradient_sum_of_squares);
    // The same sums on every rank, so that all step or none does.
    const bool all_finite = std::isfinite(passed.loss_nats + passed.max_z_loss) && std::isfinite(norm);
    if (all_finite) {
      model.adamw(impl_->options.adamw, learning_rate, step, clip_factor(norm, impl_->options.clip_norm));
    }
    if (rank.value != 0) return;
    finite = all_finite;
    report.loss_nats = passed.loss_nats;
    report.max_z_loss = passed.max_z_loss;
    report.gradient_norm = norm;
  }));
  if (!finite) {
    return Error{ErrorCode::kNonFinite,
                 fmt::format("step {}: loss {} and gradient norm {} are not both finite; the parameters were left as "
                             "they were. Lower the learning rate, or look at the data of this batch",
                             step, report.loss_nats, report.gradient_norm)};
  }
  impl_->steps = step;
  return report;
}

Result<double> Engine::evaluate(const TokenBatch& batch) {
  ATOLL_RETURN_IF_ERROR(impl_->check(batch));
  double loss = 0;
  ATOLL_RETURN_IF_ERROR(impl_->run([&](LocalRank rank, RankModel& model, Communicator& communicator) {
    double sum[] = {model.loss(impl_->share(batch, rank)).cross_entropy};
    communicator.all_reduce_sum(sum);
    if (rank.value == 0) loss = sum[0] / static_cast<double>(batch.token_count());
  }));
  if (!std::isfinite(loss)) return Error{ErrorCode::kNonFinite, "the loss of this model on this text is not finite"};
  return loss;
}

Result<GradientReport> Engine::gradients(const TokenBatch& batch) {
  ATOLL_RETURN_IF_ERROR(impl_->check(batch));
  GradientReport report;
  ATOLL_RETURN_IF_ERROR(impl_->run([&](LocalRank rank, RankModel& model, Communicator& communicator) {
    const Impl::Passed passed = impl_->forward_backward(batch, rank, model, communicator);
    if (rank.value != 0) return;
    report.loss_nats = passed.loss_nats;
    report.max_z_loss = passed.max_z_loss;
  }));
  report.gradients.resize(static_cast<std::size_t>(numel()));
  impl_->read(ShardArray::kGradients, report.gradients);
  return report;
}

Result<std::vector<float>> Engine::logits(const TokenBatch& batch) {
  ATOLL_RETURN_IF_ERROR(impl_->check(batch));
  const std::int64_t vocab = impl_->config.vocab_size;
  std::vector<float> all(static_cast<std::size_t>(batch.token_count() * vocab));
  ATOLL_RETURN_IF_ERROR(impl_->run([&](LocalRank rank, RankModel& model, Communicator&) {
    RankBatch mine = impl_->share(batch, rank);
    mine.micro_sequences = std::max<std::int64_t>(1, mine.shape.sequences);
    const at::Tensor rows = model.logits(mine);
    if (!rows.defined()) return;
    const std::int64_t first = first_sequence(batch.sequences, rank.value, impl_->options.local_ranks);
    std::copy_n(rows.const_data_ptr<float>(), rows.numel(), all.begin() + first * batch.length * vocab);
  }));
  return all;
}

Result<std::vector<float>> Engine::next_token_logits(std::span<const std::int32_t> tokens) {
  // A batch carries labels too; the last one is not looked at.
  std::vector<std::int32_t> row(tokens.begin(), tokens.end());
  row.push_back(0);
  const TokenBatch batch{row, 1, static_cast<std::int64_t>(tokens.size())};
  ATOLL_RETURN_IF_ERROR(impl_->check(batch));
  std::vector<float> last(static_cast<std::size_t>(impl_->config.vocab_size));
  ATOLL_RETURN_IF_ERROR(impl_->run([&](LocalRank rank, RankModel& model, Communicator&) {
    const at::Tensor rows = model.logits(impl_->share(batch, rank), /*last_only=*/true);
    if (rows.defined()) std::copy_n(rows.const_data_ptr<float>(), rows.numel(), last.begin());
  }));
  return last;
}

std::int64_t Engine::optimizer_steps() const { return impl_->steps; }

void Engine::read_moments(std::span<float> first, std::span<float> second) const {
  impl_->read(ShardArray::kFirstMoment, first);
  impl_->read(ShardArray::kSecondMoment, second);
}

void Engine::write_moments(std::span<const float> first, std::span<const float> second, std::int64_t steps) {
  impl_->write(ShardArray::kFirstMoment, first);
  impl_->write(ShardArray::kSecondMoment, second);
  impl_->steps = steps;
}

UnshardedMemory Engine::unsharded_memory() const {
  UnshardedMemory memory;
  for (const auto& model : impl_->models) {
    memory.current_bytes = std::max(memory.current_bytes, model->memory().current_bytes());
    memory.peak_bytes = std::max(memory.peak_bytes, model->memory().peak_bytes());
  }
  return memory;
}

void Engine::reset_peak_memory() {
  for (const auto& model : impl_->models) model->memory().reset_peak();
}

}  // namespace atl
