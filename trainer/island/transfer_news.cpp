#include "trainer/island/transfer_news.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kWindow{5};  // over which a rate is taken
constexpr std::chrono::milliseconds kShortest{500};

}  // namespace

void TransferNews::progress(std::uint64_t done_bytes, std::uint64_t total_bytes, Clock::time_point now) {
  const bool began_anew = done_bytes < done_;  // what had come was of another file
  if (began_anew) readings_.clear();
  done_ = done_bytes;
  total_ = total_bytes;
  if (!readings_.empty() && !began_anew && now - told_at_ < kEvery) return;
  while (readings_.size() > 1 && now - readings_[1].when >= kWindow) readings_.pop_front();
  readings_.push_back({now, done_bytes});
  told_at_ = now;
  tell(DownloadStatus::kRunning, {});
}

void TransferNews::done(const std::string& text) {
  done_ = total_;
  readings_.clear();
  tell(DownloadStatus::kDone, text);
}

void TransferNews::failed(const std::string& why) {
  readings_.clear();
  tell(DownloadStatus::kFailed, why);
}

void TransferNews::tell(DownloadStatus status, const std::string& text) {
  if (!publish_) return;
  event::Transfer told{.what = what_, .status = status, .done_bytes = done_, .total_bytes = total_, .text = text};
  if (readings_.size() > 1 && readings_.back().when - readings_.front().when >= kShortest) {
    const double seconds = Seconds(readings_.back().when - readings_.front().when).count();
    const double rate = static_cast<double>(readings_.back().bytes - readings_.front().bytes) / seconds;
    told.bytes_per_second = rate;
    if (rate > 0) told.seconds_left = static_cast<double>(total_ - done_) / rate;
  }
  publish_(told);
}

}  // namespace atl
