#include "app/config/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <charconv>

namespace atl {

std::map<std::string, std::string> environment_of_process() {
  std::map<std::string, std::string> found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (!text.starts_with("ATOLL_") || equals == std::string_view::npos) continue;
    found.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return found;
}

Config Config::defaults() {
  Config config;
  for (const ConfigKey& key : config_keys()) config.set(key, {key.default_value, "default"});
  return config;
}

Result<Config> Config::load(const ConfigSources& sources) {
  Config config = defaults();
  ATOLL_ASSIGN_OR_RETURN(const ConfigFile file, read_config_file(sources.file));
  std::vector<std::string> defects = file.defects;
  for (const ConfigEntry& entry : file.entries) {
    config.set(*entry.key, {entry.value, fmt::format("{} line {}", sources.file.string(), entry.line)});
  }
  ATOLL_ASSIGN_OR_RETURN(const Settings settings, read_settings(sources.settings));
  const auto take = [&](const ConfigKey& key, const std::string& text, const std::string& origin) {
    auto value = normalise_config_value(key, text);
    if (value.ok()) {
      config.set(key, {std::move(*value), origin});
    } else {
      defects.push_back(fmt::format("{}: {}", origin, value.error().message));
    }
  };
  for (const ConfigKey& key : config_keys()) {
    if (const auto set = settings.find(key.name); set != settings.end()) take(key, set->second, "settings");
    const std::string variable = environment_name(key);
    if (const auto set = sources.environment.find(variable); set != sources.environment.end()) {
      take(key, set->second, variable);
    }
  }
  for (const auto& [name, text] : sources.command_line) {
    ATOLL_ASSIGN_OR_RETURN(const ConfigKey* key, find_config_key(name));
    take(*key, text, "command line");
  }
  if (defects.empty()) return config;
  return Error{ErrorCode::kInvalidArgument, fmt::format("{}", fmt::join(defects, "\n"))};
}

const ConfigValue& Config::value(std::string_view key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) detail::die_on_wrong_access("no such configuration key", std::string(key));
  return found->second;
}

std::int64_t Config::whole(std::string_view key) const {
  const std::string& value = text(key);
  std::int64_t number = 0;
  std::from_chars(value.data(), value.data() + value.size(), number);
  return number;
}

}  // namespace atl
