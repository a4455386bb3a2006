#include "net/step/llama_step.h"

#include "net/model/train_only.h"
#include "net/step/llama_program.h"

namespace atl {
namespace {

// In elements: so that what is gathered begins, for every rank, where 16 bytes at once can be read.
std::int64_t aligned_shard(std::int64_t numel) { return (numel + 31) / 32 * 32; }

}  // namespace

LlamaStep::LlamaStep(const ModelConfig& config, const StepOptions& options)
    : config_(config), options_(options), layout_(layout_of_training(config, options.train_only)) {
  place_parts();
  std::int64_t trained = 0, total = 0;
  for (const bool which : {true, false}) {
    for (std::array<FlatPart, 2>& unit : parts_) {
      FlatPart& part = unit[which ? 1 : 0];
      part.offset = total;
      part.shard = aligned_shard((part.numel + options.ranks - 1) / options.ranks);
      total += part.shard;
    }
    if (which) trained = total;
  }
  kept_.parameters = buffers_.add("parameters", DType::kFloat32, 1, total);
  kept_.gradients = buffers_.add("gradients", DType::kFloat32, 1, trained);
  kept_.first_moment = buffers_.add("first moment", DType::kFloat32, 1, trained);
  kept_.second_moment = buffers_.add("second moment", DType::kFloat32, 1, trained);
  const bool rounded = options.precision == Precision::kBf16;
  kept_.weights = rounded ? buffers_.add("weights", DType::kBfloat16, 1, total) : kept_.parameters;
  kept_.scalars = buffers_.add("scalars", DType::kFloat32, 1, kStepScalars);
  kept_.sums = buffers_.add("sums", DType::kFloat64, 1, kStepSums);
  if (options.ranks > 1 && options.keep_gathered) {
    kept_.full_weights = buffers_.add("gathered weights", element(), 1, total * options.ranks);
    kept_.full_gradients = buffers_.add("whole gradients", DType::kFloat32, 1, trained * options.ranks);
  }
}

void LlamaStep::place_parts() {
  parts_.resize(layout_.units.size());
  for (std::size_t u = 0; u < layout_.units.size(); ++u) {
    const ParameterUnit& unit = layout_.units[u];
    for (std::size_t i = 0; i < unit.parameter_count; ++i) {
      const ParameterInfo& parameter = layout_.parameters[unit.first_parameter + i];
      FlatPart& part = parts_[u][parameter.trained ? 1 : 0];
      const bool goes_on = i > 0 && runs_.back().trained == parameter.trained;
      if (goes_on) {
        runs_.back().numel += parameter.numel;
      } else {
        runs_.push_back({u, parameter.trained, parameter.offset, part.numel, parameter.numel});
      }
      places_.push_back(part.numel);
      part.numel += parameter.numel;
    }
  }
}

Program LlamaStep::begin() const {
  ProgramBuilder builder;
  if (kept_.full_weights.numel() > 0) {
    for (const auto& unit : parts_) {
      for (const FlatPart& part : unit) {
        if (part.shard == 0) continue;
        builder.collective(
            AllGather{kept_.weights.view(part.offset, 1, part.shard),
                      kept_.full_weights.view(part.offset * options_.ranks, 1, part.shard * options_.ranks)});
      }
    }
  }
  return builder.finish();
}

Program LlamaStep::micro_batch(std::int64_t sequences, std::int64_t length, bool first) const {
  LlamaProgram program(*this, sequences, length);
  program.train(first);
  return program.finish();
}

Program LlamaStep::evaluate(std::int64_t sequences, std::int64_t length) const {
  LlamaProgram program(*this, sequences, length);
  program.evaluate();
  return program.finish();
}

Program LlamaStep::logits(std::int64_t sequences, std::int64_t length, bool last_only) const {
  LlamaProgram program(*this, sequences, length);
  program.logits(last_only);
  return program.finish();
}

Program LlamaStep::reduce() const {
  ProgramBuilder builder;
  if (kept_.full_gradients.numel() > 0) {
    for (const auto& unit : parts_) {
      const FlatPart& part = unit[1];
      if (part.shard == 0) continue;
      ReduceScatter reduce{kept_.full_gradients.view(part.offset * options_.ranks, 1, part.shard * options_.ranks),
                           kept_.gradients.view(part.offset, 1, part.shard), std::nullopt, /*accumulate=*/false};
      builder.collective(reduce);
    }
  }
  const Tensor scratch = builder.buffer("partial squares", DType::kFloat64, 1, square_parts(trained_shard_numel()));
  const auto squares = static_cast<std::int64_t>(StepSum::kGradientSquares);
  builder.compute(SquaredNorm{kept_.gradients, kept_.sums.column_range(squares, 1), scratch});
  if (options_.ranks > 1) builder.collective(AllReduce{kept_.sums});
  return builder.finish();
}

Program LlamaStep::update() const {
  ProgramBuilder builder;
  builder.compute(ClipScale{kept_.sums, kept_.scalars, options_.clip_norm});
  const std::int64_t trained = trained_shard_numel();
  AdamW adamw{kept_.parameters.view(0, 1, trained),
              kept_.gradients,
              kept_.first_moment,
              kept_.second_moment,
              std::nullopt,
              kept_.scalars,
              options_.beta1,
              options_.beta2,
              options_.epsilon};
  if (options_.precision == Precision::kBf16) adamw.rounded = kept_.weights.view(0, 1, trained);
  builder.compute(adamw);
  return builder.finish();
}

Program LlamaStep::reduce_sums() const {
  ProgramBuilder builder;
  if (options_.ranks > 1) builder.collective(AllReduce{kept_.sums});
  return builder.finish();
}

Program LlamaStep::round_parameters() const {
  ProgramBuilder builder;
  if (options_.precision == Precision::kBf16) builder.compute(Convert{kept_.parameters, kept_.weights});
  return builder.finish();
}

}  // namespace atl
