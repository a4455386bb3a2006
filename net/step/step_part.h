// What a step's time is spent on: the part that each operation belongs to, and the seconds of each part. Plain values;
// any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "net/step/operation.h"

namespace atl {

enum class StepPart : std::uint8_t {
  kMatMul,
  kAttention,      // with its scores' products
  kElementwise,    // embedding, norms, rotary angles, SwiGLU; filling and converting
  kLoss,           // cross-entropy; the logits are a product
  kOptimiser,      // the gradient's norm, its clipping, AdamW
  kCommunication,  // collectives, as far as computing waits for them (exposed)
  kCount
};
inline constexpr std::size_t kStepParts = static_cast<std::size_t>(StepPart::kCount);

// An operation that is not here does not compile.
namespace step_parts {

constexpr StepPart of(const Fill&) { return StepPart::kElementwise; }
constexpr StepPart of(const Convert&) { return StepPart::kElementwise; }
constexpr StepPart of(const Embed&) { return StepPart::kElementwise; }
constexpr StepPart of(const EmbedBackward&) { return StepPart::kElementwise; }
constexpr StepPart of(const RmsNorm&) { return StepPart::kElementwise; }
constexpr StepPart of(const RmsNormBackward&) { return StepPart::kElementwise; }
constexpr StepPart of(const MatMul&) { return StepPart::kMatMul; }
constexpr StepPart of(const Rope&) { return StepPart::kElementwise; }
constexpr StepPart of(const Attention&) { return StepPart::kAttention; }
constexpr StepPart of(const AttentionBackward&) { return StepPart::kAttention; }
constexpr StepPart of(const Swiglu&) { return StepPart::kElementwise; }
constexpr StepPart of(const SwigluBackward&) { return StepPart::kElementwise; }
constexpr StepPart of(const CrossEntropy&) { return StepPart::kLoss; }
constexpr StepPart of(const SquaredNorm&) { return StepPart::kOptimiser; }
constexpr StepPart of(const ClipScale&) { return StepPart::kOptimiser; }
constexpr StepPart of(const AdamW&) { return StepPart::kOptimiser; }
constexpr StepPart of(const AllGather&) { return StepPart::kCommunication; }
constexpr StepPart of(const ReduceScatter&) { return StepPart::kCommunication; }
constexpr StepPart of(const AllReduce&) { return StepPart::kCommunication; }
constexpr StepPart of(const CachedAttention&) { return StepPart::kAttention; }
constexpr StepPart of(const LogProbability&) { return StepPart::kLoss; }

}  // namespace step_parts

constexpr StepPart part_of(const Operation& operation) {
  return std::visit([](const auto& op) { return step_parts::of(op); }, operation);
}

// Of one rank.
struct StepSeconds {
  std::array<double, kStepParts> of{};

  double& operator[](StepPart part) { return of[static_cast<std::size_t>(part)]; }
  double operator[](StepPart part) const { return of[static_cast<std::size_t>(part)]; }
};

}  // namespace atl
