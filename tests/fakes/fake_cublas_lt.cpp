#include "tests/fakes/fake_cublas_lt.h"

#include <atomic>
#include <cstring>
#include <vector>

#include "kernels/model/model_kernels.h"
#include "tests/fakes/fake_cuda_runtime.h"

// The library's structures are declared in its header and defined by it alone.
struct cublasLtContext {
  int unused = 0;
};

namespace atl::test {
namespace {

std::atomic<int> heuristics = 0, products = 0, open_things = 0;

// Opaque to callers, as large as they say in the header.
struct Desc {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t a, b;
};
struct Layout {
  cudaDataType_t type;
  std::uint64_t rows, columns;
  std::int64_t stride;
};
struct Preference {
  std::uint64_t workspace_bytes;
  std::uint32_t reductions;
  std::uint32_t a, b, c, d;  // alignments
};
struct Algorithm {
  std::uint32_t mark;
  std::uint32_t a, b, c, d;
  std::uint64_t workspace_bytes;
};
constexpr std::uint32_t kMark = 0x5eed;
constexpr std::size_t kWorkspace = 4096;
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

template <class Mine, class Handle>
Handle handle_of(Mine* mine) {
  ++open_things;
  return reinterpret_cast<Handle>(mine);
}
template <class Mine, class Handle>
cublasStatus_t end(Handle handle) {
  delete reinterpret_cast<Mine*>(handle);
  --open_things;
  return CUBLAS_STATUS_SUCCESS;
}

template <class Value>
cublasStatus_t take(Value& to, const void* from, std::size_t bytes) {
  if (bytes != sizeof(Value)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

bool aligned(const void* address, std::uint32_t alignment) {
  return reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
}

float value(const void* matrix, const Layout& layout, std::int64_t row, std::int64_t column) {
  const std::int64_t at = row + column * layout.stride;
  if (layout.type == CUDA_R_32F) return static_cast<const float*>(matrix)[at];
  float widened = 0;
  const std::uint32_t bits = std::uint32_t{static_cast<const std::uint16_t*>(matrix)[at]} << 16;
  std::memcpy(&widened, &bits, sizeof bits);
  return widened;
}

std::size_t extent_bytes(const Layout& layout) {
  const std::size_t size = layout.type == CUDA_R_32F ? 4 : 2;
  return ((layout.columns - 1) * static_cast<std::size_t>(layout.stride) + layout.rows) * size;
}

// Everything that the product needs once the descriptors are gone.
struct Product {
  Desc desc;
  Layout a, b, c, d;
  const void *pa, *pb, *pc;
  void* pd;
  float beta;

  void run() const {
    const auto m = static_cast<std::int64_t>(d.rows), n = static_cast<std::int64_t>(d.columns);
    const auto k = static_cast<std::int64_t>(desc.a == CUBLAS_OP_N ? a.columns : a.rows);
    std::vector<float> left(static_cast<std::size_t>(m * k)), right(static_cast<std::size_t>(k));
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t l = 0; l < k; ++l) {
        left[static_cast<std::size_t>(i * k + l)] = desc.a == CUBLAS_OP_N ? value(pa, a, i, l) : value(pa, a, l, i);
      }
    }
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t l = 0; l < k; ++l) {
        right[static_cast<std::size_t>(l)] = desc.b == CUBLAS_OP_N ? value(pb, b, l, j) : value(pb, b, j, l);
      }
      for (std::int64_t i = 0; i < m; ++i) {
        const float* row = left.data() + i * k;
        float sum = 0;
        for (std::int64_t l = 0; l < k; ++l) sum += row[l] * right[static_cast<std::size_t>(l)];
        if (beta != 0) sum += beta * value(pc, c, i, j);
        const std::int64_t at = i + j * d.stride;
        if (d.type == CUDA_R_32F) {
          static_cast<float*>(pd)[at] = sum;
        } else {
          value_kernels().round_to_bf16(&sum, 1, static_cast<Bf16*>(pd) + at);
        }
      }
    }
  }
};

