// The functions of cuBLASLt that the trainer calls, as a table that is filled when the program runs: from the library
// beside libtorch or the system's, or by a test. Types are those of NVIDIA's header, which is there where CUDA kernels
// are built. Plain values. Any thread.
#pragma once

#include <cublasLt.h>

#include <filesystem>

#include "net/base/gpu_libraries.h"
#include "net/base/result.h"

namespace atl {

struct CublasLtApi {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetVersion) get_version = nullptr;
  decltype(&cublasLtGetStatusString) get_status_string = nullptr;
  decltype(&cublasLtMatmulDescCreate) matmul_desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) matmul_desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) matmul_desc_set_attribute = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) matrix_layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) matrix_layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set_attribute = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) algo_get_heuristic = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
};

// From where net/base/gpu_libraries.h finds it. It stays loaded for as long as the program runs.
Result<CublasLtApi> open_cublas_lt(const std::filesystem::path& libtorch = libtorch_directory());

}  // namespace atl
