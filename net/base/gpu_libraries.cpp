#include "net/base/gpu_libraries.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>

namespace atl {
namespace {

struct Entry {
  GpuLibrary library;
  std::string_view name, file;
  std::string_view wheel;  // the directory of nvidia/ that its wheel unpacks into
  // What it opens by a bare name, with no run path that says where: it must be loaded before.
  std::string_view beside = {};
};
// Of CUDA 13 (installer/gpu_libraries.txt).
constexpr Entry kEntries[] = {
    {GpuLibrary::kNvrtc, "NVRTC", "libnvrtc.so.13", "cu13", "libnvrtc-builtins.so.13.0"},
    {GpuLibrary::kCublasLt, "cuBLASLt", "libcublasLt.so.13", "cu13"},
    {GpuLibrary::kCudnn, "cuDNN", "libcudnn.so.9", "cudnn"},
    {GpuLibrary::kNccl, "NCCL", "libnccl.so.2", "nccl"},
};

constexpr auto kLibraries = [] {
  std::array<GpuLibrary, std::size(kEntries)> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = kEntries[i].library;
  return all;
}();

const Entry& entry_of(GpuLibrary library) {
  for (const Entry& entry : kEntries) {
    if (entry.library == library) return entry;
  }
  std::abort();
}

std::string last_loader_error() {
  const char* text = ::dlerror();
  return text != nullptr ? text : "the loader does not say why";
}

// The error without what to do.
Result<OpenLibrary> open(GpuLibrary library, const std::filesystem::path& libtorch) {
  const Entry& entry = entry_of(library);
  const std::filesystem::path in_wheel = libtorch / "nvidia" / entry.wheel / "lib" / entry.file;
  std::error_code ignored;
  if (!libtorch.empty() && std::filesystem::exists(in_wheel, ignored)) {
    const std::filesystem::path beside = in_wheel.parent_path() / entry.beside;
    const bool ready =
        entry.beside.empty() || ::dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) != nullptr;
    void* handle = ready ? ::dlopen(in_wheel.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (handle != nullptr) return OpenLibrary(handle, in_wheel.string());
    // Not another one in its place: the wheels were chosen to fit one another.
    return Error{ErrorCode::kInternal, fmt::format("{} does not load: {}", entry.name, last_loader_error())};
  }
  const std::string file(entry.file);
  if (void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return OpenLibrary(handle, file);
  const std::string loader = last_loader_error();
  return Error{ErrorCode::kNotFound, fmt::format("{} was not found: it is not in {}, and the system's loader says '{}'",
                                                 entry.name, in_wheel.parent_path().string(), loader)};
}

}  // namespace

std::span<const GpuLibrary> gpu_libraries() { return kLibraries; }
std::string_view name_of(GpuLibrary library) { return entry_of(library).name; }
std::string_view file_of(GpuLibrary library) { return entry_of(library).file; }

void OpenLibrary::Closer::operator()(void* handle) const noexcept { ::dlclose(handle); }
void* OpenLibrary::symbol(const char* name) const { return ::dlsym(handle_.get(), name); }

std::filesystem::path libtorch_directory() {
  const char* chosen = std::getenv("ATOLL_LIBTORCH");
  if (chosen != nullptr && chosen[0] != '\0') return chosen;
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  const auto of_package = program.parent_path() / "libtorch";
  const auto of_build = program.parent_path() / "lib" / "atoll" / "libtorch";
  return std::filesystem::is_directory(of_build, ignored) ? of_build : of_package;
}

Result<OpenLibrary> open_gpu_library(GpuLibrary library, const std::filesystem::path& libtorch) {
  auto opened = open(library, libtorch);
  if (opened.ok()) return opened;
  return Error{opened.error().code, fmt::format("{}; {}", opened.error().message, kGpuLibrariesFix)};
}

std::vector<MissingLibrary> missing_gpu_libraries(const std::filesystem::path& libtorch) {
  std::vector<MissingLibrary> missing;
  for (const GpuLibrary library : kLibraries) {
    const auto opened = open(library, libtorch);
    if (!opened.ok()) missing.push_back({library, opened.error().message});
  }
  return missing;
}

}  // namespace atl
