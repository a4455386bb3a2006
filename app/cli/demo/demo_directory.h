// Where a demo keeps its run: given by --dir, or a new directory under the state directory, which keeps the last few.
// Blocks on the disk.
#pragma once

#include <filesystem>
#include <string>

#include "net/base/result.h"

namespace atl {

// Made, 0700. `given` empty: <state directory>/demo/<time>-<pid>; of the older ones there only the last two stay. What
// --dir named is never removed.
Result<std::filesystem::path> make_demo_directory(const std::string& given);

}  // namespace atl
