// Fields of a tokenizer.json, for its readers (huggingface_file.h, huggingface_pipeline.h). Pure functions; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"

namespace atl::huggingface {

Error bad(std::string why);
Error unsupported(std::string_view what, std::string_view why);

// nullptr: it is not there, or null.
const nlohmann::json* find(const nlohmann::json& object, const char* name);
std::string text_or_empty(const nlohmann::json& object, const char* name);
// What is not true or false is not what it is otherwise either.
Result<bool> flag(const nlohmann::json& object, const char* name, bool otherwise);

// The parts of something that may be a Sequence, and Sequences in it, each an object with a type; of null none.
// `list`: the name of a Sequence's list.
Result<std::vector<const nlohmann::json*>> parts_of(const nlohmann::json& root, const char* name, const char* list);

}  // namespace atl::huggingface
