#include "net/control/json_fields.h"

#include "net/base/printable.h"
#include "net/control/json_rpc.h"
#include "net/wire/json_archive.h"

namespace atl {
namespace {

constexpr int kMaxDepth = 32;

}  // namespace

Result<nlohmann::json> parse_control_json(std::string_view text) {
  return parse_bounded_json(text, kMaxControlLineBytes, kMaxDepth);
}

void make_printable(nlohmann::json& json) {
  if (auto* text = json.get_ptr<std::string*>()) *text = printable_lines(*text);
  if (json.is_structured()) {
    for (nlohmann::json& part : json) make_printable(part);
  }
}

}  // namespace atl
