// What a device asks of the programs that it is to run, so that they can be laid out where there is no such device: by
// the node check and by `hub init` as well as by the trainer. Plain values. Any thread.
#pragma once

#include <cstdint>

#include "net/step/operation.h"

namespace atl {

struct CachedAttentionSizes;  // kernels/model/cached_attention.h

enum class DeviceKind : std::uint8_t { kCpu, kCuda };

struct StepTraits {
  DeviceKind kind = DeviceKind::kCpu;
  // Of Attention::scratch and AttentionBackward::scratch, in bytes.
  std::int64_t (*attention_scratch)(const AttentionShape&, DType, int threads) = nullptr;
  // Of CachedAttention::scratch, in bytes; on a GPU only where the keys of few rows are divided.
  std::int64_t (*cached_attention_scratch)(const CachedAttentionSizes&, std::int64_t rows, int threads) = nullptr;
  // Most logits of a slice of rows that are there at once. On a GPU wide enough to fill its matrix units.
  std::int64_t most_logits = 1 << 24;
  // ReduceScatter needs scratch to add to what the shard holds.
  bool reduce_scatter_scratch = false;
  // Collectives run beside computing: the next unit is gathered meanwhile, and a gradient may be reduced while the
  // block before goes backward, which takes memory for both.
  bool overlaps = false;
  int threads = 1;  // of the host, that one rank computes with
};

StepTraits cpu_step_traits(int threads);

// What computes attention on a GPU: scratch is for cuDNN's kernels, or for our own alone.
enum class GpuAttention : std::uint8_t { kOwn, kCudnn };
// A GPU: collectives overlap, and slices of logits are wide (2,093 rows at a vocabulary of 128,256: 0.5 GB in bf16).
// adds_by_scratch: the ranks reduce over NCCL, which overwrites.
StepTraits cuda_step_traits(GpuAttention attention = GpuAttention::kCudnn, bool adds_by_scratch = true);

}  // namespace atl
