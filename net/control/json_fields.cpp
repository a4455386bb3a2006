#include "net/control/json_fields.h"

namespace atl {
namespace {

// The parser itself needs no stack, but what walks its result (dump, compare) recurses.
bool nested_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if ((c == '[' || c == '{') && ++depth > kMaxJsonDepth) return true;
    if (c == ']' || c == '}') --depth;
  }
  return false;
}

}  // namespace

Result<nlohmann::json> parse_bounded_json(std::string_view text) {
  if (nested_too_deep(text)) return Error{ErrorCode::kProtocol, "JSON nested too deep"};
  auto json = nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return Error{ErrorCode::kProtocol, "not JSON"};
  return json;
}

}  // namespace atl
