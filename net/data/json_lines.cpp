#include "net/data/json_lines.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <nlohmann/json.hpp>

#include "net/base/json_reader.h"
#include "net/data/text_blocks.h"

namespace atl {
namespace {

static_assert(kJsonPaddingBytes >= simdjson::SIMDJSON_PADDING);
// The last value of that key.
simdjson::error_code find_last(simdjson::dom::element object, std::string_view key, simdjson::dom::element& found) {
  simdjson::dom::object fields;
  if (const auto error = object.get(fields)) return error;
  auto result = simdjson::NO_SUCH_FIELD;
  for (const auto field : fields) {
    if (field.key != key) continue;
    found = field.value;
    result = simdjson::SUCCESS;
  }
  return result;
}

}  // namespace

struct JsonLineText::Parser {
  simdjson::dom::parser parser{kMaxDocumentBytes};
};

JsonLineText::JsonLineText(std::string_view field) : parser_(std::make_unique<Parser>()) {
  while (true) {
    const std::size_t dot = field.find('.');
    path_.emplace_back(field.substr(0, dot));
    if (dot == std::string_view::npos) break;
    field.remove_prefix(dot + 1);
  }
}

JsonLineText::~JsonLineText() = default;

Result<std::string_view> JsonLineText::text_of(std::string_view line) {
  simdjson::dom::element element;
  auto error = parser_->parser.parse(line.data(), line.size(), false).get(element);
  for (const std::string& key : path_) {
    if (error) break;
    error = find_last(element, key, element);
  }
  std::string_view text;
  if (!error) error = element.get(text);
  return error ? read_slowly(line) : Result<std::string_view>(text);
}

Result<std::string_view> JsonLineText::read_slowly(std::string_view line) {
  // What stands beside the text is anybody's.
  const auto json = parse_bounded_json(line, kMaxDocumentBytes, kMaxLineDepth, RepeatedKeys::kLastCounts);
  if (!json.ok()) return Error{ErrorCode::kInvalidArgument, json.error().message};
  const nlohmann::json* object = &*json;
  std::string at;
  for (std::size_t i = 0; i + 1 < path_.size(); ++i) {
    JsonReader reader(*object, at);
    object = reader.find(path_[i].c_str());
    if (object == nullptr) return Error{ErrorCode::kInvalidArgument, reader.status().error().message};
    at = reader.path_of(path_[i].c_str());
  }
  JsonReader reader(*object, at);
  reader.bounded(path_.back().c_str(), text_, kMaxDocumentBytes);
  if (!reader.status().ok()) return Error{ErrorCode::kInvalidArgument, reader.status().error().message};
  return std::string_view(text_);
}

}  // namespace atl
