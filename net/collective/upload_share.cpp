#include "net/collective/upload_share.h"

namespace atl {

UploadShare::UploadShare(AttemptsUnderWay& attempts, std::optional<double> most) : attempts_(attempts), most_(most) {
  MutexLock lock(attempts_.mutex_);
  began_alone_ = attempts_.count_++ == 0;
  begun_ = ++attempts_.begun_;
}

UploadShare::~UploadShare() {
  MutexLock lock(attempts_.mutex_);
  --attempts_.count_;
}

std::optional<double> UploadShare::most_bytes_per_second() const {
  if (!most_) return std::nullopt;
  return *most_ / attempts_.count();
}

bool UploadShare::alone_so_far() const {
  MutexLock lock(attempts_.mutex_);
  return began_alone_ && attempts_.begun_ == begun_;
}

}  // namespace atl
