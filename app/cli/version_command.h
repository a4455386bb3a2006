// atoll version: which program this is, and what it stands on here.
#pragma once

namespace CLI {
class App;
}

namespace atl {

struct CommandContext;

void add_version_command(CLI::App& app, CommandContext& context);

}  // namespace atl
