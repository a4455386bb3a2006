#include "net/store/s3_xml.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace atl {
namespace {

constexpr std::array<std::pair<std::string_view, char>, 8> kEntities = {{{"&quot;", '"'},
                                                                         {"&amp;", '&'},
                                                                         {"&lt;", '<'},
                                                                         {"&gt;", '>'},
                                                                         {"&apos;", '\''},
                                                                         {"&#34;", '"'},
                                                                         {"&#39;", '\''},
                                                                         {"&#x22;", '"'}}};

std::string unescaped(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    std::size_t taken = 1;
    char c = text.front();
    for (const auto& [entity, meaning] : kEntities) {
      if (!text.starts_with(entity)) continue;
      taken = entity.size();
      c = meaning;
      break;
    }
    plain += c;
    text.remove_prefix(taken);
  }
  return plain;
}

}  // namespace

std::vector<std::string_view> xml_elements(std::string_view text, std::string_view name) {
  const std::string begin = fmt::format("<{}>", name), end = fmt::format("</{}>", name);
  std::vector<std::string_view> found;
  for (auto at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at)) {
    at += begin.size();
    const auto close = text.find(end, at);
    if (close == std::string_view::npos) break;
    found.push_back(text.substr(at, close - at));
    at = close + end.size();
  }
  return found;
}

std::string xml_text(std::string_view text, std::string_view name) {
  const auto found = xml_elements(text, name);
  return found.empty() ? std::string() : unescaped(found.front());
}

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

}  // namespace atl
