#include <fmt/format.h>

#include <toml++/toml.h>

#include "app/config/config.h"
#include "net/base/file.h"

namespace atl {
namespace {

constexpr std::size_t kMaxFileBytes = 256 * 1024;

// As it would be written on the command line; empty: a value that no key can have.
std::optional<std::string> text_of(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto flag = node.value_exact<bool>()) return *flag ? "true" : "false";
  if (const auto whole = node.value_exact<std::int64_t>()) return std::to_string(*whole);
  return std::nullopt;
}

void read_table(const toml::table& table, const std::string& prefix, const std::string& path, ConfigFile& file) {
  for (const auto& [name, node] : table) {
    const std::string key_name = prefix.empty() ? std::string(name.str()) : fmt::format("{}.{}", prefix, name.str());
    const auto line = static_cast<int>(node.source().begin.line);
    const auto defect = [&](const std::string& what) {
      file.defects.push_back(fmt::format("{} line {}: {}", path, line, what));
    };
    if (const toml::table* inner = node.as_table(); inner != nullptr && prefix.empty()) {
      read_table(*inner, key_name, path, file);
      continue;
    }
    const auto key = find_config_key(key_name);
    if (!key.ok()) {
      defect(key.error().message);
      continue;
    }
    const auto text = text_of(node);
    if (!text) {
      defect(fmt::format("{}: must be a text, a whole number, true or false", key_name));
      continue;
    }
    auto value = normalise_config_value(**key, *text);
    if (!value.ok()) {
      defect(value.error().message);
      continue;
    }
    file.entries.push_back({*key, std::move(*value), line});
  }
}

}  // namespace

Result<ConfigFile> read_config_file(const std::filesystem::path& path) {
  ConfigFile file;
  if (path.empty()) return file;
  const auto text = read_file(path, kMaxFileBytes);
  if (!text.ok()) {
    if (text.error().code == ErrorCode::kNotFound) return file;
    return text.error();
  }
  try {
    read_table(toml::parse(*text), "", path.string(), file);
  } catch (const toml::parse_error& error) {
    file.defects.push_back(
        fmt::format("{} line {}: {}", path.string(), error.source().begin.line, error.description()));
  }
  return file;
}

std::string config_file_template() {
  std::string text =
      "# What this machine's owner says to Atoll. No program writes this file. Values of 'atoll config set' and of "
      "the\n"
      "# environment (ATOLL_LIMITS_UPLOAD for limits.upload) go before it: 'atoll config get --origin' tells.\n";
  std::string section;
  for (const ConfigKey& key : config_keys()) {
    const std::string name = key.name;
    const auto dot = name.find('.');
    if (name.substr(0, dot) != section) {
      section = name.substr(0, dot);
      text += fmt::format("\n[{}]\n", section);
    }
    const bool bare = key.type == ConfigType::kWhole;
    const std::string quote = bare ? "" : "\"";
    text += fmt::format("# {}\n# {} = {}{}{}\n", key.meaning, name.substr(dot + 1), quote, key.default_value, quote);
  }
  return text;
}

}  // namespace atl
