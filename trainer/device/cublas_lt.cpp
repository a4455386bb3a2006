#include "trainer/device/cublas_lt.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>
#include <type_traits>

namespace atl {
namespace {

// Of the header's major version, whose functions and values these are.
constexpr std::size_t kMajor = CUBLAS_VER_MAJOR;

template <class Function>
void load(const OpenLibrary& library, Function*& function, const char* name, std::string& missing) {
  function = library.function<Function>(name);
  if (function == nullptr && missing.empty()) missing = name;
}

Result<CublasLtApi> load(const OpenLibrary& library) {
  CublasLtApi api;
  std::string missing;
  load(library, api.create, "cublasLtCreate", missing);
  load(library, api.destroy, "cublasLtDestroy", missing);
  load(library, api.get_version, "cublasLtGetVersion", missing);
  load(library, api.get_status_string, "cublasLtGetStatusString", missing);
  load(library, api.matmul_desc_create, "cublasLtMatmulDescCreate", missing);
  load(library, api.matmul_desc_destroy, "cublasLtMatmulDescDestroy", missing);
  load(library, api.matmul_desc_set_attribute, "cublasLtMatmulDescSetAttribute", missing);
  load(library, api.matrix_layout_create, "cublasLtMatrixLayoutCreate", missing);
  load(library, api.matrix_layout_destroy, "cublasLtMatrixLayoutDestroy", missing);
  load(library, api.preference_create, "cublasLtMatmulPreferenceCreate", missing);
  load(library, api.preference_destroy, "cublasLtMatmulPreferenceDestroy", missing);
  load(library, api.preference_set_attribute, "cublasLtMatmulPreferenceSetAttribute", missing);
  load(library, api.algo_get_heuristic, "cublasLtMatmulAlgoGetHeuristic", missing);
  load(library, api.matmul, "cublasLtMatmul", missing);
  if (!missing.empty()) {
    return Error{ErrorCode::kVersionUnsupported, fmt::format("it lacks {}: {}", missing, kGpuLibrariesFix)};
  }
  if (const std::size_t version = api.get_version(); version / 10000 != kMajor) {
    return Error{ErrorCode::kVersionUnsupported,
                 fmt::format("its version code is {}, of CUDA {}; this program was built for CUDA {}: {}", version,
                             version / 10000, kMajor, kGpuLibrariesFix)};
  }
  return api;
}

}  // namespace

Result<CublasLtApi> open_cublas_lt(const std::filesystem::path& libtorch) {
  ATOLL_ASSIGN_OR_RETURN(const OpenLibrary library, open_gpu_library(GpuLibrary::kCublasLt, libtorch));
  auto api = load(library);
  if (!api.ok()) return api.error().with_context(library.path());
  // Never unloaded. The handle may go.
  if (void* pinned = ::dlopen(library.path().c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)) ::dlclose(pinned);
  return api;
}

}  // namespace atl
