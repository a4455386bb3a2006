#include "app/agent/owners_wish.h"

#include <spdlog/spdlog.h>

#include <ctime>

#include "net/base/unix_time.h"

namespace atl {

int OwnersWish::minute_of_day() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  return local.tm_hour * 60 + local.tm_min;
}

OwnersWish::OwnersWish(std::filesystem::path file, std::vector<TrainingHours> hours)
    : file_(std::move(file)), hours_(std::move(hours)) {
  const auto kept = load_wish(file_);
  if (kept.ok()) {
    said_ = *kept;
  } else if (kept.error().code != ErrorCode::kNotFound) {
    // Its owner may have said no: it waits until it is told again.
    spdlog::warn("wish kept=false now=pause error=\"{}\"", kept.error().message);
    said_.wish = Wish::kPause;
  }
}

Wish OwnersWish::now() const { return wish_now(said_, hours_, unix_seconds_now(), minute_of_day()); }

void OwnersWish::say(const WishFile& wish) {
  said_ = wish;
  warning_.clear();
}

void OwnersWish::settle(Wish wish) {
  said_ = WishFile{.wish = wish, .since_unix_seconds = unix_seconds_now()};
  const Status kept = save_wish(file_, said_);
  warning_ = kept.ok() ? std::string() : kept.error().message;
}

}  // namespace atl
