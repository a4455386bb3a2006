#include "trainer/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <limits>

#include "net/base/deadline.h"
#include "net/model/initialise.h"
#include "net/step/memory_needs.h"
#include "trainer/device/cpu_device_group.h"
#include "trainer/engine/fsdp_engine.h"
#include "trainer/engine/rank_model.h"
#include "trainer/engine/rank_threads.h"

namespace atl {
namespace {

constexpr int kMaxLocalRanks = 64;

Error bad_option(std::string_view what) { return Error{ErrorCode::kInvalidArgument, fmt::format("engine: {}", what)}; }

// Sequences [first, end) of a batch of `total` for one rank: as even as can be, in rank order.
std::int64_t first_sequence(std::int64_t total, int rank, int world_size) { return total * rank / world_size; }

StepOptions step_options(const EngineOptions& options, const StepTraits& traits) {
  return {.ranks = options.local_ranks,
          .precision = options.precision,
          .recompute = options.recompute,
          .keep_gathered = options.keep_gathered,
          .attention = options.attention,
          .max_z_loss = static_cast<float>(options.max_z_loss),
          .clip_norm = static_cast<float>(options.clip_norm),
          .beta1 = options.adamw.beta1,
          .beta2 = options.adamw.beta2,
          .epsilon = options.adamw.epsilon,
          .train_only = options.train_only,
          .traits = traits};
}

// As Attention of net/step/operation.h has them; the kernels look nowhere else.
bool begin_documents(std::span<const std::int32_t> starts, std::int64_t length) {
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto place = static_cast<std::int32_t>(i % static_cast<std::size_t>(length));
    if (starts[i] != place && (place == 0 || starts[i] != starts[i - 1])) return false;
  }
  return true;
}

double per_token(double sum, std::int64_t tokens) { return tokens == 0 ? 0 : sum / static_cast<double>(tokens); }

class FsdpEngine final : public Engine {
 public:
  FsdpEngine(const ModelConfig& model, const EngineOptions& options, std::unique_ptr<DeviceGroup> group)
      : config_(model),
        options_(options),
        group_(std::move(group)),
        step_(config_, step_options(options_, group_->traits())),
        ranks_(static_cast<std::size_t>(options_.local_ranks)),
        threads_(*group_) {}

  // On the ranks' threads too their devices go.
  ~FsdpEngine() override {
    (void)threads_.run([this](LocalRank rank) { ranks_[static_cast<std::size_t>(rank.value)].reset(); });
  }

  Status start() {
    ATOLL_RETURN_IF_ERROR(threads_.run([this](LocalRank rank) {
      ranks_[static_cast<std::size_t>(rank.value)] =
          std::make_unique<RankModel>(config_, step_, rank, group_->device(rank));
    }));
    if (options_.seed) write_parameters(fresh_parameters(config_, *options_.seed));
    return broken_;
  }

  const ModelConfig& config() const override { return config_; }
  std::int64_t numel() const override { return step_.layout().numel; }

  void read_parameters(std::span<float> canonical) const override { read(ShardArray::kParameters, whole(), canonical); }
  void write_parameters(std::span<const float> canonical) override {
    write(ShardArray::kParameters, whole(), canonical, ValuesOf::kModel);
  }
  void read_parameters(std::span<const ParameterRange> ranges, std::span<float> values) const override {
    read(ShardArray::kParameters, ranges, values);
  }
  void write_parameters(std::span<const ParameterRange> ranges, std::span<const float> canonical) override {
    write(ShardArray::kParameters, ranges, canonical, ValuesOf::kModel);
  }
  void write_range_values(std::span<const ParameterRange> ranges, std::span<const float> values) override {
    write(ShardArray::kParameters, ranges, values, ValuesOf::kRanges);
  }

  Result<StepReport> train_step(const TokenBatch& batch, float learning_rate) override;
  Status begin_step(const TokenBatch& batch, float learning_rate) override;
  Result<StepReport> finish_step() override;
  int steps_under_way() const override { return static_cast<int>(begun_.size()); }
  int steps_ahead() const override { return group_->traits().overlaps ? kResultSlots - 1 : 0; }
  Result<double> evaluate(const TokenBatch& batch) override;
  Result<GradientReport> gradients(const TokenBatch& batch) override;
  Result<std::vector<float>> logits(const TokenBatch& batch) override;
  Result<std::vector<float>> next_token_logits(std::span<const std::int32_t> tokens) override;

