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
// Where it belongs: ~/.config/systemd/user, /etc/systemd/system.
Result<std::filesystem::path> unit_path(ServiceScope scope);

}  // namespace atl
