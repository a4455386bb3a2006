#include "tests/fakes/forged_alert.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>

#include "net/transport/socket.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kLook{50};
constexpr std::array<unsigned char, 7> kExpired = {21, 3, 3, 0,
                                                   2,  2, 45};  // RFC 8446: alert, fatal, certificate_expired

}  // namespace

ForgedAlert::ForgedAlert()
    : listening_(listen_tcp({"127.0.0.1", 0}).value()), thread_([this](const std::stop_token& stop) { run(stop); }) {}

Address ForgedAlert::address() const { return {"127.0.0.1", local_port(listening_.get())}; }

void ForgedAlert::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (!wait_ready(listening_.get(), POLLIN, Deadline::after(kLook), nullptr, "accept").ok()) continue;
    const UniqueFd peer(::accept(listening_.get(), nullptr, nullptr));
    std::array<std::byte, 4096> hello;
    if (!peer || ::recv(peer.get(), hello.data(), hello.size(), 0) <= 0) continue;
    if (::send(peer.get(), kExpired.data(), kExpired.size(), MSG_NOSIGNAL) > 0) ++answered_;
  }
}

}  // namespace atl