  std::int64_t optimizer_steps() const override { return steps_; }
  void read_moments(std::span<const ParameterRange> ranges, std::span<float> first,
                    std::span<float> second) const override {
    read(ShardArray::kFirstMoment, ranges, first);
    read(ShardArray::kSecondMoment, ranges, second);
  }
  void write_moments(std::span<const ParameterRange> ranges, std::span<const float> first,
                     std::span<const float> second, std::int64_t steps) override {
    write(ShardArray::kFirstMoment, ranges, first, ValuesOf::kRanges);
    write(ShardArray::kSecondMoment, ranges, second, ValuesOf::kRanges);
    steps_ = steps;
  }
  void rest() override {
    const auto step = static_cast<std::uint64_t>(memory().step_bytes) * ranks_.size();
    if (step > kStepBytesThatStay) (void)run([](LocalRank, RankModel& rank) { rank.rest(); });
  }
  EngineMemory memory() const override;

 private:
  struct BegunStep {
    int slot = 0;
    std::int64_t number = 0;  // t, if those before it are taken
    std::int64_t tokens = 0;
    std::int64_t predicted = 0;  // labels that count
    Clock::time_point since;
  };
  struct FinishedStep {
    StepResult result;
    std::optional<StepSeconds> parts;
  };

  Status check(const TokenBatch& batch) const;
  BegunStep next_step(const TokenBatch& batch) const;
  // On a rank's thread.
  void enqueue(const BegunStep& step, const TokenBatch& batch, float learning_rate, LocalRank local, RankModel& rank);
  static void await(const BegunStep& step, LocalRank local, RankModel& rank, FinishedStep& finished);
  Result<StepReport> report_of(const BegunStep& step, const FinishedStep& finished);
  std::function<void(std::int64_t)> after_micro_batch(LocalRank rank, std::int64_t micro_batches);
  RankBatch share(const TokenBatch& batch, LocalRank rank);
  StepNumbers numbers(const TokenBatch& batch, float learning_rate, std::int64_t step) const;
  // Runs on every rank.
  Status run(const std::function<void(LocalRank, RankModel&)>& task) const;
  std::vector<ParameterRange> whole() const { return {{0, step_.layout().numel}}; }
  void read(ShardArray array, std::span<const ParameterRange> ranges, std::span<float> values) const;
  void write(ShardArray array, std::span<const ParameterRange> ranges, std::span<const float> values, ValuesOf of);

