// What a program says on a terminal or into a pipe, which may take none for hours (Ctrl-S, a reader that stopped): a
// thread of its own writes, and whoever says something does not wait.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>
#include <thread>

#include "net/base/abort_signal.h"
#include "net/base/deadline.h"
#include "net/base/mutex.h"
#include "net/base/unique_fd.h"

namespace atl {

class OutputThread {
 public:
  static constexpr std::size_t kMostWaiting = 1 << 20;  // bytes

  // `descriptor` stays open while it lives. SIGPIPE is ignored in this process. `on_lost` is called on its thread, with
  // the error, when something cannot be written: nobody reads any more, or a disk is full.
  explicit OutputThread(int descriptor, std::size_t most_waiting = kMostWaiting,
                        std::function<void(int error_number)> on_lost = {});
  // Writes what still waits; once nothing was taken for a second the rest is lost.
  ~OutputThread();

  // Any thread. Where more waits than may, the oldest is lost, piece by piece.
  void write(std::string piece);

 private:
  void run();
  bool put(std::string_view piece);                  // false: it ends, and nobody reads
  bool wait_for_room(std::optional<Deadline>& end);  // the same; `end`: of the waiting, once it ends

  const UniqueFd own_;
  const int descriptor_;
  const bool is_socket_;
  const std::size_t most_waiting_;
  const std::function<void(int)> on_lost_;
  AbortSignal ends_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::string> waiting_ ATOLL_GUARDED_BY(mutex_);
  std::size_t waiting_bytes_ ATOLL_GUARDED_BY(mutex_) = 0;
  std::jthread thread_;  // last
};

// To it, a piece a flush. One thread.
class OutputThreadStream : public std::ostream {
 public:
  explicit OutputThreadStream(OutputThread& to) : std::ostream(nullptr), buffer_(to) { rdbuf(&buffer_); }
  ~OutputThreadStream() override { flush(); }

 private:
  class Buffer : public std::streambuf {
   public:
    explicit Buffer(OutputThread& to) : to_(to) {}

   protected:
    int_type overflow(int_type next) override;
    std::streamsize xsputn(const char* text, std::streamsize size) override;
    int sync() override;

   private:
    OutputThread& to_;
    std::string text_;
  };

  Buffer buffer_;
};

}  // namespace atl
