// Matrix products on one GPU, by cuBLASLt. How a shape is computed is asked of the library when it first comes, and
// kept: later products of the shape only enqueue. Owned and used by the device's thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "net/step/program.h"
#include "trainer/device/cublas_lt.h"
#include "trainer/device/cuda_check.h"

namespace atl {

// A MatMul (net/step/operation.h) whose operands have their addresses.
struct Product {
  const MatMul& shape;
  const void* a = nullptr;
  const void* b = nullptr;
  const void* add = nullptr;  // nullptr: none
  void* out = nullptr;
};

class CublasProducts {
 public:
  explicit CublasProducts(const CublasLtApi& api);

  // fp32 operands are multiplied as such, never rounded to TF32. Sums are fp32, and rounded once, also where several
  // blocks of threads add up one product. The same bits each time.
  void multiply(const Product& product, StreamId stream, cudaStream_t cuda_stream);

  std::size_t plans() const { return plans_.size(); }

  // Of each stream.
  static constexpr std::size_t kWorkspaceBytes = 32u << 20;

 private:
  // All that the library's choice depends on. Alignments: of addresses, in bytes.
  struct Key {
    std::int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0, ldd = 0;
    DType operands = DType::kFloat32, out = DType::kFloat32;
    bool transpose_a = false, transpose_b = false, adds = false;
    std::uint32_t align_a = 0, align_b = 0, align_c = 0, align_d = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  template <class Handle>
  using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, cublasStatus_t (*)(Handle)>;
  struct Plan {
    Owned<cublasLtMatmulDesc_t> product;
    Owned<cublasLtMatrixLayout_t> a, b, c, d;
    cublasLtMatmulAlgo_t algorithm{};
    std::size_t workspace_bytes = 0;
  };

  static Key key_of(const Product& product);
  const Plan& plan(const Key& key);
  Plan make_plan(const Key& key) const;
  Owned<cublasLtMatrixLayout_t> layout(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t stride) const;
  void choose(const Key& key, Plan& plan) const;
  void check(cublasStatus_t status, const char* call, const Key& key) const;

  const CublasLtApi api_;
  Owned<cublasLtHandle_t> handle_;
  std::array<DeviceMemory, kStreams> workspaces_;
  std::unordered_map<Key, Plan, Hash> plans_;
};

}  // namespace atl
