#include "net/hub/check_endpoints.h"

#include <fmt/format.h>

#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <charconv>
#include <optional>

#include "net/hub/hub_stream.h"

namespace atl {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::string_view kCheckPrefix = "/check/";
constexpr std::size_t kNoisePieceBytes = 128 * 1024;
constexpr std::chrono::seconds kStall{10};
// Nobody measures longer; a slow link is measured by what came until then.
constexpr std::chrono::seconds kLongestTransfer{15};
constexpr std::chrono::milliseconds kDialLook{20};  // at a dial under way
constexpr std::chrono::seconds kLongestDial{15};

std::string_view target_of(const HttpRequest& request) { return {request.target().data(), request.target().size()}; }

// The number after `key` in "?key=NUMBER"; empty when there is none.
std::optional<std::uint64_t> number_in(std::string_view target, std::string_view key) {
  const std::size_t mark = target.find('?');
  if (mark == std::string_view::npos || !target.substr(mark + 1).starts_with(key)) return std::nullopt;
  const std::string_view text = target.substr(mark + 1 + key.size());
  std::uint64_t value = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || at != text.data() + text.size()) return std::nullopt;
  return value;
}

// One transfer of a member; none that holds a place keeps others from theirs for long.
class Measuring {
 public:
  static bool may(const std::set<IslandId>& others, const IslandId& island) {
    return others.size() < CheckEndpoints::kTransfersAtOnce && !others.contains(island);
  }
  // Shared with their owner, which may be gone before the transfer.
  Measuring(std::shared_ptr<std::set<IslandId>> all, const IslandId& island) : all_(std::move(all)), island_(island) {
    all_->insert(island_);
  }
  ~Measuring() { all_->erase(island_); }
  Measuring(const Measuring&) = delete;
  Measuring& operator=(const Measuring&) = delete;

 private:
  const std::shared_ptr<std::set<IslandId>> all_;
  const IslandId island_;
};

const std::array<char, kNoisePieceBytes>& noise() {
  static const auto bytes = [] {
    std::array<char, kNoisePieceBytes> made{};
    std::uint64_t state = 0x9E3779B97F4A7C15u;
    for (char& byte : made) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      byte = static_cast<char>(state);
    }
    return made;
  }();
  return bytes;
}

}  // namespace

Result<std::unique_ptr<CheckEndpoints>> CheckEndpoints::start(asio::io_context& io, const Identity& hub,
                                                              std::function<CheckAbout()> about) {
  std::unique_ptr<CheckEndpoints> endpoints(new CheckEndpoints(io, std::move(about)));
  const auto on_dialled = [&io, self = endpoints.get()](const IslandId& island, const Address& address, bool answered) {
    asio::post(io, [self, island, address, answered] {
      const auto dial = self->dials_.find(island);
      if (dial == self->dials_.end() || dial->second.address != address) return;
      dial->second.ended = true;
      dial->second.answered = answered;
    });
  };
  ATOLL_ASSIGN_OR_RETURN(endpoints->dialer_, IslandDialer::start(hub, on_dialled));
  return endpoints;
}

bool CheckEndpoints::serves(const HttpRequest& request) { return target_of(request).starts_with(kCheckPrefix); }

asio::awaitable<bool> CheckEndpoints::answer(TlsStream& stream, beast::flat_buffer& buffer, const HttpRequest& request,
                                             const IslandId& island, const std::string& host) {
  const std::string_view target = target_of(request);
  const bool get = request.method() == http::verb::get;
  if (target == "/check/up" && request.method() == http::verb::post) {
    co_return co_await take_body(stream, buffer, request, island);
  }
  if (get && target == "/check/ping") co_return co_await answer_text(stream, request, http::status::ok, "ok\n");
  if (get && target == "/check/about") {
    const std::string text = encode(about_());
    co_return co_await answer_text(stream, request, http::status::ok, text);
  }
  if (get && target.starts_with("/check/down?")) {
    const auto bytes = number_in(target, "bytes=");
    if (bytes && *bytes <= kMaxCheckBytes) co_return co_await send_noise(stream, request, island, *bytes);
  }
  if (get && (target == "/check/dial" || target.starts_with("/check/dial?"))) {
    co_return co_await dial_back(stream, request, island, host);
  }
  co_return co_await answer_text(stream, request, http::status::not_found, "there is nothing here\n");
}

