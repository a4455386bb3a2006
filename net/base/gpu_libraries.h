// The one place that knows where CUDA's libraries may lie: in the wheels that installer/setup.sh unpacks beside
// libtorch, else wherever the system's loader looks (a toolkit, LD_LIBRARY_PATH). They are opened at run time, so that
// one program runs on machines with GPUs and without. No CUDA header, no torch. Any thread.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"

namespace atl {

// NVRTC compiles what the first two make up as they go; programs themselves ask it for nothing.
enum class GpuLibrary { kNvrtc, kCublasLt, kCudnn, kNccl };

// Each after those that it calls for.
std::span<const GpuLibrary> gpu_libraries();
std::string_view name_of(GpuLibrary library);  // "cuBLASLt"
std::string_view file_of(GpuLibrary library);  // "libcublasLt.so.13"

// What brings them, for a person.
inline constexpr std::string_view kGpuLibrariesFix =
    "run installer/gpu_libraries.sh of atoll's sources, or libexec/gpu-libraries of its package (1.1 GB to download)";

class OpenLibrary {  // closed with it
 public:
  OpenLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

  // Null: it has none of that name.
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }
  const std::string& path() const { return path_; }  // where it was found; a bare name: by the system's loader

 private:
  struct Closer {
    void operator()(void* handle) const noexcept;
  };
  void* symbol(const char* name) const;

  std::unique_ptr<void, Closer> handle_;
  std::string path_;
};

// The directory with torch/ and nvidia/: ATOLL_LIBTORCH in the environment, else that of a build or an installation
// (../lib/atoll/libtorch of the program's directory, a link to the one that was built with) or of a package (../libtorch).
std::filesystem::path libtorch_directory();

// In the wheels of `libtorch`, then by its bare name. kNotFound: the message says where it was looked for and what
// brings it; kInternal: it is there and cannot be loaded.
Result<OpenLibrary> open_gpu_library(GpuLibrary library, const std::filesystem::path& libtorch = libtorch_directory());

struct MissingLibrary {
  GpuLibrary library;
  std::string why;  // without what brings it
};
// Those of all that do not open.
std::vector<MissingLibrary> missing_gpu_libraries(const std::filesystem::path& libtorch = libtorch_directory());

}  // namespace atl
