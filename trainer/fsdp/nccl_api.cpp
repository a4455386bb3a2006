#include "trainer/fsdp/nccl_api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>

namespace atl {
namespace {

// Fills functions of one library, and remembers the first that it lacks.
class Loader {
 public:
  explicit Loader(const OpenLibrary& library) : library_(library) {}

  template <class Function>
  void load(Function*& function, const char* name) {
    function = library_.function<Function>(name);
    if (function == nullptr && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  const OpenLibrary& library_;
  std::string missing_;
};

Result<NcclApi> load(const OpenLibrary& library) {
  Loader loader(library);
  NcclApi api;
  loader.load(api.get_version, "ncclGetVersion");
  loader.load(api.get_unique_id, "ncclGetUniqueId");
  loader.load(api.comm_init_rank_config, "ncclCommInitRankConfig");
  loader.load(api.comm_get_async_error, "ncclCommGetAsyncError");
  loader.load(api.comm_abort, "ncclCommAbort");
  loader.load(api.comm_finalize, "ncclCommFinalize");
  loader.load(api.comm_destroy, "ncclCommDestroy");
  loader.load(api.group_start, "ncclGroupStart");
  loader.load(api.group_end, "ncclGroupEnd");
  loader.load(api.all_gather, "ncclAllGather");
  loader.load(api.reduce_scatter, "ncclReduceScatter");
  loader.load(api.all_reduce, "ncclAllReduce");
  loader.load(api.get_error_string, "ncclGetErrorString");
  loader.load(api.get_last_error, "ncclGetLastError");
  if (!loader.missing().empty()) {
    return Error{ErrorCode::kVersionUnsupported, fmt::format("it lacks {}: {}", loader.missing(), kGpuLibrariesFix)};
  }
  int version = 0;
  if (api.get_version(&version) != NcclResult::kSuccess || version < kOldestNccl) {
    return Error{ErrorCode::kVersionUnsupported,
                 fmt::format("its version code is {}, {} is the oldest that will do: {}", version, kOldestNccl,
                             kGpuLibrariesFix)};
  }
  return api;
}

}  // namespace

Result<NcclApi> open_nccl(const std::filesystem::path& libtorch) {
  ATOLL_ASSIGN_OR_RETURN(const OpenLibrary library, open_gpu_library(GpuLibrary::kNccl, libtorch));
  auto api = load(library);
  if (!api.ok()) return api.error().with_context(library.path());
  // Never unloaded. The handle may go.
  if (void* pinned = ::dlopen(library.path().c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)) ::dlclose(pinned);
  return api;
}

}  // namespace atl
