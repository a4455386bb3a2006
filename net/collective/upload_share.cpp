#include "net/collective/upload_share.h"

#include <utility>

namespace atl {

UploadShare::UploadShare(AttemptsUnderWay& attempts, Most most) : attempts_(attempts), most_(std::move(most)) {
  MutexLock lock(attempts_.mutex_);
  began_alone_ = attempts_.count_++ == 0;
  begun_ = ++attempts_.begun_;
}

UploadShare::~UploadShare() {
  MutexLock lock(attempts_.mutex_);
  --attempts_.count_;
}

std::optional<double> UploadShare::most_bytes_per_second() const {
  const std::optional<double> most = most_ ? most_() : std::nullopt;
  if (!most) return std::nullopt;
  return *most / (attempts_.count() * (contributing_ > 0 ? 2 : 1));
}

bool UploadShare::alone_so_far() const {
  MutexLock lock(attempts_.mutex_);
  return began_alone_ && attempts_.begun_ == begun_;
}

}  // namespace atl
