#include "net/control/json_fields.h"

#include <nlohmann/json.hpp>

#include "net/control/json_rpc.h"

namespace atl {
namespace {

constexpr int kMaxDepth = 32;

}  // namespace

Result<nlohmann::json> parse_control_json(std::string_view text) {
  return parse_bounded_json(text, kMaxControlLineBytes, kMaxDepth);
}

}  // namespace atl
