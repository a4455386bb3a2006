// Text of others becomes JSON here and nowhere else (tests/rules): bounded in bytes and in nesting while
// it is read, with no key twice, numbers that are numbers, valid UTF-8, and never an exception. What stands in the JSON
// is then read field by field: json_reader.h. Pure functions; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "net/base/result.h"

namespace atl {

// A key that stands twice in one object: two readers may take it for two different things, so it is refused, but where
// the text is of no program's making and only one thing in it is looked for.
enum class RepeatedKeys { kRefused, kLastCounts };

// `max_depth`: objects and lists within each other, the outermost counted. kProtocol when it is larger or deeper than
// allowed, or no JSON; the message says where (line, of several, and column, and at which field a key is repeated or a
// number is too large), and quotes nothing of the text but keys, made printable.
Result<nlohmann::json> parse_bounded_json(std::string_view text, std::size_t max_bytes, int max_depth,
                                          RepeatedKeys repeated = RepeatedKeys::kRefused);

// On one line. Invalid UTF-8 is replaced, never an exception.
std::string dump_json(const nlohmann::json& value);

// Every text within made printable, its lines kept (printable.h): for what is only shown.
void make_printable(nlohmann::json& json);

}  // namespace atl
