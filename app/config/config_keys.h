// Everything that an island's owner can set: one table, from which the configuration file is checked, printed and
// documented. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"

namespace atl {

enum class ConfigType {
  kText,      // at most 64 bytes
  kWhole,     // from `low` to `high`
  kBytes,     // "200 MB", "1.5 GB" (powers of 1000), a number of bytes
  kRate,      // "20 Mbit/s", "2.5 MB/s", "none"; at least 1 Mbit/s
  kDuration,  // "90s", "10m", "24h", "7d"
  kAddress,   // HOST:PORT
  kDayHours,  // "22:00-06:00, 12:00-13:00"; empty: always
  kCapHours,  // "08:00-18:00 20 Mbit/s, 23:00-06:00 none"; empty: the same at all hours
  kGpus,      // "all", "none", "0-3,6"
  kOneOf,     // of `words`
  kEndpoint,  // "https://HOST:PORT", http:// where that is meant; empty: the usual one
  kFile,      // an absolute path of at most 1,024 bytes; empty: none
  kSteps,     // outer steps, apart by commas: "12, 500"; empty: none
};

struct ConfigKey {
  const char* name;  // "limits.upload"
  ConfigType type;
  const char* default_value;       // as it is written
  const char* meaning;             // for a person, a line
  std::int64_t low = 0, high = 0;  // of kWhole
  const char* words = "";          // of kOneOf, apart by spaces
};

const std::vector<ConfigKey>& config_keys();
// How many letters lie between two words: Levenshtein's distance. Takes the product of their lengths: of short ones.
std::size_t edit_distance(std::string_view a, std::string_view b);
// kInvalidArgument, naming the nearest key.
Result<const ConfigKey*> find_config_key(std::string_view name);

// Whether a running agent follows it when it is set, by `config.set`.
bool changes_while_agent_runs(std::string_view name);

// The value as it is kept: the same text for the same meaning. kInvalidArgument says what is allowed.
Result<std::string> normalise_config_value(const ConfigKey& key, std::string_view text);

// Of normalised values.
std::uint64_t config_bytes(std::string_view value);
std::uint64_t config_seconds(std::string_view value);
std::set<std::uint32_t> config_steps(std::string_view value);

// "ATOLL_LIMITS_UPLOAD" of "limits.upload".
std::string environment_name(const ConfigKey& key);

}  // namespace atl
