#include "net/data/source_name.h"

#include "net/base/json_reader.h"

namespace atl {

std::string source_name_of(const std::filesystem::path& directory) {
  std::filesystem::path path = std::filesystem::absolute(directory).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();
  std::string name;
  for (const char c : path.filename().string().substr(0, kMaxPersonName)) {
    const char small = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    name += (small >= 'a' && small <= 'z') || (small >= '0' && small <= '9') ? small : '-';
  }
  return name.empty() ? "data" : name;
}

std::pair<std::string, std::string> split_name(const std::string& text) {
  const auto sign = text.find('=');
  if (sign == std::string::npos || !is_island_name(text.substr(0, sign))) return {{}, text};
  return {text.substr(0, sign), text.substr(sign + 1)};
}

}  // namespace atl
