// A node check that runs beside a control server (`check.run`): one at a time, on a thread of its own, its rows told as
// they come. Owned by who owns the server; any thread may call.
#pragma once

#include <functional>
#include <optional>
#include <thread>

#include "net/base/abort_signal.h"
#include "net/base/mutex.h"
#include "net/check/check_row.h"
#include "net/control/words.h"
#include "net/wire/invite.h"

namespace atl {

class CheckTask {
 public:
  using OnRow = std::function<void(const CheckRow&)>;
  struct Wanted {
    bool full = false;
    std::optional<DeviceChoice> device = {};  // of a join under way; none: as it was joined, else as configured
    std::optional<Invite> invite = {};        // of a join to come: for its run
  };
  using Check = std::function<Result<CheckReport>(const Wanted& wanted, const AbortSignal& abort, const OnRow& on_row)>;
  using OnEnd = std::function<void(const Result<CheckReport>&)>;

  // `on_row` and `on_end` are called on the task's thread. What all use outlives this.
  CheckTask(Check check, OnRow on_row, OnEnd on_end)
      : check_(std::move(check)), on_row_(std::move(on_row)), on_end_(std::move(on_end)) {}
  ~CheckTask();  // cuts a check under way short

  // Returns at once; kPermissionDenied while a check runs.
  Status run(Wanted wanted);

 private:
  void work(const Wanted& wanted);

  const Check check_;
  const OnRow on_row_;
  const OnEnd on_end_;
  AbortSignal stop_;
  Mutex mutex_;
  bool running_ ATOLL_GUARDED_BY(mutex_) = false;
  std::jthread thread_ ATOLL_GUARDED_BY(mutex_);  // last
};

}  // namespace atl
