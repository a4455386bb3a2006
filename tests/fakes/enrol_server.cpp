#include "tests/fakes/enrol_server.h"

#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <span>

#include "net/base/mutex.h"
#include "net/transport/socket.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kPatience{10};

struct SslDeleter {
  void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
};
using UniqueSsl = std::unique_ptr<SSL, SslDeleter>;

bool read(SSL* ssl, std::span<std::byte> into) {
  while (!into.empty()) {
    const int count = SSL_read(ssl, into.data(), static_cast<int>(into.size()));
    if (count <= 0) return false;
    into = into.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

EnrolServer::EnrolServer(const Identity& hub, Handler handler, About about)
    : context_(TlsContext::hub_server(hub).value()),
      handler_(std::move(handler)),
      about_(std::move(about)),
      listening_(listen_tcp({"127.0.0.1", 0}).value()),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

EnrolServer::~EnrolServer() {
  thread_.request_stop();
  stopped_.raise("the test is over");
}

Address EnrolServer::address() const { return {"127.0.0.1", local_port(listening_.get())}; }

void EnrolServer::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto waited = wait_ready(listening_.get(), POLLIN, Deadline::after(kPatience), &stopped_, "accept");
    const UniqueFd socket(waited.ok() ? ::accept(listening_.get(), nullptr, nullptr) : -1);
    if (socket) serve(socket.get());
  }
}

Bytes EnrolServer::answer(ByteView body) const {
  if (!about_) {
    const auto request = decode_enrol_request(body);
    return encode_frame(request.ok() ? handler_(*request) : EnrolResponse(request.error()));
  }
  const EnrolMessage message = decode_enrol_message(body).value();
  if (const auto* question = std::get_if<AboutRequest>(&message)) return encode_frame(about_(*question));
  return encode_frame(handler_(std::get<EnrolRequest>(message)));
}

void EnrolServer::serve(int socket) {  // blocking, with a limit
  const timeval limit{5, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const UniqueSsl ssl(SSL_new(context_.native()));
  SSL_set_fd(ssl.get(), socket);
  std::array<std::byte, kEnrolHeaderBytes> header{};
  if (SSL_accept(ssl.get()) != 1 || !read(ssl.get(), header)) return;
  const auto bytes = enrol_body_bytes(header);
  if (!bytes.ok()) return;  // who comes back asks over HTTPS whether it is a member: this one does not say
  Bytes body(*bytes);
  if (!read(ssl.get(), body)) return;
  ++requests_;
  {
    MutexLock lock(mutex_);
    last_body_ = to_string(body);
  }
  const Bytes frame = answer(body);
  if (to_lose_ > 0) {
    --to_lose_;
    return;
  }
  SSL_write(ssl.get(), frame.data(), static_cast<int>(frame.size()));
  SSL_shutdown(ssl.get());
}

}  // namespace atl
