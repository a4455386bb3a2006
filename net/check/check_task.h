// A node check that runs beside a control server (`check.run`): one at a time, on a thread of its own, its rows told as
// events. Owned by who owns the server; any thread may call.
#pragma once

#include <functional>
#include <mutex>
#include <string_view>
#include <thread>

#include <nlohmann/json_fwd.hpp>

#include "net/base/abort_signal.h"
#include "net/check/check_row.h"

namespace atl {

class CheckTask {
 public:
  using OnRow = std::function<void(const CheckRow&)>;
  using Check = std::function<Result<CheckReport>(bool full, const AbortSignal& abort, const OnRow& on_row)>;
  using Publish = std::function<void(std::string_view event, const nlohmann::json& data)>;

  // `publish` is called on the task's thread: "check.result" {"row": {...}}, at the end {"done": true} with "report" or
  // "error". What both use outlives this.
  CheckTask(Check check, Publish publish) : check_(std::move(check)), publish_(std::move(publish)) {}
  ~CheckTask();  // cuts a check under way short

  // Params: {"full": true or false}, false by default. {"started": true}; kPermissionDenied while a check runs.
  Result<nlohmann::json> run(const nlohmann::json& params);

 private:
  void work(bool full);

  const Check check_;
  const Publish publish_;
  AbortSignal stop_;
  std::mutex mutex_;
  bool running_ = false;  // guarded by mutex_
  std::jthread thread_;   // guarded by mutex_; last
};

}  // namespace atl
