// <home>/check.json: the last check of an island, which its hello tells the hub of. Any thread; the last writer wins.
#pragma once

#include <filesystem>

#include "net/check/check_row.h"

namespace atl {

std::filesystem::path check_file(const std::filesystem::path& home);
Status save_check(const std::filesystem::path& home, const CheckReport& report);  // 0600
Result<CheckReport> load_check(const std::filesystem::path& home);                // kNotFound: there was none

}  // namespace atl
