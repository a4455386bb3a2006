// What `atoll hub serve` prints at a terminal of the hub's events: a line for a person. Pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace atl {

class HubServeLines {
 public:
  // The line of an event (docs/control.md, events of the hub); empty: not worth one.
  std::string line_of(std::string_view event, const nlohmann::json& data);

 private:
  std::string name_of(const nlohmann::json& data) const;

  static constexpr std::size_t kMaxNames = 1024;
  std::map<std::string, std::string> names_;  // by ids, of islands that came
};

}  // namespace atl
