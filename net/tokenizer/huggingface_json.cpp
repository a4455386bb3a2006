#include "net/tokenizer/huggingface_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "net/base/printable.h"

namespace atl::huggingface {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxParts = 32;  // of a normalizer, a pre-tokenizer, a decoder, a post-processor

Status add_parts(const json& whole, const char* name, const char* list, std::vector<const json*>& parts) {
  if (!whole.is_object()) return bad(fmt::format("{} is no object", name));
  if (text_or_empty(whole, "type") != "Sequence") {
    parts.push_back(&whole);
    if (parts.size() > kMaxParts) return bad(fmt::format("{} has more than {} parts", name, kMaxParts));
    return ok_status();
  }
  const json* const listed = find(whole, list);
  if (listed == nullptr || !listed->is_array()) {
    return bad(fmt::format("the Sequence of {} has no list \"{}\"", name, list));
  }
  for (const json& part : *listed) {  // as deep as the file's JSON may be, at most
    if (!part.is_object()) return bad(fmt::format("a part of {} is no object", name));
    ATOLL_RETURN_IF_ERROR(add_parts(part, name, list, parts));
  }
  return ok_status();
}

}  // namespace

Error bad(std::string why) { return Error{ErrorCode::kInvalidArgument, std::move(why)}; }
Error unsupported(std::string_view what, std::string_view why) {
  return bad(fmt::format("{} is not supported: {}", printable(what, 400), why));
}

const json* find(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}
std::string text_or_empty(const json& object, const char* name) {
  const json* const found = find(object, name);
  const auto* const text = found == nullptr ? nullptr : found->get_ptr<const std::string*>();
  return text == nullptr ? std::string() : *text;
}
Result<bool> flag(const json& object, const char* name, bool otherwise) {
  const json* const found = find(object, name);
  if (found == nullptr) return otherwise;
  if (!found->is_boolean()) return bad(fmt::format("{} is neither true nor false", name));
  return found->get<bool>();
}

Result<std::vector<const json*>> parts_of(const json& root, const char* name, const char* list) {
  std::vector<const json*> parts;
  const json* const whole = find(root, name);
  if (whole != nullptr) ATOLL_RETURN_IF_ERROR(add_parts(*whole, name, list, parts));
  return parts;
}

}  // namespace atl::huggingface
