#include "net/data/json_lines.h"

#include <simdjson.h>

#include "net/data/json_line_scanner.h"
#include "net/data/text_blocks.h"
#include "net/data/text_encoding.h"

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

Result<std::optional<std::string_view>> JsonLineText::text_of(std::string_view line) {
  simdjson::dom::element element;
  auto error = parser_->parser.parse(line.data(), line.size(), false).get(element);
  for (const std::string& key : path_) {
    if (error) break;
    error = find_last(element, key, element);
  }
  std::string_view text;
  if (!error) error = element.get(text);
  if (!error) return std::optional(text);
  if (broken_utf8_at(line)) return Error{ErrorCode::kInvalidArgument, "it is no UTF-8"};
  ATOLL_ASSIGN_OR_RETURN(std::optional<std::string> found, scan_json_line(line, path_));
  if (!found) return std::optional<std::string_view>();
  text_ = std::move(*found);
  return std::optional(std::string_view(text_));
}

}  // namespace atl
