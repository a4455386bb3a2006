#include "tests/net/collective/slow_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "net/transport/socket.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kTick{2};

}  // namespace

SlowLink::SlowLink(Address target, std::size_t bytes_per_second)
    : target_(std::move(target)),
      bytes_per_second_(bytes_per_second),
      socket_(listen_tcp({"127.0.0.1", 0}).value()),
      address_{"127.0.0.1", local_port(socket_.get())},
      thread_([this] { run(); }) {}

SlowLink::~SlowLink() {
  stop_.raise("the test ends");
  thread_.join();
}

void SlowLink::accept() {
  UniqueFd accepted(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!accepted) return;
  auto onward = connect_tcp(target_, Deadline::after(std::chrono::seconds(5)), &stop_, "link");
  if (onward.ok()) pairs_.push_back({std::move(accepted), std::move(*onward)});
}

void SlowLink::half_close() {
  black_ = true;
  for (Pair& pair : pairs_) (half_closes_dialler_ ? pair.dialler : pair.listener).reset();
}

bool SlowLink::forward(int from, int to, std::size_t most, bool counted) {
  std::array<std::byte, 65536> buffer;
  std::size_t moved = 0;
  while (moved < most) {
    const auto got = ::recv(from, buffer.data(), std::min(buffer.size(), most - moved), 0);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    const auto count = static_cast<std::size_t>(got);
    moved += count;
    if (counted && bytes_until_cut_ < count) return false;
    if (counted && bytes_until_black_ < count) black_ = true;
    if (counted && bytes_until_half_closed_ < count) half_close();
    if (counted) {
      bytes_until_half_closed_ -= std::min<std::size_t>(bytes_until_half_closed_, count);
      bytes_until_cut_ -= count;
      bytes_until_black_ -= std::min<std::size_t>(bytes_until_black_, count);
    }
    for (std::size_t sent = 0; sent < count && !black_;) {
      const auto put = ::send(to, buffer.data() + sent, count - sent, MSG_NOSIGNAL);
      if (put > 0) sent += static_cast<std::size_t>(put);
      if (put <= 0 && !wait_ready(to, POLLOUT, Deadline::after(std::chrono::seconds(5)), &stop_, "link").ok())
        return false;
    }
    if (black_) return true;
  }
  return true;
}

void SlowLink::run() {
  const auto a_tick = std::max<std::size_t>(
      1, static_cast<std::size_t>(static_cast<double>(bytes_per_second_) * Seconds(kTick).count()));
  while (!stop_.raised()) {
    pollfd stopped{stop_.fd(), POLLIN, 0};
    (void)::poll(&stopped, 1, static_cast<int>(kTick.count()));
    accept();
    if (black_) continue;
    for (auto pair = pairs_.begin(); pair != pairs_.end();) {
      const bool open = forward(pair->dialler.get(), pair->listener.get(), a_tick / pairs_.size() + 1, true) &&
                        (black_ || forward(pair->listener.get(), pair->dialler.get(), 65536, false));
      pair = open ? std::next(pair) : pairs_.erase(pair);
    }
  }
}

}  // namespace atl
