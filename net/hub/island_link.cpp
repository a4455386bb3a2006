#include "net/hub/island_link.h"

#include <spdlog/spdlog.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <utility>

#include "net/mesh/spawn.h"
#include "net/mesh/web_socket.h"
#include "net/wire/mesh.h"

namespace atl {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;

constexpr std::size_t kMaxQueuedMessages = 256;
constexpr std::size_t kMaxQueuedBytes = 8 * kMaxMeshMessageBytes;
constexpr std::chrono::seconds kCloseTimeout{1};
constexpr std::chrono::seconds kDismissTimeout{5};  // for what is queued, and the close

}  // namespace

IslandLink::IslandLink(WebSocket socket, EnrolledIsland island, std::string host)
    : socket_(std::move(socket)), island_(std::move(island)), host_(std::move(host)) {
  socket_.read_message_max(kMaxMeshMessageBytes);
  socket_.text(true);
}

asio::awaitable<Result<std::string>> IslandLink::read() {
  buffer_.clear();
  const AsioError error = co_await read_message(socket_, buffer_);
  if (error) co_return Error{ErrorCode::kPeerLost, error.message()};
  co_return beast::buffers_to_string(buffer_.data());
}

void IslandLink::send(std::string text) {
  if (closing_) return;
  if (queue_.size() >= kMaxQueuedMessages || queued_bytes_ + text.size() > kMaxQueuedBytes) {
    spdlog::warn("mesh island={} error=\"does not read its messages\"", island_.id.value);
    return cut();
  }
  queued_bytes_ += text.size();
  queue_.push_back(std::move(text));
  start_writing();
}

void IslandLink::close_when_sent() {
  if (!std::exchange(closing_, true)) {  // one that reads nothing is not waited for
    auto timer = std::make_shared<asio::steady_timer>(socket_.get_executor(), kDismissTimeout);
    timer->async_wait([self = shared_from_this(), timer](const boost::system::error_code& error) {
      if (!error) self->cut();
    });
  }
  start_writing();
}

void IslandLink::dismiss(ErrorCode code, const std::string& why) {
  send(encode(HubMessage(HubGoodbye{code, why, false})));
  close_when_sent();
}

void IslandLink::start_writing() {
  if (writing_) return;
  writing_ = true;
  const auto self = shared_from_this();
  spawn(
      socket_.get_executor(), [self] { return self->write_queue(); },
      [self](const std::string& what) {
        spdlog::error("mesh island={} failed=\"{}\"", self->island_.id.value, what);
        self->cut();  // the reader reports it
      });
}

void IslandLink::cut() {
  closing_ = true;
  queue_.clear();
  queued_bytes_ = 0;
  beast::get_lowest_layer(socket_).close();
}

asio::awaitable<void> IslandLink::write_queue() {
  while (!queue_.empty()) {
    const std::string text = std::move(queue_.front());
    queue_.pop_front();
    queued_bytes_ -= text.size();
    const AsioError error = co_await write_message(socket_, text);
    if (error) {
      cut();  // the reader reports it
      co_return;
    }
  }
  writing_ = false;
  if (!closing_) co_return;
  writing_ = true;
  beast::get_lowest_layer(socket_).expires_after(kCloseTimeout);
  co_await close_web_socket(socket_);
  beast::get_lowest_layer(socket_).close();
}

}  // namespace atl
