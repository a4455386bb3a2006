// Reads what TarArchive writes, and nothing else: plain files with short names. Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "net/base/result.h"

namespace atl {

// Content by name. kCorrupt for an archive that is torn, has a wrong checksum, or holds anything but plain files.
Result<std::map<std::string, std::string>> read_tar(std::string_view archive);

}  // namespace atl
