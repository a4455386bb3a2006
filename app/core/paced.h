// Many reasons, few calls: what views hear of at most thirty times a second, however often it changes. Owned by a
// model; GUI thread.
#pragma once

#include <chrono>
#include <functional>

#include <QTimer>

namespace atl {

class Paced {
 public:
  explicit Paced(std::function<void()> call, std::chrono::milliseconds pace = std::chrono::milliseconds(33))
      : call_(std::move(call)), pace_(pace) {
    timer_.setSingleShot(true);
    QObject::connect(&timer_, &QTimer::timeout, &timer_, [this] {
      called_ = std::chrono::steady_clock::now();
      call_();
    });
  }

  // Soon; never from within this call.
  void request() {
    if (timer_.isActive()) return;
    const auto since = std::chrono::steady_clock::now() - called_;
    const auto wait =
        since >= pace_ ? std::chrono::milliseconds(0) : std::chrono::ceil<std::chrono::milliseconds>(pace_ - since);
    timer_.start(wait);
  }

 private:
  const std::function<void()> call_;
  const std::chrono::milliseconds pace_;
  std::chrono::steady_clock::time_point called_{};
  QTimer timer_;
};

}  // namespace atl
