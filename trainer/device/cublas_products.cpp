#include "trainer/device/cublas_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace atl {
namespace {

// Sampling asks for another shape at each token.
constexpr std::size_t kMostPlans = 4096;

// The largest power of two that divides the address, as far as the library looks at it.
std::uint32_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address) | 256;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

cudaDataType_t type_of(DType dtype) { return dtype == DType::kBfloat16 ? CUDA_R_16BF : CUDA_R_32F; }
const char* name_of(DType dtype) { return dtype == DType::kBfloat16 ? "bf16" : "fp32"; }

}  // namespace

std::size_t CublasProducts::Hash::operator()(const Key& key) const {
  std::size_t hash = 0;
  const auto mix = [&](std::int64_t value) {
    hash = (hash ^ static_cast<std::size_t>(value)) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29;
  };
  for (const std::int64_t value : {key.m, key.n, key.k, key.lda, key.ldb, key.ldc, key.ldd}) mix(value);
  mix(static_cast<int>(key.operands) * 64 + static_cast<int>(key.out) * 8 + key.transpose_a * 4 + key.transpose_b * 2 +
      key.adds);
  for (const std::uint32_t alignment : {key.align_a, key.align_b, key.align_c, key.align_d}) mix(alignment);
  return hash;
}

CublasProducts::CublasProducts(const CublasLtApi& api) : api_(api), handle_(nullptr, api.destroy) {
  cublasLtHandle_t handle = nullptr;
  if (const cublasStatus_t status = api_.create(&handle); status != CUBLAS_STATUS_SUCCESS) {
    throw std::runtime_error(fmt::format("cuBLASLt does not start: {}", api_.get_status_string(status)));
  }
  handle_.reset(handle);
  for (DeviceMemory& workspace : workspaces_) {
    workspace = make_device_memory(kWorkspaceBytes, "the matrix products' workspace");
  }
}

void CublasProducts::check(cublasStatus_t status, const char* call, const Key& key) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(fmt::format("product {} x {} x {}, {}{} x {}{} to {}, strides {}, {}, {}, {}: {}: {}", key.m,
                                       key.n, key.k, name_of(key.operands), key.transpose_a ? " transposed" : "",
                                       name_of(key.operands), key.transpose_b ? " transposed" : "", name_of(key.out),
                                       key.lda, key.ldb, key.ldc, key.ldd, call, api_.get_status_string(status)));
}

CublasProducts::Key CublasProducts::key_of(const Product& product) {
  const MatMul& shape = product.shape;
  const void* c = product.add != nullptr ? product.add : product.out;
  return {.m = shape.out.rows,
          .n = shape.out.columns,
          .k = shape.transpose_a ? shape.a.rows : shape.a.columns,
          .lda = shape.a.stride,
          .ldb = shape.b.stride,
          .ldc = product.add != nullptr ? shape.add->stride : shape.out.stride,
          .ldd = shape.out.stride,
          .operands = shape.a.dtype,
          .out = shape.out.dtype,
          .transpose_a = shape.transpose_a,
          .transpose_b = shape.transpose_b,
          .adds = shape.accumulate || product.add != nullptr,
          .align_a = alignment_of(product.a),
          .align_b = alignment_of(product.b),
          .align_c = alignment_of(c),
          .align_d = alignment_of(product.out)};
}

CublasProducts::Owned<cublasLtMatrixLayout_t> CublasProducts::layout(DType dtype, std::int64_t rows,
                                                                     std::int64_t columns, std::int64_t stride) const {
  cublasLtMatrixLayout_t made = nullptr;
  // A single row may say any stride; the library wants one that its columns fit.
  const cublasStatus_t status = api_.matrix_layout_create(&made, type_of(dtype), static_cast<std::uint64_t>(columns),
                                                          static_cast<std::uint64_t>(rows), std::max(stride, columns));
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw std::runtime_error(fmt::format("cublasLtMatrixLayoutCreate of {} x {}, stride {}: {}", rows, columns, stride,
                                         api_.get_status_string(status)));
  }
  return {made, api_.matrix_layout_destroy};
}

// The library's matrices are column-major: ours, transposed. out^T = b^T a^T, so that its first operand is b, and each
// is transposed there where it is here.
CublasProducts::Plan CublasProducts::make_plan(const Key& key) const {
  const auto stored = [&](DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t stride, bool transposed) {
    return transposed ? layout(dtype, columns, rows, stride) : layout(dtype, rows, columns, stride);
  };
  cublasLtMatmulDesc_t product = nullptr;
  check(api_.matmul_desc_create(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate", key);
  Plan plan{.product = {product, api_.matmul_desc_destroy},
            .a = stored(key.operands, key.k, key.n, key.ldb, key.transpose_b),
            .b = stored(key.operands, key.m, key.k, key.lda, key.transpose_a),
            .c = layout(key.out, key.m, key.n, key.ldc),
            .d = layout(key.out, key.m, key.n, key.ldd)};
  const auto set = [&](cublasLtMatmulDescAttributes_t which, bool transposed) {
    const cublasOperation_t operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(api_.matmul_desc_set_attribute(product, which, &operation, sizeof operation),
          "cublasLtMatmulDescSetAttribute", key);
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, key.transpose_b);
  set(CUBLASLT_MATMUL_DESC_TRANSB, key.transpose_a);
  choose(key, plan);
  return plan;
}

void CublasProducts::choose(const Key& key, Plan& plan) const {
  cublasLtMatmulPreference_t made = nullptr;
  check(api_.preference_create(&made), "cublasLtMatmulPreferenceCreate", key);
  const Owned<cublasLtMatmulPreference_t> preference(made, api_.preference_destroy);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t which, const auto& value) {
    check(api_.preference_set_attribute(made, which, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute",
          key);
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kWorkspaceBytes});
  // Of a sum that several blocks share: parts that are added up in `out` would each be rounded to its type.
  const auto exact = static_cast<std::uint32_t>(key.out == DType::kFloat32 ? CUBLASLT_REDUCTION_SCHEME_MASK
                                                                           : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, exact);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.align_b);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.align_a);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.align_c);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.align_d);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  check(api_.algo_get_heuristic(handle_.get(), plan.product.get(), plan.a.get(), plan.b.get(), plan.c.get(),
                                plan.d.get(), made, 1, &best, &found),
        "cublasLtMatmulAlgoGetHeuristic", key);
  check(found > 0 ? best.state : CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmulAlgoGetHeuristic", key);
  plan.algorithm = best.algo;
  plan.workspace_bytes = best.workspaceSize;
}

const CublasProducts::Plan& CublasProducts::plan(const Key& key) {
  const auto found = plans_.find(key);
  if (found != plans_.end()) return found->second;
  if (plans_.size() >= kMostPlans) plans_.clear();  // what is enqueued does not refer to them
  return plans_.emplace(key, make_plan(key)).first->second;
}

void CublasProducts::multiply(const Product& product, StreamId stream, cudaStream_t cuda_stream) {
  if (product.shape.out.numel() == 0) return;
  const Key key = key_of(product);
  const Plan& chosen = plan(key);
  const float alpha = 1, beta = key.adds ? 1 : 0;
  const void* c = product.add != nullptr ? product.add : product.out;
  check(api_.matmul(handle_.get(), chosen.product.get(), &alpha, product.b, chosen.a.get(), product.a, chosen.b.get(),
                    &beta, c, chosen.c.get(), product.out, chosen.d.get(), &chosen.algorithm,
                    workspaces_[static_cast<std::size_t>(stream)].get(), chosen.workspace_bytes, cuda_stream),
        "cublasLtMatmul", key);
}

}  // namespace atl
