#include "app/agent/owners_wish.h"

#include <spdlog/spdlog.h>

#include "net/base/unix_time.h"

namespace atl {

OwnersWish::OwnersWish(std::filesystem::path file) : file_(std::move(file)) {
  const auto kept = load_wish(file_);
  if (kept.ok()) {
    said_ = *kept;
  } else if (kept.error().code != ErrorCode::kNotFound) {
    // Its owner may have said no: it waits until it is told again.
    spdlog::warn("wish kept=false now=pause error=\"{}\"", kept.error().message);
    said_.wish = Wish::kPause;
  }
}

Wish OwnersWish::now() const { return wish_now(said_, unix_seconds_now()); }

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