asio::awaitable<bool> CheckEndpoints::send_noise(TlsStream& stream, const HttpRequest& request, const IslandId& island,
                                                 std::uint64_t bytes) {
  if (!Measuring::may(*measuring_, island)) {
    co_return co_await answer_text(stream, request, http::status::service_unavailable, "others measure now\n");
  }
  const Measuring measuring(measuring_, island);
  const std::string header =
      fmt::format("HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n", bytes);
  beast::get_lowest_layer(stream).expires_after(kStall);
  const AsioError header_error = co_await write_exactly(stream, as_bytes(header));
  if (header_error) co_return false;
  const auto end = std::chrono::steady_clock::now() + kLongestTransfer;
  for (std::uint64_t left = bytes; left > 0;) {
    const std::size_t piece = std::min<std::uint64_t>(left, kNoisePieceBytes);
    beast::get_lowest_layer(stream).expires_after(kStall);
    const AsioError error = co_await write_exactly(stream, as_bytes({noise().data(), piece}));
    if (error || std::chrono::steady_clock::now() > end) co_return false;
    left -= piece;
  }
  co_return request.keep_alive();
}

asio::awaitable<bool> CheckEndpoints::take_body(TlsStream& stream, beast::flat_buffer& buffer,
                                                const HttpRequest& request, const IslandId& island) {
  const auto header = request[http::field::content_length];
  const std::string_view text(header.data(), header.size());
  std::uint64_t left = 0;
  const auto [at, wrong] = std::from_chars(text.data(), text.data() + text.size(), left);
  // Closed after these answers: the body that follows was not read.
  if (wrong != std::errc() || at != text.data() + text.size() || left > kMaxCheckBytes) {
    co_await answer_text(stream, request, http::status::bad_request, "say its length, at most 256 MiB\n");
    co_return false;
  }
  if (!Measuring::may(*measuring_, island)) {
    co_await answer_text(stream, request, http::status::service_unavailable, "others measure now\n");
    co_return false;
  }
  const Measuring measuring(measuring_, island);
  const std::uint64_t there = std::min<std::uint64_t>(left, buffer.size());
  buffer.consume(there);
  left -= there;
  Bytes piece(kNoisePieceBytes);
  const auto end = std::chrono::steady_clock::now() + kLongestTransfer;
  while (left > 0) {
    beast::get_lowest_layer(stream).expires_after(kStall);
    const std::size_t most = std::min<std::uint64_t>(left, piece.size());
    const auto [error, count] = co_await stream.async_read_some(asio::buffer(piece.data(), most), kAwait);
    if (error || std::chrono::steady_clock::now() > end) co_return false;
    left -= count;
  }
  co_return co_await answer_text(stream, request, http::status::ok, "ok\n");
}

asio::awaitable<bool> CheckEndpoints::dial_back(TlsStream& stream, const HttpRequest& request, const IslandId& island,
                                                const std::string& host) {
  Address address{host, 0};
  if (const auto port = number_in(target_of(request), "port="); port && *port > 0 && *port <= 65535) {
    address.port = static_cast<std::uint16_t>(*port);
  } else {
    for (const CheckIsland& live : about_().islands) {
      if (live.id == island) address = live.address;
    }
  }
  if (address.port == 0) {
    co_return co_await answer_text(stream, request, http::status::not_found, "this island has said no port\n");
  }
  if (!dials_.try_emplace(island, Dial{address}).second) {
    co_return co_await answer_text(stream, request, http::status::service_unavailable, "it is being dialled\n");
  }
  dialer_->dial(island, address);
  const auto end = std::chrono::steady_clock::now() + kLongestDial;
  beast::get_lowest_layer(stream).expires_never();
  asio::steady_timer timer(io_);
  while (!dials_[island].ended && std::chrono::steady_clock::now() < end) {
    timer.expires_after(kDialLook);
    co_await timer.async_wait(kAwait);
  }
  const bool answered = dials_[island].answered;
  dials_.erase(island);
  // Not within the awaited expression: GCC 12 destroys aggregates there twice.
  const std::string text = encode(CheckDialled{address, answered});
  co_return co_await answer_text(stream, request, http::status::ok, text);
}

}  // namespace atl
