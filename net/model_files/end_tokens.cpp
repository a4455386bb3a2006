#include "net/model_files/end_tokens.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/base/json_text.h"
#include "net/model_files/model_reader.h"

namespace atl {
namespace {

constexpr std::size_t kMaxBytes = 1 << 20;
constexpr std::size_t kMostTokens = 256;

}  // namespace

Result<std::vector<std::int64_t>> end_tokens(const std::filesystem::path& directory, const ModelConfig& config) {
  const std::filesystem::path path = directory / kGenerationConfigFile;
  const auto text = read_file(path, kMaxBytes);
  if (!text.ok() && text.error().code == ErrorCode::kNotFound) return config.eos_token_ids;
  if (!text.ok()) return text.error();
  const auto corrupt = [&](std::string_view what) {
    return Error{ErrorCode::kCorrupt, fmt::format("{}: {}; without this file config.json counts", path.string(), what)};
  };
  const auto json = parse_bounded_json(*text, kMaxBytes, kMaxConfigDepth);
  if (!json.ok()) return corrupt(json.error().message);
  if (!json->is_object()) return corrupt("it is no JSON object");
  const auto found = json->find("eos_token_id");
  if (found == json->end() || found->is_null()) return config.eos_token_ids;
  const nlohmann::json list = found->is_array() ? *found : nlohmann::json::array({*found});
  if (list.size() > kMostTokens) return corrupt("it names too many tokens as eos_token_id");
  std::vector<std::int64_t> ids;
  for (const nlohmann::json& id : list) {
    if (!id.is_number_integer()) return corrupt("eos_token_id is neither a token's number nor a list of them");
    ids.push_back(id.get<std::int64_t>());
  }
  return ids;
}

}  // namespace atl
