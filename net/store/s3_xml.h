// What stands in a store's XML answers, which are small, flat and known: the text between two tags, and lists of the
// same. No DTD, no attributes, no namespaces. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace atl {

// What stands in each <name>...</name>, in their order; an element that is not closed is none.
std::vector<std::string_view> xml_elements(std::string_view text, std::string_view name);
// The text in the first of them, without entities; empty where there is none.
std::string xml_text(std::string_view text, std::string_view name);
// Text that stands between two tags.
std::string xml_escaped(std::string_view text);

}  // namespace atl
