// Which machine `atoll --host` and the desktop app name by a URL, and how ssh is called to reach it. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"

namespace atl {

struct SshHost {
  std::string user;  // empty: as ssh's own configuration says
  std::string host;
  int port = 0;  // 0: likewise
};

// "ssh://user@node:22". kInvalidArgument for anything that ssh or a shell could take for something else than a name.
Result<SshHost> parse_ssh_host(std::string_view text);
// What follows the program's name.
std::vector<std::string> ssh_arguments(const SshHost& host);

}  // namespace atl
