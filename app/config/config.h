// The configuration of one island as it is in force: each value with where it comes from. In this order: command line,
// ATOLL_* of the environment, settings.json (what `atoll config set` wrote), config.toml (the user's, never written by
// a program), defaults. Read once and passed on; plain values, any thread.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/config/config_keys.h"

namespace atl {

struct ConfigSources {
  std::filesystem::path file;                            // config.toml; need not be there
  std::filesystem::path settings;                        // settings.json; need not be there
  std::map<std::string, std::string> environment = {};   // by the variable's name: environment_of_process()
  std::map<std::string, std::string> command_line = {};  // by key
  // What the island was told when it joined, by key: in force where nothing else says it, and not of the configuration.
  // None: nothing was joined.
  std::function<std::map<std::string, std::string>()> joined = {};
};
std::map<std::string, std::string> environment_of_process();  // what begins with ATOLL_
inline constexpr const char* kJoinedOrigin = "atoll join";    // of values that get_config() has from `joined`

struct ConfigValue {
  std::string text;    // normalised
  std::string origin;  // "default", "/etc/atoll/config.toml line 3", "ATOLL_LIMITS_UPLOAD", "settings", "command line"
};

class Config {
 public:
  // kInvalidArgument with every defect, a line each: file, line, what is allowed.
  static Result<Config> load(const ConfigSources& sources);
  static Config defaults();

  // `key` is one of config_keys().
  const ConfigValue& value(std::string_view key) const;
  const std::string& text(std::string_view key) const { return value(key).text; }
  std::int64_t whole(std::string_view key) const;

  void set(const ConfigKey& key, ConfigValue value) { values_[key.name] = std::move(value); }

 private:
  Config() = default;
  std::map<std::string, ConfigValue, std::less<>> values_;
};

// ---- the files

struct ConfigEntry {
  const ConfigKey* key = nullptr;
  std::string value;  // normalised
  int line = 0;       // of the file, from 1
};
struct ConfigFile {
  std::vector<ConfigEntry> entries;
  std::vector<std::string> defects;  // "FILE line 3: ...", for a person
};
// A file that is not there is empty. kIo, kPermissionDenied when it cannot be read.
Result<ConfigFile> read_config_file(const std::filesystem::path& path);
// A whole config.toml in which every key is commented out, with its meaning and default.
std::string config_file_template();

using Settings = std::map<std::string, std::string>;  // by key, normalised
// A file that is not there is empty. kCorrupt: it is no settings file, or of a newer program.
Result<Settings> read_settings(const std::filesystem::path& path);
// Checks and writes one setting; an empty optional takes it away. What others wrote in between is kept.
Status write_setting(const std::filesystem::path& path, std::string_view key, const std::optional<std::string>& value);

}  // namespace atl
