#include "app/cli/bench/link_bench.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/cli/bench/bench_island.h"
#include "app/cli/bench/link_stream.h"
#include "net/transport/socket.h"
#include "net/wire/json_archive.h"

namespace atl {
namespace {

constexpr std::byte kTlsHandshake{0x16};
constexpr std::chrono::seconds kStep{10};  // to connect, to shake hands, to be asked the next thing

double rate(std::uint64_t bytes, std::uint64_t nanoseconds) {
  return nanoseconds == 0 ? 0 : static_cast<double>(bytes) * 1e9 / static_cast<double>(nanoseconds);
}

// ---- the throw-away identity of the client

std::string to_text(const Identity& identity, const IslandId& listener) {
  return nlohmann::json{{"listener", listener.value},
                        {"name", identity.name.value},
                        {"run", identity.run},
                        {"key", identity.key_pem},
                        {"certificate", identity.certificate_pem},
                        {"authority", identity.authority_pem}}
      .dump();
}

struct Introduction {
  Identity self;
  IslandId listener;
};

Result<Introduction> introduction_of(std::string_view text) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json json, parse_bounded_json(text, kMaxLinkIdentityBytes, 2));
  try {
    return Introduction{{IslandId{json.at("name").get<std::string>()}, json.at("run").get<std::string>(),
                         json.at("key").get<std::string>(), json.at("certificate").get<std::string>(),
                         json.at("authority").get<std::string>()},
                        IslandId{json.at("listener").get<std::string>()}};
  } catch (const nlohmann::json::exception& exception) {
    return Error{ErrorCode::kProtocol, std::string("bench link: the listener's introduction: ") + exception.what()};
  }
}

// ---- the listening end

struct Listener {
  UniqueFd socket;
  Identity self;
  Identity client;
  std::optional<std::string> client_host;  // the first that came; nobody else is served
};

Status answer(const LinkRequest& request, LinkStream stream, const Listener& listener, const AbortSignal& interrupt) {
  const std::chrono::milliseconds duration(request.milliseconds);
  if (request.mode == LinkMode::kIdentity) {
    const std::string text = to_text(listener.client, listener.self.name);
    ByteWriter writer;
    writer.put(static_cast<std::uint32_t>(text.size()));
    writer.put_bytes(as_bytes(text));
    return stream.write_all(writer.bytes(), Deadline::after(kStep), interrupt);
  }
  if (request.mode == LinkMode::kEcho) {
    std::byte one{};
    for (int i = 0; i < kLinkEchoes; ++i) {
      ATOLL_RETURN_IF_ERROR(stream.read_exact({&one, 1}, Deadline::after(kStep), interrupt));
      ATOLL_RETURN_IF_ERROR(stream.write_all({&one, 1}, Deadline::after(kStep), interrupt));
    }
    return ok_status();
  }
  LinkSenderReport sent;
  const auto received = request.mode == LinkMode::kListenerSends ? send_blocks(stream, duration, interrupt, sent)
                                                                 : receive_blocks(stream, duration, interrupt, sent);
  return received.ok() ? ok_status() : Status(received.error());
}

// TLS, if that is what the first byte begins.
Result<LinkStream> open(UniqueFd socket, const Identity& self, const AbortSignal& interrupt) {
  const Deadline deadline = Deadline::after(kStep);
  ATOLL_RETURN_IF_ERROR(wait_ready(socket.get(), POLLIN, deadline, &interrupt, "bench link: waiting for a request"));
  std::byte first{};
  if (::recv(socket.get(), &first, 1, MSG_PEEK | MSG_DONTWAIT) != 1 || first != kTlsHandshake) {
    return LinkStream(std::move(socket));
  }
  ATOLL_ASSIGN_OR_RETURN(const TlsContext context, TlsContext::island_server(self));
  ATOLL_ASSIGN_OR_RETURN(TlsConnection connection,
                         TlsConnection::accept(std::move(socket), context, deadline, &interrupt));
  return LinkStream(std::move(connection));
}

// True when the client is done.
Result<bool> serve_next(Listener& listener, Deadline deadline, const AbortSignal& interrupt) {
  ATOLL_RETURN_IF_ERROR(
      wait_ready(listener.socket.get(), POLLIN, deadline, &interrupt, "bench link: waiting for the other end"));
  UniqueFd socket(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) return false;  // it went away again
  disable_nagle(socket.get());
  const std::string host = remote_address(socket.get()).host;
  if (listener.client_host && *listener.client_host != host) return false;
  ATOLL_ASSIGN_OR_RETURN(LinkStream stream, open(std::move(socket), listener.self, interrupt));
  Bytes bytes(kLinkRequestBytes);
  ATOLL_RETURN_IF_ERROR(stream.read_exact(bytes, Deadline::after(kStep), interrupt));
  ATOLL_ASSIGN_OR_RETURN(const LinkRequest request, decode_link_request(bytes));
  listener.client_host = host;
  if (request.mode == LinkMode::kBye) return true;
  ATOLL_RETURN_IF_ERROR(answer(request, std::move(stream), listener, interrupt));
  return false;
}

// ---- the dialling end

Result<LinkStream> ask(const Address& listener, const LinkRequest& request, const AbortSignal& interrupt) {
  const std::string what = fmt::format("cannot measure the link to {}", to_string(listener));
  ATOLL_ASSIGN_OR_RETURN(UniqueFd socket, connect_tcp(listener, Deadline::after(kStep), &interrupt, what));
  LinkStream stream(std::move(socket));
  ATOLL_RETURN_IF_ERROR(stream.write_all(encode(request), Deadline::after(kStep), interrupt));
  return stream;
}

