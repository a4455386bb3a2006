#include "net/disk/checkpoint_directory.h"

#include <fmt/format.h>

namespace atl {
namespace {

constexpr std::string_view kPrefix = "outer.", kSuffix = ".state";

}  // namespace

std::string kept_state_name(OuterStep step) { return fmt::format("{}{}{}", kPrefix, step.value, kSuffix); }

std::string kept_average_name(FragmentId fragment) {
  return fragment.value == 0 ? kKeptAverageFile : fmt::format("average.{}.kept", fragment.value);
}

bool is_outer_state_name(std::string_view name) { return name.starts_with(kPrefix) && name.ends_with(kSuffix); }

Result<std::vector<std::filesystem::path>> outer_state_files(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  std::error_code failed;
  std::filesystem::directory_iterator entries(directory, failed);
  for (; !failed && entries != std::filesystem::directory_iterator(); entries.increment(failed)) {
    if (is_outer_state_name(entries->path().filename().string())) files.push_back(entries->path());
  }
  const bool missing = failed == std::errc::no_such_file_or_directory || failed == std::errc::not_a_directory;
  if (!failed || missing) return files;
  const bool denied = failed == std::errc::permission_denied;
  return Error{denied ? ErrorCode::kPermissionDenied : ErrorCode::kIo,
               fmt::format("cannot list {}: {}", directory.string(), failed.message())};
}

}  // namespace atl
