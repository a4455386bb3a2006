#include "net/base/output_thread.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

namespace atl {
namespace {

constexpr std::chrono::seconds kPatience{1};  // at the end, since something was taken
// A terminal with room for a letter is called writable, and takes no end of a line.
constexpr std::chrono::milliseconds kRefusedAgain{20};
constexpr std::size_t kAtOnce = PIPE_BUF;  // what a pipe has room for that poll(2) calls writable

mode_t type_of(int descriptor) {
  struct stat info {};
  return ::fstat(descriptor, &info) == 0 ? info.st_mode & S_IFMT : 0;
}

// Opened anew, so that a write returns which finds no room: O_NONBLOCK on the one that was inherited would be that of
// the shell, too. Empty: it cannot be, and a terminal with less room than a line may then hold the end up.
UniqueFd open_anew(int descriptor) {
  const mode_t type = type_of(descriptor);
  if (type != S_IFCHR && type != S_IFIFO) return UniqueFd();
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

OutputThread::OutputThread(int descriptor, std::size_t most_waiting, std::function<void(int)> on_lost)
    : own_(open_anew(descriptor)),
      descriptor_(own_ ? own_.get() : descriptor),
      is_socket_(type_of(descriptor) == S_IFSOCK),
      most_waiting_(most_waiting),
      on_lost_(std::move(on_lost)),
      thread_([this] { run(); }) {}

OutputThread::~OutputThread() {
  ends_.raise("the program ends");
  const MutexLock lock(mutex_);  // or the notice comes between the thread's look and its wait
  changed_.notify_one();
}

void OutputThread::write(std::string piece) {
  const MutexLock lock(mutex_);
  waiting_bytes_ += piece.size();
  waiting_.push_back(std::move(piece));
  while (waiting_bytes_ > most_waiting_ && waiting_.size() > 1) {
    waiting_bytes_ -= waiting_.front().size();
    waiting_.pop_front();
  }
  changed_.notify_one();
}

void OutputThread::run() {
  for (;;) {
    std::string piece;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock, [&]() ATOLL_REQUIRES(mutex_) { return ends_.raised() || !waiting_.empty(); });
      if (waiting_.empty()) return;
      piece = std::move(waiting_.front());
      waiting_.pop_front();
      waiting_bytes_ -= piece.size();
    }
    if (!put(piece)) return;
  }
}

// Tried before it waits: poll(2) wants a whole page free of a pipe.
bool OutputThread::put(std::string_view piece) {
  const bool may_block = !own_ && !is_socket_;
  std::optional<Deadline> end;
  bool refused = false;  // just now
  while (!piece.empty()) {
    if ((may_block || refused) && !wait_for_room(end)) return false;
    const std::size_t size = std::min(piece.size(), kAtOnce);
    const ssize_t taken = is_socket_ ? ::send(descriptor_, piece.data(), size, MSG_DONTWAIT | MSG_NOSIGNAL)
                                     : ::write(descriptor_, piece.data(), size);
    if (taken >= 0) {
      piece.remove_prefix(static_cast<std::size_t>(taken));
      end.reset();
      refused = false;
    } else if (errno == EAGAIN) {
      if (std::exchange(refused, true)) std::this_thread::sleep_for(kRefusedAgain);
    } else if (errno != EINTR) {
      if (on_lost_) on_lost_(errno);
      return true;
    }
  }
  return true;
}

bool OutputThread::wait_for_room(std::optional<Deadline>& end) {
  pollfd wanted[] = {{descriptor_, POLLOUT, 0}, {ends_.fd(), POLLIN, 0}};
  while (!ends_.raised()) {
    if (::poll(wanted, 2, -1) > 0 && wanted[0].revents != 0) return true;
  }
  if (!end) end = Deadline::after(kPatience);
  while (!end->expired()) {
    if (::poll(wanted, 1, end->poll_milliseconds()) > 0) return true;
  }
  return false;
}

OutputThreadStream::Buffer::int_type OutputThreadStream::Buffer::overflow(int_type next) {
  if (!traits_type::eq_int_type(next, traits_type::eof())) text_ += traits_type::to_char_type(next);
  return traits_type::not_eof(next);
}

std::streamsize OutputThreadStream::Buffer::xsputn(const char* text, std::streamsize size) {
  text_.append(text, static_cast<std::size_t>(size));
  return size;
}

int OutputThreadStream::Buffer::sync() {
  if (!text_.empty()) to_.write(std::exchange(text_, {}));
  return 0;
}

}  // namespace atl
