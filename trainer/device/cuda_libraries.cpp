#include "trainer/device/cuda_libraries.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <vector>

#include "net/base/gpu_libraries.h"

namespace atl {
namespace {

std::string last_loader_error() {
  const char* text = ::dlerror();
  return text != nullptr ? text : "the loader does not say why";
}

// Where the running torch comes from: its CUDA half must be of the same build. Empty: torch is not in this process.
std::filesystem::path directory_of_running_torch() {
  void* torch = ::dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
  if (torch == nullptr) return {};
  std::string origin(4096, '\0');
  const bool known = ::dlinfo(torch, RTLD_DI_ORIGIN, origin.data()) == 0;
  ::dlclose(torch);
  return known ? std::filesystem::path(origin.c_str()) : std::filesystem::path();
}

}  // namespace

Result<void> load_torch_cuda(const TorchCuda& where) {
  if (::dlopen(where.driver.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE) == nullptr) {
    return Error{ErrorCode::kNotFound, fmt::format("no NVIDIA driver: {}", last_loader_error())};
  }
  const std::filesystem::path libtorch = where.libtorch.empty() ? libtorch_directory() : where.libtorch;
  // Held until torch holds them: the loader takes what is loaded already, wherever it was found.
  std::vector<OpenLibrary> opened;
  for (const GpuLibrary library : gpu_libraries()) {
    ATOLL_ASSIGN_OR_RETURN(OpenLibrary one, open_gpu_library(library, libtorch));
    opened.push_back(std::move(one));
  }
  std::filesystem::path directory = directory_of_running_torch();
  if (directory.empty()) directory = libtorch / "torch" / "lib";
  // libtorch_cuda_linalg is opened by torch itself when it is first wanted.
  const std::filesystem::path file = directory / "libtorch_cuda.so";
  if (::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE) == nullptr) {
    return Error{ErrorCode::kInternal, fmt::format("torch's CUDA library does not load: {}", last_loader_error())};
  }
  return {};
}

}  // namespace atl
