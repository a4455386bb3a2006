#include "trainer/island/run_record.h"

#include <spdlog/spdlog.h>

#include "net/base/file.h"
#include "net/base/mutex.h"
#include "net/disk/checkpoint_directory.h"
#include "net/disk/commit_log.h"

namespace atl {

void RunRecord::load() {
  if (directory_.empty()) return;
  auto commit = newest_kept_commit(directory_ / kCommitLogFile);
  auto epoch = read_epoch(directory_ / kEpochFile);
  MutexLock lock(mutex_);
  if (commit) newest_ = std::make_shared<const SignedCommit>(std::move(*commit));
  if (epoch.ok()) epoch_ = std::move(*epoch);
}

Status RunRecord::add(const std::shared_ptr<const SignedCommit>& commit) {
  {
    MutexLock lock(mutex_);
    newest_ = commit;
  }
  if (directory_.empty()) return ok_status();
  ATOLL_RETURN_IF_ERROR(make_directories(directory_, FileMode::kPrivate));
  return append_commit(directory_ / kCommitLogFile, *commit);
}

std::shared_ptr<const SignedCommit> RunRecord::newest_commit() const {
  MutexLock lock(mutex_);
  return newest_;
}

std::optional<SignedEpoch> RunRecord::epoch() const {
  MutexLock lock(mutex_);
  return epoch_;
}

Status RunRecord::meet(const SignedEpoch& epoch) {
  MutexLock lock(mutex_);
  if (epoch_ && epoch.epoch < epoch_->epoch) {
    return Error{ErrorCode::kUnreachable,
                 "the hub that answers is the older one of two hubs of this run, and has been told so; waiting for the "
                 "newer one"};
  }
  const bool is_new = !epoch_ || epoch.epoch != epoch_->epoch;
  epoch_ = epoch;
  if (!is_new || directory_.empty()) return ok_status();
  Status kept = make_directories(directory_, FileMode::kPrivate);
  if (kept.ok()) kept = write_epoch(directory_ / kEpochFile, epoch);
  if (!kept.ok()) spdlog::warn("epoch error=\"{}\"", kept.error().message);  // it is kept in memory
  return ok_status();
}

}  // namespace atl
