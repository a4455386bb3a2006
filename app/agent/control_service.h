// The table of methods as the control server wants it. Calls come on the server's threads; end() on the owner's.
#pragma once

#include "app/agent/method_table.h"
#include "net/base/mutex.h"
#include "net/control/control_server.h"

namespace atl {

class AgentService final : public ControlService {
 public:
  // The table outlives it.
  explicit AgentService(const MethodTable& methods) : methods_(methods) {}
  bool is_slow(std::string_view method) const override { return methods_.is_slow(method); }
  Result<nlohmann::json> call(std::string_view method, const nlohmann::json& params) override;

  // Once it has returned no method runs, and none will: what they use may go, although the server is still there.
  void end();

 private:
  const MethodTable& methods_;
  SharedMutex calls_;  // shared by the calls under way
  bool ended_ ATOLL_GUARDED_BY(calls_) = false;
};

}  // namespace atl
