#include "trainer/engine/rank_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/model/model_kernels.h"

namespace atl {
namespace {

// Sampling asks for another length at each token.
constexpr std::size_t kMostPrograms = 16;

StepSums sums_of(const std::array<double, kStepSums>& values) {
  const auto of = [&](StepSum which) { return values[static_cast<std::size_t>(which)]; };
  return {of(StepSum::kCrossEntropy), of(StepSum::kSquaredLargestLogit), of(StepSum::kGradientSquares)};
}

}  // namespace

RankModel::RankModel(const ModelConfig& config, const LlamaStep& step, LocalRank rank, std::unique_ptr<Device> device)
    : config_(config), step_(step), rank_(rank), device_(std::move(device)), runner_(*device_) {
  device_->take_arena(Arena::kKept, step.kept_bytes());
}

// --- Programs ---

Program RankModel::make(Kind kind, std::int64_t sequences, std::int64_t length) const {
  switch (kind) {
    case Kind::kBegin: return step_.begin();
    case Kind::kFirst: return step_.micro_batch(sequences, length, true);
    case Kind::kNext: return step_.micro_batch(sequences, length, false);
    case Kind::kReduce: return step_.reduce();
    case Kind::kUpdate: return step_.update();
    case Kind::kEvaluate: return step_.evaluate(sequences, length);
    case Kind::kReduceSums: return step_.reduce_sums();
    case Kind::kLogits: return step_.logits(sequences, length, false);
    case Kind::kLastLogits: return step_.logits(sequences, length, true);
    case Kind::kRound: break;
  }
  return step_.round_parameters();
}

const Program& RankModel::program(Kind kind, std::int64_t sequences, std::int64_t length) {
  const auto same = [&](const Made& made) {
    return made.kind == kind && made.sequences == sequences && made.length == length;
  };
  const auto found = std::ranges::find_if(made_, same);
  if (found != made_.end()) {
    made_.splice(made_.begin(), made_, found);
  } else {
    runner_.join();  // it may hold the address of one that goes now
    if (made_.size() == kMostPrograms) made_.pop_back();
    made_.push_front({kind, sequences, length, make(kind, sequences, length)});
  }
  // Asked of each, also of one that was made before: what was to give it memory may have failed.
  const std::int64_t needed = made_.front().program.step_bytes();
  // Sampling asks for a token more each time, and would take the arena anew each time.
  const std::int64_t ahead = kind == Kind::kLastLogits ? step_bytes_ + step_bytes_ / 2 : 0;
  if (needed > step_bytes_) take_step_arena(std::max(needed, ahead));
  return made_.front().program;
}

void RankModel::take_step_arena(std::int64_t bytes) {
  runner_.join();
  device_->synchronize();
  step_bytes_ = 0;  // the old one goes before the new one comes
  device_->take_arena(Arena::kStep, bytes);
  step_bytes_ = bytes;
}

// --- Values ---

const Tensor& RankModel::tensor_of(ShardArray array) const {
  const KeptTensors& kept = step_.kept();
  switch (array) {
    case ShardArray::kParameters: return kept.parameters;
    case ShardArray::kGradients: return kept.gradients;
    case ShardArray::kFirstMoment: return kept.first_moment;
    case ShardArray::kSecondMoment: break;
  }
  return kept.second_moment;
}

template <class Copy>
void RankModel::for_each_piece(ShardArray array, std::span<const ParameterRange> ranges, Copy&& copy) const {
  std::int64_t before = 0;  // values of the ranges before this one
  for (const ParameterRange& range : ranges) {
    for (const FlatRun& run : step_.runs()) {
      if (!run.trained && array != ShardArray::kParameters) continue;
      const FlatPart& part = step_.part(run.unit, run.trained);
      const std::int64_t mine = part.shard * rank_.value;  // this rank's part, in the flat parameter
      const std::int64_t shift = run.canonical - run.place;
      const std::int64_t begin = std::max({range.offset, run.canonical, mine + shift});
      const std::int64_t end =
          std::min({range.offset + range.numel, run.canonical + run.numel, mine + part.shard + shift});
      if (begin < end) copy(part.offset + begin - shift - mine, before + begin - range.offset, begin, end - begin);
    }
    before += range.numel;
  }
}

void RankModel::read_shard(ShardArray array, std::span<const ParameterRange> ranges, std::span<float> values) {
  runner_.join();
  for_each_piece(array, ranges, [&](std::int64_t mine, std::int64_t place, std::int64_t, std::int64_t count) {
    device_->download(
        tensor_of(array).view(mine, 1, count),
        std::as_writable_bytes(values.subspan(static_cast<std::size_t>(place), static_cast<std::size_t>(count))));
  });
}

void RankModel::write_shard(ShardArray array, std::span<const ParameterRange> ranges, std::span<const float> values,
                            ValuesOf of) {
  runner_.join();
  for_each_piece(array, ranges, [&](std::int64_t mine, std::int64_t place, std::int64_t begin, std::int64_t count) {
    const auto from = static_cast<std::size_t>(of == ValuesOf::kModel ? begin : place);
    device_->upload(tensor_of(array).view(mine, 1, count),
                    std::as_bytes(values.subspan(from, static_cast<std::size_t>(count))));
  });
  if (array == ShardArray::kParameters) runner_.run(program(Kind::kRound));
  device_->synchronize();
}

// --- Steps ---

std::int64_t RankModel::micro_batch_size(const RankBatch& batch, std::int64_t index) const {
  const std::int64_t first = std::min(index * batch.micro_sequences, batch.sequences);
  return std::min(batch.micro_sequences, batch.sequences - first);
}

void RankModel::take_sequences(const RankBatch& batch, std::int64_t first, std::int64_t count) {
  inputs_.clear();
  labels_.clear();
  const auto row = static_cast<std::size_t>(batch.length + 1);
  for (auto at = static_cast<std::size_t>(first) * row; at < static_cast<std::size_t>(first + count) * row; at += row) {
    const auto tokens = batch.tokens.subspan(at, row);
    inputs_.insert(inputs_.end(), tokens.begin(), tokens.end() - 1);
    for (std::size_t i = 1; i < row; ++i) {
      const bool counts = batch.counts.empty() || batch.counts[at + i] != 0;
      labels_.push_back(counts ? tokens[i] : kNoLabel);
    }
  }
}

void RankModel::run_micro_batch(const RankBatch& batch, std::int64_t index, const Program& program) {
  const std::int64_t count = micro_batch_size(batch, index);
  if (count > 0) {
    const std::int64_t first = index * batch.micro_sequences;
    take_sequences(batch, first, count);
    order_.resize(inputs_.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::ranges::stable_sort(order_, {}, [&](std::int32_t r) { return inputs_[static_cast<std::size_t>(r)]; });
    if (rope_.length < batch.length) rope_ = rope_table(config_, batch.length);
    const auto angles = static_cast<std::size_t>(batch.length * (config_.head_dim / 2));
    device_->upload(program.input("tokens"), bytes_of(inputs_));
    device_->upload(program.input("labels"), bytes_of(labels_));
    device_->upload(program.input("order"), bytes_of(order_));
    if (step_.options().attention == AttentionScope::kDocument) {
      starts_.assign(inputs_.size(), 0);
      if (!batch.starts.empty()) {
        std::ranges::copy(batch.starts.subspan(static_cast<std::size_t>(first * batch.length), starts_.size()),
                          starts_.begin());
      }
      device_->upload(program.input("starts"), bytes_of(starts_));
    }
    device_->upload(program.input("cosines"), std::as_bytes(std::span(rope_.cosines).first(angles)));
    device_->upload(program.input("sines"), std::as_bytes(std::span(rope_.sines).first(angles)));
  }
  runner_.run(program);
  device_->mark();
  if (!batch.after_micro_batch) return;
  device_->await_mark();
  batch.after_micro_batch(batch.micro_batches - index - 1);
}

void RankModel::begin_sums(const StepNumbers& numbers) {
  std::vector<float> scalars(kStepScalars, 0.0f);
  const auto set = [&](StepScalar which, double value) {
    scalars[static_cast<std::size_t>(which)] = static_cast<float>(value);
  };
  const auto t = static_cast<double>(numbers.step);
  set(StepScalar::kLossScale, numbers.loss_scale);
  set(StepScalar::kDecay, 1 - static_cast<double>(numbers.learning_rate) * static_cast<double>(numbers.weight_decay));
  set(StepScalar::kStepSize, numbers.learning_rate / (1 - std::pow(static_cast<double>(step_.options().beta1), t)));
  set(StepScalar::kInverseCorrection2, 1 / std::sqrt(1 - std::pow(static_cast<double>(step_.options().beta2), t)));
  runner_.join();
  const Tensor& all = step_.kept().scalars;
  const std::int64_t count = numbers.others_under_way ? kHostScalars : kStepScalars;
  device_->upload(all.column_range(0, count), bytes_of(scalars).first(static_cast<std::size_t>(count) * sizeof(float)));
  device_->upload(step_.kept().sums, bytes_of(std::vector<double>(kStepSums, 0.0)));
}

void RankModel::forward_backward(const RankBatch& batch, const StepNumbers& numbers) {
  begin_sums(numbers);
  runner_.run(program(Kind::kBegin));
  for (std::int64_t index = 0; index < batch.micro_batches; ++index) {
    const Kind kind = index == 0 ? Kind::kFirst : Kind::kNext;
    const Program& pass = program(kind, micro_batch_size(batch, index), batch.length);
    runner_.join_before(pass);
    run_micro_batch(batch, index, pass);
  }
  runner_.run(program(Kind::kReduce));
}

StepSums RankModel::sums() {
  std::array<double, kStepSums> values{};
  runner_.join();
  device_->download(step_.kept().sums, std::as_writable_bytes(std::span(values)));
  return sums_of(values);
}

void RankModel::update(int slot) {
  runner_.run(program(Kind::kUpdate));
  runner_.join();
  const auto which = static_cast<std::int64_t>(StepScalar::kApply);
  device_->send_result(slot, std::array{step_.kept().sums, step_.kept().scalars.column_range(which, 1)});
}

StepResult RankModel::result(int slot) {
  std::array<std::byte, kStepSums * sizeof(double) + sizeof(float)> bytes{};
  static_assert(sizeof(bytes) <= kMostResultBytes);
  device_->await_result(slot, bytes);
  std::array<double, kStepSums> values{};
  float applied = 0;
  std::memcpy(values.data(), bytes.data(), sizeof(values));
  std::memcpy(&applied, bytes.data() + sizeof(values), sizeof(applied));
  return {sums_of(values), applied != 0};
}

StepSums RankModel::evaluate(const RankBatch& batch) {
  begin_sums({});
  runner_.run(program(Kind::kBegin));
  for (std::int64_t index = 0; index < batch.micro_batches; ++index) {
    const Program& pass = program(Kind::kEvaluate, micro_batch_size(batch, index), batch.length);
    runner_.join_before(pass);
    run_micro_batch(batch, index, pass);
  }
  runner_.run(program(Kind::kReduceSums));
  return sums();
}

std::vector<float> RankModel::logits(const RankBatch& batch, bool last_only) {
  const Kind kind = last_only ? Kind::kLastLogits : Kind::kLogits;
  runner_.run(program(Kind::kBegin));
  const Program& pass = program(kind, micro_batch_size(batch, 0), batch.length);
  runner_.join_before(pass);
  RankBatch quietly = batch;
  quietly.after_micro_batch = nullptr;
  run_micro_batch(quietly, 0, pass);
  const Tensor* output = pass.output("logits");
  if (output == nullptr) return {};
  runner_.join();
  std::vector<float> values(static_cast<std::size_t>(output->numel()));
  if (output->dtype == DType::kFloat32) {
    device_->download(*output, std::as_writable_bytes(std::span(values)));
  } else {
    std::vector<Bf16> rounded(values.size());
    device_->download(*output, std::as_writable_bytes(std::span(rounded)));
    value_kernels().widen(rounded.data(), output->numel(), values.data());
  }
  return values;
}

void RankModel::rest() {
  runner_.join();
  device_->synchronize();
  device_->rest();
}

void RankModel::reset() noexcept {
  device_->reset();
  runner_.forget();
}

}  // namespace atl
