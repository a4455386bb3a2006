// The hub's signed records that an island keeps (net/disk/commit_log): every commit that it took the outer step of, and
// the highest epoch in which it met the hub. A hub that was restored from an old backup learns from them, and of two
// hubs of one run the older one. add() on the thread of the
// lane that takes the outer step, one at a time; the epoch on the mesh's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "net/base/mutex.h"
#include "net/base/result.h"
#include "net/wire/mesh.h"

namespace atl {

class RunRecord {
 public:
  // `directory` may be empty: nothing is kept across restarts.
  explicit RunRecord(std::filesystem::path directory) : directory_(std::move(directory)) {}
  void load();  // what is there; a damaged end of the log is left out

  Status add(const std::shared_ptr<const SignedCommit>& commit);  // on the disk when it returns
  // Thread-safe:
  std::shared_ptr<const SignedCommit> newest_commit() const;
  std::optional<SignedEpoch> epoch() const;
  // kCertificate when a later one is known: that hub is the older one of two. Keeps it else.
  Status meet(const SignedEpoch& epoch);

 private:
  const std::filesystem::path directory_;
  mutable Mutex mutex_;
  std::shared_ptr<const SignedCommit> newest_ ATOLL_GUARDED_BY(mutex_);
  std::optional<SignedEpoch> epoch_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace atl
