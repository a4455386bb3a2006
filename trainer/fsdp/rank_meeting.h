// Where the threads of an island's ranks wait for each other: nobody goes on before all have come, and one who fails,
// or does not come in time, frees the others with the cause. Owned by whoever owns the rank threads. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "net/base/id.h"
#include "net/base/mutex.h"

namespace atl {

class RankMeeting {
 public:
  // `timeout`: of a rank for the others.
  RankMeeting(int world_size, std::chrono::nanoseconds timeout);

  // The rank's thread. Returns when every rank has come; throws CollectiveAborted with the first cause. `what` they
  // come to, in words: asked where one does not.
  void meet(LocalRank rank, const std::function<std::string()>& what);

  // True: it is the first, and becomes the cause that all who wait, or come later, are told.
  bool fail(const std::string& cause) noexcept;
  void throw_if_failed() const;
  // Forgets a failure, while nobody waits.
  void reset();

 private:
  const std::chrono::nanoseconds timeout_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<bool> came_ ATOLL_GUARDED_BY(mutex_);
  std::uint64_t meetings_ ATOLL_GUARDED_BY(mutex_) = 0;
  std::optional<std::string> cause_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace atl
