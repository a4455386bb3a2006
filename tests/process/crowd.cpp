#include "tests/process/crowd.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "net/control/json_rpc.h"
#include "net/control/unix_socket.h"

namespace atl::test {
namespace {

constexpr std::chrono::milliseconds kPause{100};  // between two looks at all clients of a kind
constexpr std::chrono::seconds kConnectTime{1};

std::string words_of(BadClient kind) {
  switch (kind) {
    case BadClient::kSilent: return "";
    case BadClient::kGarbage: return "GET / HTTP/1.1\r\n\r\n";
    case BadClient::kEndless: return std::string(64 * 1024, 'a');
    case BadClient::kNeverReads:
    case BadClient::kHalfCloses: return encode_request(1, "state.get", nlohmann::json::object());
  }
  return "";
}

// False when the other end is gone.
bool say(int fd, BadClient kind, const std::string& words) {
  bool open = true, full = words.empty();
  // The two that never end say as much as the socket takes.
  const bool on_and_on = kind == BadClient::kEndless || kind == BadClient::kNeverReads;
  while (open && !full) {
    const ssize_t count = ::send(fd, words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    full = (count < 0 && errno == EAGAIN) || !on_and_on;
    open = count >= 0 || errno == EAGAIN;
  }
  if (kind == BadClient::kHalfCloses) ::shutdown(fd, SHUT_WR);
  char byte = 0;
  if (kind == BadClient::kSilent) open = ::recv(fd, &byte, 1, MSG_DONTWAIT) != 0;
  return open;
}

}  // namespace

Crowd::Crowd(std::filesystem::path socket, std::size_t of_each_kind)
    : socket_(std::move(socket)), of_each_kind_(of_each_kind) {
  for (const BadClient kind : kBadClients) {
    threads_.emplace_back([this, kind](const std::stop_token& stop) { run(kind, stop); });
  }
}

Crowd::~Crowd() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

void Crowd::run(BadClient kind, const std::stop_token& stop) {
  const std::string words = words_of(kind);
  std::vector<UniqueFd> clients(of_each_kind_);
  while (!stop.stop_requested()) {
    for (UniqueFd& client : clients) {
      if (stop.stop_requested()) break;
      if (!client) connect(client);
      if (!client || say(client.get(), kind, words)) continue;
      client.reset();
      --open_;
    }
    std::this_thread::sleep_for(kPause);
  }
}

void Crowd::connect(UniqueFd& client) {
  auto connected = connect_unix(socket_, Deadline::after(kConnectTime));
  if (!connected.ok()) return;
  client = std::move(*connected);
  ++connections_;
  const std::size_t open = ++open_;
  std::size_t most = most_at_once_;
  while (open > most && !most_at_once_.compare_exchange_weak(most, open)) {
  }
}

}  // namespace atl::test
