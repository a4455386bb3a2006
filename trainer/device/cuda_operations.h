// Enqueues operations (net/step/operation.h) on one GPU: kernels/model's kernels, cuBLASLt's products, attention, the
// collectives. Owned and used by the device's thread.
#pragma once

#include <array>

#include "net/step/operation.h"
#include "net/step/program.h"
#include "trainer/device/cublas_products.h"
#include "trainer/device/cuda_attention.h"
#include "trainer/device/cuda_collectives.h"

namespace atl {

// What a CUDA device computes with. All of its own.
struct CudaTools {
  CublasProducts& products;
  CudaAttention& attention;
  CudaCollectives& collectives;
  std::array<std::byte*, kArenas> arenas;
};

void enqueue(const CudaTools& tools, const Operation& operation, StreamId stream, cudaStream_t cuda_stream);

// "RmsNorm [8192, 2048] bf16": for errors.
std::string describe(const Operation& operation);

}  // namespace atl
