// The systemd units of the agent: for a user and for the whole system. Pure; any thread.
#pragma once

#include <filesystem>
#include <string>

#include "net/base/result.h"

namespace atl {

enum class ServiceScope { kUser, kSystem };

struct ServiceUnit {
  ServiceScope scope = ServiceScope::kUser;
  std::filesystem::path program;  // atoll, absolute
  std::string home;               // of the island; empty: the default one
};

inline constexpr const char* kServiceName = "atoll.service";

// The unit file's text. kInvalidArgument for a path that no unit can name.
Result<std::string> unit_text(const ServiceUnit& unit);

// Of a hub, for packages: `program hub serve` with the options that HUB_OPTIONS has in the file beside it (environment
// file: kHubOptionsFile, or ~/.config/atoll/hub). It starts only where `atoll hub init` has made one: the system's in
// kSystemHub, a user's in the default place.
inline constexpr const char* kHubServiceName = "atoll-hub.service";
inline constexpr const char* kHubOptionsFile = "/etc/atoll/hub";
inline constexpr const char* kSystemHub = "/var/lib/atoll/hub";
Result<std::string> hub_unit_text(ServiceScope scope, const std::filesystem::path& program);

// Where it belongs: ~/.config/systemd/user, ETC/systemd/system.
Result<std::filesystem::path> unit_path(ServiceScope scope, const std::filesystem::path& etc = "/etc");

// What the system's service stands on: its user and group (sysusers.d(5)), and its directories (tmpfiles.d(5)); who is
// in the group may command it (/run/atoll/control.sock, 0660). ETC/sysusers.d and ETC/tmpfiles.d.
inline constexpr const char* kServiceFilesName = "atoll.conf";
inline constexpr const char* kServiceUsers = "u atoll - \"Island of an Atoll run\" /var/lib/atoll\n";
inline constexpr const char* kServiceDirectories =
    "d /run/atoll 0750 atoll atoll -\n"
    "d /var/lib/atoll 0700 atoll atoll -\n"
    "d /etc/atoll 0755 root root -\n";

}  // namespace atl