Result<Introduction> introduce(const Address& listener, const AbortSignal& interrupt) {
  ATOLL_ASSIGN_OR_RETURN(LinkStream stream, ask(listener, {LinkMode::kIdentity, 0}, interrupt));
  Bytes size(4);
  ATOLL_RETURN_IF_ERROR(stream.read_exact(size, Deadline::after(kStep), interrupt));
  const auto length = ByteReader(size).get<std::uint32_t>();
  if (length > kMaxLinkIdentityBytes) return Error{ErrorCode::kProtocol, "bench link: the introduction is too long"};
  Bytes text(length);
  ATOLL_RETURN_IF_ERROR(stream.read_exact(text, Deadline::after(kStep), interrupt));
  return introduction_of(to_string(ByteView(text)));
}

Result<double> least_echo(const Address& listener, const AbortSignal& interrupt) {
  ATOLL_ASSIGN_OR_RETURN(LinkStream stream, ask(listener, {LinkMode::kEcho, 0}, interrupt));
  double least = 1e9;
  for (int i = 0; i < kLinkEchoes; ++i) {
    std::byte one{1};
    const auto begin = Clock::now();
    ATOLL_RETURN_IF_ERROR(stream.write_all({&one, 1}, Deadline::after(kStep), interrupt));
    ATOLL_RETURN_IF_ERROR(stream.read_exact({&one, 1}, Deadline::after(kStep), interrupt));
    least = std::min(least, Seconds(Clock::now() - begin).count());
  }
  return least;
}

Result<LinkStream> ask_over_tls(const Address& listener, const LinkRequest& request, const Introduction& introduction,
                                const AbortSignal& interrupt) {
  ATOLL_ASSIGN_OR_RETURN(const TlsContext context, TlsContext::client(introduction.self, kAlpnRing));
  ATOLL_ASSIGN_OR_RETURN(TlsConnection connection, TlsConnection::connect(listener, context, introduction.listener,
                                                                          Deadline::after(kStep), &interrupt));
  LinkStream stream(std::move(connection));
  ATOLL_RETURN_IF_ERROR(stream.write_all(encode(request), Deadline::after(kStep), interrupt));
  return stream;
}

Result<LinkTransfer> transfer(const Address& listener, const LinkRequest& request, bool tls,
                              const Introduction& introduction, const AbortSignal& interrupt) {
  ATOLL_ASSIGN_OR_RETURN(LinkStream stream, tls ? ask_over_tls(listener, request, introduction, interrupt)
                                                : ask(listener, request, interrupt));
  LinkTransfer result{tls, request.mode == LinkMode::kClientSends, {}, {}};
  const std::chrono::milliseconds duration(request.milliseconds);
  ATOLL_ASSIGN_OR_RETURN(result.received, result.from_here ? send_blocks(stream, duration, interrupt, result.sent)
                                                           : receive_blocks(stream, duration, interrupt, result.sent));
  return result;
}

}  // namespace

double LinkTransfer::bytes_per_second() const { return rate(received.steady_bytes, received.steady_nanoseconds); }

Status serve_link_bench(const Address& bind, Deadline deadline, const AbortSignal& interrupt,
                        const std::function<void(std::uint16_t port)>& listening) {
  ATOLL_ASSIGN_OR_RETURN(auto identities, make_bench_identities(2));
  Listener listener{{}, std::move(identities[0]), std::move(identities[1]), std::nullopt};
  ATOLL_ASSIGN_OR_RETURN(listener.socket, listen_tcp(bind));
  listening(local_port(listener.socket.get()));
  for (;;) {
    // The whole of it ends in time, whoever else knocks meanwhile.
    const Deadline next = listener.client_host ? Deadline::after(kStep).but_not_after(deadline) : deadline;
    if (next.expired()) return Error{ErrorCode::kTimeout, "bench link: the other end did not come, or not to an end"};
    const auto done = serve_next(listener, next, interrupt);
    if (done.ok() && *done) return ok_status();
    // Whoever speaks something else before the client has come is none of ours.
    if (!done.ok() && (listener.client_host || interrupt.raised() || next.expired())) return done.error();
  }
}

Result<LinkBenchResult> run_link_bench(const Address& listener, std::chrono::milliseconds each,
                                       const AbortSignal& interrupt) {
  LinkBenchResult result;
  ATOLL_ASSIGN_OR_RETURN(const Introduction introduction, introduce(listener, interrupt));
  ATOLL_ASSIGN_OR_RETURN(result.rtt_seconds, least_echo(listener, interrupt));
  for (const bool tls : {false, true}) {
    for (const LinkMode mode : {LinkMode::kClientSends, LinkMode::kListenerSends}) {
      const LinkRequest request{mode, static_cast<std::uint32_t>(each.count())};
      ATOLL_ASSIGN_OR_RETURN(LinkTransfer measured, transfer(listener, request, tls, introduction, interrupt));
      result.transfers.push_back(std::move(measured));
    }
  }
  ATOLL_ASSIGN_OR_RETURN(const LinkStream bye, ask(listener, {LinkMode::kBye, 0}, interrupt));
  return result;
}

}  // namespace atl
