// Measures the cards with CUDA: matrix multiplications (cuBLASLt, bf16, verified), copies within the card and from
// pinned memory, an all-reduce over all cards (NCCL, verified). Writes the lines of net/check/gpu_probe.h to standard
// output. For atoll-gpu-probe alone: it may hang or crash. One thread.
#pragma once

namespace atl {

// The program's exit status.
int measure_gpus_with_cuda(double matmul_seconds);

}  // namespace atl
