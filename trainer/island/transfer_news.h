// A download of the island's, told as it goes: event::Transfer with bytes, rate and time left, a
// few a second at most. Times are passed in. Owned by who downloads; one thread.
#pragma once

#include <deque>
#include <functional>
#include <string>

#include "net/base/deadline.h"
#include "net/control/events.h"

namespace atl {

class TransferNews {
 public:
  using Publish = std::function<void(const ControlEvent& event)>;
  static constexpr std::chrono::milliseconds kEvery{250};

  // `publish` may be empty: nothing is told.
  TransferNews(Download what, Publish publish) : what_(what), publish_(std::move(publish)) {}

  // As often as one likes; `done` may begin above 0, by what an earlier try left.
  void progress(std::uint64_t done_bytes, std::uint64_t total_bytes, Clock::time_point now);
  void done(const std::string& text = {});  // text: what there is to say of it
  void failed(const std::string& why);

 private:
  struct Reading {
    Clock::time_point when;
    std::uint64_t bytes = 0;
  };
  void tell(DownloadStatus status, const std::string& text);

  const Download what_;
  const Publish publish_;
  std::uint64_t done_ = 0, total_ = 0;
  Clock::time_point told_at_{};
  std::deque<Reading> readings_;  // of the last seconds, the oldest first
};

}  // namespace atl
