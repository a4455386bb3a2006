#include "app/config/config_queries.h"

#include <nlohmann/json.hpp>

namespace atl {
namespace {

constexpr std::string_view kDefaultOrigin = "default";

Result<std::string> key_of(const nlohmann::json& params) {
  const auto key = params.find("key");
  if (key == params.end() || key->is_null()) return std::string();
  if (!key->is_string()) return Error{ErrorCode::kInvalidArgument, "\"key\" must be a string"};
  ATOLL_ASSIGN_OR_RETURN(const ConfigKey* known, find_config_key(key->get<std::string>()));
  return std::string(known->name);
}

ConfigValue in_force(const Config& config, const std::map<std::string, std::string>& joined, const ConfigKey& key) {
  const ConfigValue& configured = config.value(key.name);
  const auto told = joined.find(key.name);
  if (configured.origin != kDefaultOrigin || told == joined.end()) return configured;
  const auto text = normalise_config_value(key, told->second);
  return text.ok() && *text != configured.text ? ConfigValue{*text, kJoinedOrigin} : configured;
}

}  // namespace

Result<nlohmann::json> get_config(const ConfigSources& sources, const nlohmann::json& params) {
  ATOLL_ASSIGN_OR_RETURN(const std::string only, key_of(params));
  ATOLL_ASSIGN_OR_RETURN(const Config config, Config::load(sources));
  const auto joined = sources.joined ? sources.joined() : std::map<std::string, std::string>();
  nlohmann::json values = nlohmann::json::array();
  for (const ConfigKey& key : config_keys()) {
    if (!only.empty() && only != key.name) continue;
    const ConfigValue value = in_force(config, joined, key);
    values.push_back({{"key", key.name},
                      {"value", value.text},
                      {"default", key.default_value},
                      {"origin", value.origin},
                      {"meaning", key.meaning}});
  }
  return nlohmann::json{
      {"values", std::move(values)}, {"file", sources.file.string()}, {"settings", sources.settings.string()}};
}

Result<nlohmann::json> set_config(const ConfigSources& sources, const nlohmann::json& params) {
  ATOLL_ASSIGN_OR_RETURN(const std::string key, key_of(params));
  const nlohmann::json value = params.value("value", nlohmann::json());
  if (key.empty() || (!value.is_null() && !value.is_string())) {
    return Error{ErrorCode::kInvalidArgument, "config.set needs {\"key\": NAME, \"value\": TEXT, or null}"};
  }
  ATOLL_RETURN_IF_ERROR(
      write_setting(sources.settings, key, value.is_null() ? std::optional<std::string>() : value.get<std::string>()));
  return get_config(sources, {{"key", key}});
}

}  // namespace atl
