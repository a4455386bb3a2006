// The hub's end of one island's WebSocket: reads whole messages, writes a bounded queue. Lives on the hub's io_context
// thread; shared by the coroutines that read and write it and by the server's table of islands.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "net/enrol/enrolment_store.h"
#include "net/mesh/asio_tls.h"

namespace atl {

class IslandLink : public std::enable_shared_from_this<IslandLink> {
 public:
  // `socket`: after the WebSocket's handshake. `host`: where the island comes from.
  IslandLink(WebSocket socket, EnrolledIsland island, std::string host);

  const EnrolledIsland& island() const { return island_; }
  const std::string& host() const { return host_; }

  // The next message; an error when the connection ended, in whatever way, or broke the rules.
  boost::asio::awaitable<Result<std::string>> read();
  void send(std::string text);  // an island that does not read is cut off when its queue is full
  void close_when_sent();       // takes no more messages
  void dismiss(ErrorCode code, const std::string& why);  // with a goodbye, for good
  void cut();                                            // at once

 private:
  void start_writing();  // unless it is under way
  boost::asio::awaitable<void> write_queue();

  WebSocket socket_;
  const EnrolledIsland island_;
  const std::string host_;
  boost::beast::flat_buffer buffer_;
  std::deque<std::string> queue_;
  std::size_t queued_bytes_ = 0;
  bool writing_ = false;
  bool closing_ = false;
};

}  // namespace atl
