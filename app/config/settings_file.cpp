#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <nlohmann/json.hpp>

#include "app/config/config.h"
#include "net/base/file.h"
#include "net/base/unique_fd.h"
#include "net/control/json_fields.h"

namespace atl {
namespace {

constexpr std::size_t kMaxSettingsBytes = 64 * 1024;

Error corrupt(const std::filesystem::path& path, const std::string& why) {
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} is no settings file ({}); remove it to go back to config.toml and the defaults",
                           path.string(), why)};
}

}  // namespace

Result<Settings> read_settings(const std::filesystem::path& path) {
  Settings settings;
  if (path.empty()) return settings;
  const auto text = read_file(path, kMaxSettingsBytes);
  if (!text.ok()) {
    if (text.error().code == ErrorCode::kNotFound) return settings;
    return text.error();
  }
  const auto json = parse_control_json(*text);
  if (!json.ok()) return corrupt(path, json.error().message);
  if (!json->is_object()) return corrupt(path, "not an object");
  for (const auto& [name, value] : json->items()) {
    if (!value.is_string()) return corrupt(path, fmt::format("\"{}\" is not a string", name));
    settings[name] = value.get<std::string>();
  }
  return settings;
}

Status write_setting(const std::filesystem::path& path, std::string_view key, const std::optional<std::string>& value) {
  ATOLL_ASSIGN_OR_RETURN(const ConfigKey* known, find_config_key(key));
  std::optional<std::string> normalised;
  if (value) {
    ATOLL_ASSIGN_OR_RETURN(normalised, normalise_config_value(*known, *value));
  }
  ATOLL_RETURN_IF_ERROR(make_directories(path.parent_path(), FileMode::kPrivate));
  // Two that set at once: the second reads what the first wrote.
  const UniqueFd directory(::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory || ::flock(directory.get(), LOCK_EX) != 0) return errno_error("lock", path.parent_path());
  ATOLL_ASSIGN_OR_RETURN(Settings settings, read_settings(path));
  if (normalised) {
    settings[known->name] = *normalised;
  } else {
    settings.erase(known->name);
  }
  return write_file_atomically(path, nlohmann::json(settings).dump(2) + "\n", FileMode::kPrivate);
}

}  // namespace atl