  const ModelConfig config_;
  const EngineOptions options_;
  const std::unique_ptr<DeviceGroup> group_;
  const LlamaStep step_;
  std::int64_t steps_ = 0;
  mutable std::deque<BegunStep> begun_;  // not finished; the oldest first
  Clock::time_point finished_;           // the last one
  // By on_micro_batch, in the call under way; rank 0's thread writes it, and is waited for.
  mutable bool given_up_ = false;
  mutable std::atomic<int> through_ = 0;  // ranks that are through with all that was begun before the call under way
  // A value could not be read or written, or what became of a step is not known: what is asked next says so.
  mutable Status broken_ = ok_status();
  std::vector<std::unique_ptr<RankModel>> ranks_;
  mutable RankThreads threads_;  // last: joins before what its tasks use dies
};

Status FsdpEngine::check(const TokenBatch& batch) const {
  ATOLL_RETURN_IF_ERROR(broken_);
  if (batch.sequences < 1 || batch.length < 1) return bad_option("a batch needs at least one sequence of one token");
  if (batch.tokens.size() != static_cast<std::size_t>(batch.sequences * (batch.length + 1))) {
    return bad_option(fmt::format("a batch of {} sequences of {} + 1 tokens has {} tokens", batch.sequences,
                                  batch.length, batch.tokens.size()));
  }
  if (batch.length > config_.max_position_embeddings) {
    return bad_option(fmt::format("sequences of {} tokens are longer than max_position_embeddings = {}", batch.length,
                                  config_.max_position_embeddings));
  }
  const auto inputs = static_cast<std::size_t>(batch.token_count());
  if (!batch.starts.empty() && (options_.attention != AttentionScope::kDocument || batch.starts.size() != inputs ||
                                !begin_documents(batch.starts, batch.length))) {
    return bad_option(
        "a batch says where documents begin, but attention is not kept within them, or they do not "
        "follow each other");
  }
  if (!batch.counts.empty() && batch.counts.size() != batch.tokens.size()) {
    return bad_option(
        fmt::format("a batch of {} tokens says of {} whether they count", batch.tokens.size(), batch.counts.size()));
  }
  const auto [smallest, largest] = std::minmax_element(batch.tokens.begin(), batch.tokens.end());
  if (*smallest < 0 || *largest >= config_.vocab_size) {
    return bad_option(
        fmt::format("tokens from {} to {} do not fit a vocabulary of {}", *smallest, *largest, config_.vocab_size));
  }
  return ok_status();
}

RankBatch FsdpEngine::share(const TokenBatch& batch, LocalRank rank) {
  const int world_size = options_.local_ranks;
  const std::int64_t first = first_sequence(batch.sequences, rank.value, world_size);
  const std::int64_t count = first_sequence(batch.sequences, rank.value + 1, world_size) - first;
  const std::int64_t largest_share = (batch.sequences + world_size - 1) / world_size;
  const std::int64_t micro =
      options_.micro_batch_sequences == 0 ? largest_share : std::min(options_.micro_batch_sequences, largest_share);
  const auto row = static_cast<std::size_t>(batch.length + 1);
  const std::int64_t micro_batches = (largest_share + micro - 1) / micro;
  const auto part = [&](auto of_rows, std::size_t of_row) {
    return of_rows.empty()
               ? of_rows
               : of_rows.subspan(static_cast<std::size_t>(first) * of_row, static_cast<std::size_t>(count) * of_row);
  };
  return {.tokens = part(batch.tokens, row),
          .starts = part(batch.starts, row - 1),
          .counts = part(batch.counts, row),
          .sequences = count,
          .length = batch.length,
          .micro_sequences = micro,
          .micro_batches = micro_batches,
          .after_micro_batch = after_micro_batch(rank, micro_batches)};
}

// To give up is to abort the collectives, which must not hit a step that was begun before: not before each rank has
// seen the first micro-batch of this call pass, behind which it is.
std::function<void(std::int64_t)> FsdpEngine::after_micro_batch(LocalRank rank, std::int64_t micro_batches) {
  if (!options_.on_micro_batch) return {};
  return [this, rank, micro_batches](std::int64_t left) {
    if (micro_batches - left == 2) ++through_;  // the host runs one micro-batch ahead
    if (rank.value != 0 || options_.on_micro_batch() || left == 0) return;
    if (!begun_.empty() && through_ < options_.local_ranks) return;
    given_up_ = true;
    throw std::runtime_error("given up between two micro-batches");
  };
}

StepNumbers FsdpEngine::numbers(const TokenBatch& batch, float learning_rate, std::int64_t step) const {
  return {.loss_scale = static_cast<float>(per_token(1, batch.predicted_count())),
          .learning_rate = learning_rate,
          .weight_decay = options_.adamw.weight_decay,
          .step = step,
          .others_under_way = !begun_.empty()};
}

Status FsdpEngine::run(const std::function<void(LocalRank, RankModel&)>& task) const {
  given_up_ = false;
  through_ = 0;
  Status status = threads_.run([&](LocalRank rank) { task(rank, *ranks_[static_cast<std::size_t>(rank.value)]); });
  if (status.ok()) return status;
  (void)threads_.run([&](LocalRank rank) { ranks_[static_cast<std::size_t>(rank.value)]->reset(); });
  if (given_up_) return Error{ErrorCode::kAborted, "given up between two micro-batches"};
  if (!begun_.empty()) {
    broken_ = status;
    begun_.clear();
  }
  return status;
}

void FsdpEngine::read(ShardArray array, std::span<const ParameterRange> ranges, std::span<float> values) const {
  Status status = run([&](LocalRank, RankModel& rank) { rank.read_shard(array, ranges, values); });
  if (status.ok()) return;
  // What could not be read is nothing that anybody would go on from.
  std::ranges::fill(values, std::numeric_limits<float>::quiet_NaN());
  broken_ = std::move(status);
}

void FsdpEngine::write(ShardArray array, std::span<const ParameterRange> ranges, std::span<const float> values,
                       ValuesOf of) {
  Status status = run([&](LocalRank, RankModel& rank) { rank.write_shard(array, ranges, values, of); });
  if (!status.ok()) broken_ = std::move(status);
}

FsdpEngine::BegunStep FsdpEngine::next_step(const TokenBatch& batch) const {
  return {.slot = begun_.empty() ? 0 : (begun_.back().slot + 1) % kResultSlots,
          .number = steps_ + 1 + static_cast<std::int64_t>(begun_.size()),
          .tokens = batch.token_count(),
          .predicted = batch.predicted_count(),
          .since = Clock::now()};
}

void FsdpEngine::enqueue(const BegunStep& step, const TokenBatch& batch, float learning_rate, LocalRank local,
                         RankModel& rank) {
  if (local.value == 0) rank.measure_seconds(step.slot);
  rank.forward_backward(share(batch, local), numbers(batch, learning_rate, step.number));
  rank.update(step.slot);
}

// Every rank waits for its own, so that each one's failure is seen. The sums are the same, so that all step or none
// does.
void FsdpEngine::await(const BegunStep& step, LocalRank local, RankModel& rank, FinishedStep& finished) {
  const StepResult result = rank.result(step.slot);
  if (local.value == 0) finished = {result, rank.take_seconds(step.slot)};
}

Result<StepReport> FsdpEngine::report_of(const BegunStep& step, const FinishedStep& finished) {
  const StepSums& sums = finished.result.sums;
  const auto now = Clock::now();
  StepReport report{.loss_nats = per_token(sums.cross_entropy, step.predicted),
                    .max_z_loss = options_.max_z_loss * per_token(sums.squared_max_logit, step.predicted),
                    .gradient_norm = std::sqrt(sums.gradient_squares),
                    .tokens = step.tokens,
                    .seconds = Seconds(now - std::max(step.since, finished_)).count(),
                    .parts = finished.parts};
  finished_ = now;
  if (finished.result.taken) {
    ++steps_;
    return report;
  }
  if (std::isfinite(report.loss_nats) && std::isfinite(report.max_z_loss) && std::isfinite(report.gradient_norm)) {
    return Error{ErrorCode::kNonFinite,
                 fmt::format("step {} was not taken, because one before it was not finite", step.number)};
  }
  return Error{ErrorCode::kNonFinite,
               fmt::format("step {}: loss {} and gradient norm {} are not both finite; the parameters were left as "
                           "they were. Lower the learning rate, or look at the data of this batch",
                           step.number, report.loss_nats, report.gradient_norm)};
}

// At once: a rank whose share is small does not leave the others before its device has met theirs.
Result<StepReport> FsdpEngine::train_step(const TokenBatch& batch, float learning_rate) {
  ATOLL_RETURN_IF_ERROR(check(batch));
  if (!begun_.empty()) return bad_option("a step is under way that is to be finished first");
  const BegunStep step = next_step(batch);
  FinishedStep finished;
  ATOLL_RETURN_IF_ERROR(run([&](LocalRank local, RankModel& rank) {
    enqueue(step, batch, learning_rate, local, rank);
    await(step, local, rank, finished);
  }));
  return report_of(step, finished);
}

Status FsdpEngine::begin_step(const TokenBatch& batch, float learning_rate) {
  ATOLL_RETURN_IF_ERROR(check(batch));
  if (begun_.size() == kResultSlots) return bad_option("two steps are under way, of which one is to be finished first");
  const BegunStep step = next_step(batch);
  ATOLL_RETURN_IF_ERROR(
      run([&](LocalRank local, RankModel& rank) { enqueue(step, batch, learning_rate, local, rank); }));
  begun_.push_back(step);
  return ok_status();
}

Result<StepReport> FsdpEngine::finish_step() {
  ATOLL_RETURN_IF_ERROR(broken_);
  if (begun_.empty()) return bad_option("no step is under way");
  const BegunStep step = begun_.front();
  FinishedStep finished;
  ATOLL_RETURN_IF_ERROR(run([&](LocalRank local, RankModel& rank) { await(step, local, rank, finished); }));
  begun_.pop_front();
  return report_of(step, finished);
}

Result<double> FsdpEngine::evaluate(const TokenBatch& batch) {
  ATOLL_RETURN_IF_ERROR(check(batch));
  double loss = 0;
  ATOLL_RETURN_IF_ERROR(run([&](LocalRank local, RankModel& rank) {
    const StepSums sums = rank.evaluate(share(batch, local));
    if (local.value == 0) loss = per_token(sums.cross_entropy, batch.predicted_count());
  }));
  if (!std::isfinite(loss)) return Error{ErrorCode::kNonFinite, "the loss of this model on this text is not finite"};
  return loss;
}

Result<GradientReport> FsdpEngine::gradients(const TokenBatch& batch) {
  ATOLL_RETURN_IF_ERROR(check(batch));
  GradientReport report;
  const std::int64_t predicted = batch.predicted_count();
  ATOLL_RETURN_IF_ERROR(run([&](LocalRank local, RankModel& rank) {
    rank.forward_backward(share(batch, local), numbers(batch, 0, 1));
    const StepSums sums = rank.sums();
    if (local.value != 0) return;
    report.loss_nats = per_token(sums.cross_entropy, predicted);
    report.max_z_loss = options_.max_z_loss * per_token(sums.squared_max_logit, predicted);
  }));
  report.gradients.resize(static_cast<std::size_t>(numel()));
  read(ShardArray::kGradients, whole(), report.gradients);
  ATOLL_RETURN_IF_ERROR(broken_);
  return report;
}

Result<std::vector<float>> FsdpEngine::logits(const TokenBatch& batch) {
  ATOLL_RETURN_IF_ERROR(check(batch));
  const std::int64_t vocab = config_.vocab_size;
  std::vector<float> all(static_cast<std::size_t>(batch.token_count() * vocab));
  ATOLL_RETURN_IF_ERROR(run([&](LocalRank local, RankModel& rank) {
    RankBatch mine = share(batch, local);
    mine.micro_sequences = std::max<std::int64_t>(1, mine.sequences);
    const std::vector<float> rows = rank.logits(mine, /*last_only=*/false);
    const std::int64_t first = first_sequence(batch.sequences, local.value, options_.local_ranks);
    std::ranges::copy(rows, all.begin() + first * batch.length * vocab);
  }));
  return all;
}

Result<std::vector<float>> FsdpEngine::next_token_logits(std::span<const std::int32_t> tokens) {
  // A batch carries labels too; the last one is not looked at.
  std::vector<std::int32_t> row(tokens.begin(), tokens.end());
  row.push_back(0);
  const TokenBatch batch{row, 1, static_cast<std::int64_t>(tokens.size())};
  ATOLL_RETURN_IF_ERROR(check(batch));
  std::vector<float> last(static_cast<std::size_t>(config_.vocab_size));
  ATOLL_RETURN_IF_ERROR(run([&](LocalRank local, RankModel& rank) {
    std::ranges::copy(rank.logits(share(batch, local), /*last_only=*/true), last.begin());
  }));
  return last;
}

EngineMemory FsdpEngine::memory() const {
  EngineMemory memory{.kept_bytes = step_.kept_bytes()};
  for (const auto& rank : ranks_) memory.step_bytes = std::max(memory.step_bytes, rank->step_bytes());
  return memory;
}

}  // namespace

