// The diagnostics bundle: what somebody who helps needs to see, and no secret. Everything in it is text, redacted; the
// identity, invites and the environment are not in it at all. Blocks on the disk; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "app/config/config.h"
#include "net/control/home.h"

namespace atl {

struct DiagEntry {
  std::string name;     // in the archive
  std::string content;  // redacted
};

// `state`: the agent's state.get, or null when none runs. What cannot be read is said in its place.
std::vector<DiagEntry> collect_diagnostics(const AgentHome& home, const ConfigSources& config,
                                           const nlohmann::json& state);
// A tar file, 0600. kInvalidArgument when there is something of that name already.
Status write_diagnostics(const std::filesystem::path& file, const std::vector<DiagEntry>& entries);
// {file, bytes, entries: [{name, bytes}]}
nlohmann::json diagnostics_json(const std::filesystem::path& file, const std::vector<DiagEntry>& entries);

// The control protocol's diag.create: {file: absolute path} -> diagnostics_json.
Result<nlohmann::json> create_diagnostics(const AgentHome& home, const ConfigSources& config,
                                          const nlohmann::json& state, const nlohmann::json& params);

}  // namespace atl
