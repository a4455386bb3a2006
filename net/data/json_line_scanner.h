// One text of a line of JSON, whatever else is in it: read as Python's json reads it. Beside RFC 8259 that is NaN,
// Infinity and -Infinity, numbers larger than any type, and halves of surrogate pairs in what is not the text. Pure;
// any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"

namespace atl {

// What is at `path`, in objects within each other; nothing where that, or an object on the way, is null. Of a key that
// stands twice the last counts. `line` is UTF-8. kInvalidArgument: it is no JSON, nested deeper than kMaxLineDepth, or
// has no text there.
Result<std::optional<std::string>> scan_json_line(std::string_view line, const std::vector<std::string>& path);

// `line` as RFC 8259 has it: null in place of NaN, Infinity, -Infinity and numbers that no double holds. `line` itself
// where it is no JSON.
std::string finite_json_line(std::string_view line);

}  // namespace atl
