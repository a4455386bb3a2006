#include "app/cli/service/service_unit.h"

#include <fmt/format.h>

#include <cstdlib>

#include "net/base/exit_code.h"

namespace atl {
namespace {

// A word of ExecStart: systemd expands % and $, and unquotes.
Result<std::string> unit_word(const std::string& text) {
  std::string word = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("a service cannot have the path '{}'", text)};
    }
    if (c == '%' || c == '$') word += c;
    if (c == '"' || c == '\\') word += '\\';
    word += c;
  }
  return word + "\"";
}

// Not PrivateDevices, which hides the GPUs; not MemoryDenyWriteExecute, which CUDA's compiler at run time needs off.
constexpr const char* kHardening =
    "NoNewPrivileges=yes\n"
    "PrivateTmp=yes\n"
    "ProtectControlGroups=yes\n"
    "ProtectKernelLogs=yes\n"
    "ProtectKernelModules=yes\n"
    "RestrictSUIDSGID=yes\n"
    "LockPersonality=yes\n";

// What the system's own services may write, and as whom they run.
constexpr const char* kSystemHardening =
    "User=atoll\n"
    "Group=atoll\n"
    "StateDirectory=atoll\n"
    "StateDirectoryMode=0700\n"
    "ConfigurationDirectory=atoll\n"
    "ProtectSystem=strict\n"
    "ProtectHome=yes\n"
    "ProtectClock=yes\n"
    "ProtectHostname=yes\n";
// Of the agent alone: systemd removes it with the unit.
constexpr const char* kControlDirectory =
    "RuntimeDirectory=atoll\n"
    "RuntimeDirectoryMode=0750\n";
constexpr const char* kAfterNetwork = "Wants=network-online.target\nAfter=network-online.target\n";

constexpr const char* target_of(bool system) { return system ? "multi-user.target" : "default.target"; }

}  // namespace

Result<std::string> unit_text(const ServiceUnit& unit) {
  const bool system = unit.scope == ServiceScope::kSystem;
  ATOLL_ASSIGN_OR_RETURN(std::string command, unit_word(unit.program.string()));
  command += " agent";
  if (system) command += " --system";
  if (!system && !unit.home.empty()) {
    ATOLL_ASSIGN_OR_RETURN(const std::string home, unit_word(unit.home));
    command += " --home " + home;
  }
  return fmt::format(
      "[Unit]\n"
      "Description=Atoll: this machine's island\n"
      "Documentation=man:atoll(1)\n"
      "{after}"
      "StartLimitIntervalSec=600\n"
      "StartLimitBurst=20\n"
      "\n"
      "[Service]\n"
      "Type=notify\n"
      "ExecStart={command}\n"
      "KillMode=mixed\n"
      "TimeoutStopSec=120\n"
      "WatchdogSec=60\n"
      "Restart=on-failure\n"
      "RestartSec=5\n"
      "RestartPreventExitStatus={invite} {pin} {version}\n"
      "LimitNOFILE=65536\n"
      "LimitMEMLOCK=infinity\n"
      "{hardening}{system}"
      "\n"
      "[Install]\n"
      "WantedBy={target}\n",
      fmt::arg("after", system ? kAfterNetwork : ""), fmt::arg("command", command),
      fmt::arg("invite", static_cast<int>(kExitInvite)), fmt::arg("pin", static_cast<int>(kExitPinMismatch)),
      fmt::arg("version", static_cast<int>(kExitVersion)), fmt::arg("hardening", kHardening),
      fmt::arg("system", system ? std::string(kControlDirectory) + kSystemHardening : std::string()),
      fmt::arg("target", target_of(system)));
}

Result<std::string> hub_unit_text(ServiceScope scope, const std::filesystem::path& program) {
  const bool system = scope == ServiceScope::kSystem;
  ATOLL_ASSIGN_OR_RETURN(std::string command, unit_word(program.string()));
  command += " hub serve";
  if (system) command += std::string(" --home ") + kSystemHub;
  return fmt::format(
      "[Unit]\n"
      "Description=Atoll: the hub of a run\n"
      "Documentation=man:atoll-hub-serve(1)\n"
      "{after}"
      "ConditionPathExists={home}/run.json\n"
      "\n"
      "[Service]\n"
      "Type=exec\n"
      "EnvironmentFile=-{options}\n"
      "ExecStart={command} $HUB_OPTIONS\n"
      "KillMode=mixed\n"
      "TimeoutStopSec=60\n"
      "Restart=on-failure\n"
      "RestartSec=5\n"
      "LimitNOFILE=65536\n"
      "{hardening}{system}"
      "\n"
      "[Install]\n"
      "WantedBy={target}\n",
      fmt::arg("after", system ? kAfterNetwork : ""),
      fmt::arg("home", system ? kSystemHub : "%h/.local/share/atoll-hub"),
      fmt::arg("options", system ? kHubOptionsFile : "%h/.config/atoll/hub"), fmt::arg("command", command),
      fmt::arg("hardening", kHardening), fmt::arg("system", system ? kSystemHardening : ""),
      fmt::arg("target", target_of(system)));
}

Result<std::filesystem::path> unit_path(ServiceScope scope, const std::filesystem::path& etc) {
  if (scope == ServiceScope::kSystem) return etc / "systemd/system" / kServiceName;
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  const std::filesystem::path chosen = config != nullptr ? config : "";
  if (chosen.is_absolute()) return chosen / "systemd/user" / kServiceName;
  if (home == nullptr || *home == '\0')
    return Error{ErrorCode::kInvalidArgument, "HOME is not set; set it, or use --system"};
  return std::filesystem::path(home) / ".config/systemd/user" / kServiceName;
}

}  // namespace atl
