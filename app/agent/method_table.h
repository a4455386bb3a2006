// The agent's control methods by name, a topic of them a file in app/agent/methods. Filled before the control socket is
// served, then only read, on the control socket's threads.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "net/base/result.h"

namespace atl {

// Must not block: long work goes to AgentControl::start_job and is reported by events. `params` is an object.
using AgentMethod = std::function<Result<nlohmann::json>(const nlohmann::json& params)>;

class MethodTable {
 public:
  void add(std::string_view name, AgentMethod method) { methods_[std::string(name)] = std::move(method); }
  // Called on another thread, one such method after the other; may read a few MiB from the disk.
  void add_slow(std::string_view name, AgentMethod method) {
    slow_.emplace(name);
    add(name, std::move(method));
  }
  bool is_slow(std::string_view name) const { return slow_.contains(name); }
  const AgentMethod* find(std::string_view name) const {
    const auto found = methods_.find(name);
    return found == methods_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, AgentMethod, std::less<>> methods_;
  std::set<std::string, std::less<>> slow_;
};

}  // namespace atl