struct Functions {
  static cublasStatus_t create(cublasLtHandle_t* handle) {
    *handle = handle_of<cublasLtContext, cublasLtHandle_t>(new cublasLtContext);
    return CUBLAS_STATUS_SUCCESS;
  }
  static cublasStatus_t destroy(cublasLtHandle_t handle) { return end<cublasLtContext>(handle); }
  static std::size_t get_version() { return CUBLAS_VERSION; }
  static const char* get_status_string(cublasStatus_t status) {
    return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "a status of cuBLASLt";
  }

  static cublasStatus_t desc_create(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute, cudaDataType_t scale) {
    *desc = handle_of<Desc, cublasLtMatmulDesc_t>(new Desc{compute, scale, CUBLAS_OP_N, CUBLAS_OP_N});
    return CUBLAS_STATUS_SUCCESS;
  }
  static cublasStatus_t desc_destroy(cublasLtMatmulDesc_t desc) { return end<Desc>(desc); }
  static cublasStatus_t desc_set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t which, const void* from,
                                 std::size_t bytes) {
    auto& mine = *reinterpret_cast<Desc*>(desc);
    if (which == CUBLASLT_MATMUL_DESC_TRANSA) return take(mine.a, from, bytes);
    if (which == CUBLASLT_MATMUL_DESC_TRANSB) return take(mine.b, from, bytes);
    return CUBLAS_STATUS_INVALID_VALUE;
  }

  static cublasStatus_t layout_create(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                      std::uint64_t columns, std::int64_t stride) {
    if (rows == 0 || columns == 0 || stride < static_cast<std::int64_t>(rows)) return CUBLAS_STATUS_INVALID_VALUE;
    *layout = handle_of<Layout, cublasLtMatrixLayout_t>(new Layout{type, rows, columns, stride});
    return CUBLAS_STATUS_SUCCESS;
  }
  static cublasStatus_t layout_destroy(cublasLtMatrixLayout_t layout) { return end<Layout>(layout); }

  static cublasStatus_t preference_create(cublasLtMatmulPreference_t* preference) {
    *preference = handle_of<Preference, cublasLtMatmulPreference_t>(
        new Preference{0, CUBLASLT_REDUCTION_SCHEME_MASK, 256, 256, 256, 256});
    return CUBLAS_STATUS_SUCCESS;
  }
  static cublasStatus_t preference_destroy(cublasLtMatmulPreference_t preference) {
    return end<Preference>(preference);
  }
  static cublasStatus_t preference_set(cublasLtMatmulPreference_t preference,
                                       cublasLtMatmulPreferenceAttributes_t which, const void* from,
                                       std::size_t bytes) {
    auto& mine = *reinterpret_cast<Preference*>(preference);
    switch (which) {
      case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return take(mine.workspace_bytes, from, bytes);
      case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return take(mine.reductions, from, bytes);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return take(mine.a, from, bytes);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return take(mine.b, from, bytes);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return take(mine.c, from, bytes);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return take(mine.d, from, bytes);
      default: return CUBLAS_STATUS_INVALID_VALUE;
    }
  }

  // Sizes that fit one another, types that the library multiplies.
  static bool consistent(const Desc& desc, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
    const auto rows = [](const Layout& x, cublasOperation_t op) { return op == CUBLAS_OP_N ? x.rows : x.columns; };
    const auto columns = [](const Layout& x, cublasOperation_t op) { return op == CUBLAS_OP_N ? x.columns : x.rows; };
    const bool types = desc.compute == CUBLAS_COMPUTE_32F && desc.scale == CUDA_R_32F && a.type == b.type &&
                       c.type == d.type && (a.type == CUDA_R_16BF || d.type == CUDA_R_32F);
    return types && rows(a, desc.a) == d.rows && columns(b, desc.b) == d.columns &&
           columns(a, desc.a) == rows(b, desc.b) && c.rows == d.rows && c.columns == d.columns;
  }

  static cublasStatus_t heuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                  cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                  cublasLtMatmulPreference_t preference, int wanted,
                                  cublasLtMatmulHeuristicResult_t* best, int* found) {
    ++heuristics;
    *found = 0;
    const auto layout = [](cublasLtMatrixLayout_t x) -> const Layout& { return *reinterpret_cast<Layout*>(x); };
    const auto& wish = *reinterpret_cast<Preference*>(preference);
    if (wanted < 1 || !consistent(*reinterpret_cast<Desc*>(desc), layout(a), layout(b), layout(c), layout(d))) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    const bool rounds =
        layout(d).type != CUDA_R_32F && (wish.reductions & ~CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) != 0;
    if (rounds || wish.workspace_bytes < kWorkspace) return CUBLAS_STATUS_NOT_SUPPORTED;
    *best = {};
    const Algorithm chosen{kMark, wish.a, wish.b, wish.c, wish.d, kWorkspace};
    std::memcpy(&best->algo, &chosen, sizeof chosen);
    best->workspaceSize = kWorkspace;
    best->state = CUBLAS_STATUS_SUCCESS;
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
  }

  static cublasStatus_t multiply(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha, const void* pa,
                                 cublasLtMatrixLayout_t a, const void* pb, cublasLtMatrixLayout_t b, const void* beta,
                                 const void* pc, cublasLtMatrixLayout_t c, void* pd, cublasLtMatrixLayout_t d,
                                 const cublasLtMatmulAlgo_t* algorithm, void* workspace, std::size_t workspace_bytes,
                                 cudaStream_t stream) {
    const auto layout = [](cublasLtMatrixLayout_t x) -> const Layout& { return *reinterpret_cast<Layout*>(x); };
    Algorithm chosen;
    std::memcpy(&chosen, algorithm, sizeof chosen);
    const Product product{*reinterpret_cast<Desc*>(desc),  layout(a), layout(b), layout(c), layout(d), pa, pb, pc, pd,
                          *static_cast<const float*>(beta)};
    const bool well =
        chosen.mark == kMark && *static_cast<const float*>(alpha) == 1 && aligned(pa, chosen.a) &&
        aligned(pb, chosen.b) && aligned(pc, chosen.c) && aligned(pd, chosen.d) &&
        workspace_bytes >= chosen.workspace_bytes && FakeCuda::on_a_gpu(workspace, workspace_bytes) &&
        FakeCuda::on_a_gpu(pa, extent_bytes(product.a)) && FakeCuda::on_a_gpu(pb, extent_bytes(product.b)) &&
        FakeCuda::on_a_gpu(pc, extent_bytes(product.c)) && FakeCuda::on_a_gpu(pd, extent_bytes(product.d));
    if (!well) return CUBLAS_STATUS_INVALID_VALUE;
    ++products;
    const cudaError_t error = FakeCuda::launch(stream, [product, workspace, workspace_bytes] {
      std::memset(workspace, 0xff, workspace_bytes);
      product.run();
    });
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
  }
};

}  // namespace

FakeCublasLt::FakeCublasLt() { heuristics = products = open_things = 0; }
FakeCublasLt::Counts FakeCublasLt::counts() const { return {heuristics, products, open_things}; }

CublasLtApi FakeCublasLt::api() {
  return {.create = Functions::create,
          .destroy = Functions::destroy,
          .get_version = Functions::get_version,
          .get_status_string = Functions::get_status_string,
          .matmul_desc_create = Functions::desc_create,
          .matmul_desc_destroy = Functions::desc_destroy,
          .matmul_desc_set_attribute = Functions::desc_set,
          .matrix_layout_create = Functions::layout_create,
          .matrix_layout_destroy = Functions::layout_destroy,
          .preference_create = Functions::preference_create,
          .preference_destroy = Functions::preference_destroy,
          .preference_set_attribute = Functions::preference_set,
          .algo_get_heuristic = Functions::heuristic,
          .matmul = Functions::multiply};
}

}  // namespace atl::test
