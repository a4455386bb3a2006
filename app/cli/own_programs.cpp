#include "app/cli/own_programs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace atl {
namespace {

Result<std::filesystem::path> locate_program(const char* name, const char* environment_variable) {
  const char* chosen = std::getenv(environment_variable);
  if (chosen != nullptr && chosen[0] != '\0') return std::filesystem::path(chosen);
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path found = self.parent_path() / name;
  if (!error && ::access(found.c_str(), X_OK) == 0) return found;
  if (error) {
    return Error{ErrorCode::kTrainerFailed,
                 fmt::format("{} should lie beside this program, and where that lies cannot be told (read "
                             "/proc/self/exe: {}); mount /proc, or say where it is with {}=/path/to/{}",
                             name, error.message(), environment_variable, name)};
  }
  return Error{ErrorCode::kTrainerFailed,
               fmt::format("{} is not beside {}; build or install it, or say where it is with {}=/path/to/{}", name,
                           self.string(), environment_variable, name)};
}

}  // namespace

Result<std::filesystem::path> locate_trainer() { return locate_program("atoll-trainer", "ATOLL_TRAINER"); }
Result<std::filesystem::path> locate_atoll() { return locate_program("atoll", "ATOLL_PROGRAM"); }
Result<std::filesystem::path> locate_gpu_probe() { return locate_program("atoll-gpu-probe", "ATOLL_GPU_PROBE"); }

}  // namespace atl
