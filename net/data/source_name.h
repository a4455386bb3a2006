// What sources of a run's data are called, where people name them. Pure; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

namespace atl {

// "/srv/Web_Data/" -> "web-data"
std::string source_name_of(const std::filesystem::path& directory);
// [NAME=]REST, where NAME could be a source's; empty: none is there.
std::pair<std::string, std::string> split_name(const std::string& text);

}  // namespace atl
