// A client of the control socket. One thread.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "net/base/deadline.h"
#include "net/base/result.h"

namespace atl {

class ControlClient {
 public:
  // kNotRunning when nothing answers; kVersionUnsupported when it speaks another version.
  static Result<std::unique_ptr<ControlClient>> connect(const std::filesystem::path& socket, Deadline deadline);
  ~ControlClient();

  // The result of the call, or its error with the server's code and message.
  Result<nlohmann::json> call(std::string_view method, const nlohmann::json& params, Deadline deadline);
  // After events.subscribe: the next event. kTimeout at the deadline.
  Result<nlohmann::json> next_event(Deadline deadline);

 private:
  class Impl;
  explicit ControlClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace atl