std::int64_t TokenBatch::predicted_count() const {
  if (counts.empty()) return token_count();
  std::int64_t predicted = 0;
  for (std::int64_t i = 0; i < std::ssize(counts); ++i) {
    if (i % (length + 1) != 0 && counts[static_cast<std::size_t>(i)] != 0) ++predicted;
  }
  return predicted;
}

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

Result<std::unique_ptr<Engine>> create_engine(const ModelConfig& config, const EngineOptions& options,
                                              std::unique_ptr<DeviceGroup> group) {
  ATOLL_RETURN_IF_ERROR(config.validate());
  ATOLL_RETURN_IF_ERROR(options.validate());
  try {
    auto engine = std::make_unique<FsdpEngine>(config, options, std::move(group));
    ATOLL_RETURN_IF_ERROR(engine->start());
    return std::unique_ptr<Engine>(std::move(engine));
  } catch (const std::exception& error) {
    return Error{ErrorCode::kInternal, fmt::format("cannot set up the model: {}", error.what())};
  }
}

Result<std::unique_ptr<Engine>> Engine::create(const ModelConfig& config, const EngineOptions& options) {
  ATOLL_RETURN_IF_ERROR(options.validate());
  const int threads = std::max(1, options.compute_threads / options.local_ranks);
  return create_engine(config, options,
                       std::make_unique<CpuDeviceGroup>(options.local_ranks, threads, options.collective_timeout));
}

}  // namespace atl
