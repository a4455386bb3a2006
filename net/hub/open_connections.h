// Who is connected to the hub's port, and for how long each may go on: ConnectionLimits and HttpsPace with sockets and
// clock around them. On the hub's io_context thread; shared by the listener and the coroutines that serve.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/beast/core/tcp_stream.hpp>

#include "net/hub/island_link.h"
#include "net/transport/connection_limits.h"
#include "net/transport/https_pace.h"

namespace atl {

struct HubPortLimits {
  ConnectionSizes connections{};
  // From accept to a member's certificate; after it as long again for an enrolment, or for telling who is no member.
  std::chrono::milliseconds handshake{10'000};
  HttpsPaceLimits pace{};
  // Proxies that say where each connection comes from; of them alone it is believed, and has to be said.
  std::vector<NetworkRange> trusted_proxies = {};
  // Connections to the mesh, each of which everybody hears of: so many of a member at once, then one a period. An
  // island whose way breaks again and again waits longer by itself.
  int joins_at_once = 30;
  std::chrono::milliseconds join_period{5'000};
};

class OpenConnections {
 public:
  explicit OpenConnections(const HubPortLimits& limits);

  // One connection, from its accept to its end; within the coroutine that serves it.
  class Place {
   public:
    // `stream` outlives it, or is replaced by use() or become_link().
    Place(std::shared_ptr<OpenConnections> all, const std::string& host, boost::beast::tcp_stream& stream);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    void use(boost::beast::tcp_stream& stream);  // the same connection, moved
    bool dropped() const;                        // others came, or its time was over
    void spoke();
    void begin_exchange();                  // with one who is no member
    bool verified(const IslandId& member);  // false: its member has too many
    // Of a member, HttpsPace's steps:
    void wait_for_request();
    void begin_header();
    void begin_answer();
    void become_link(const std::shared_ptr<IslandLink>& link);  // which keeps its own time

   private:
    const std::shared_ptr<OpenConnections> all_;
    ConnectionId id_ = 0;
  };

  // Where members came from before this hub started: places are kept for them.
  void expect(const std::vector<std::string>& hosts);
  void look();  // now and then: ends those that have had their time
  std::chrono::milliseconds look_period() const;
  std::size_t size() const { return open_.size(); }

 private:
  struct Open {
    boost::beast::tcp_stream* stream = nullptr;
    std::weak_ptr<IslandLink> link = {};
    std::optional<Clock::time_point> until = {};  // while it is no member's
    std::optional<HttpsPace> pace = {};           // while it serves requests of one
    bool dropped = false;
  };
  void drop(const ConnectionLimits::Dropped& ids);
  static void end(Open& open);
  bool is_over(ConnectionId id, Open& open, Clock::time_point now);

  const HubPortLimits limits_;
  ConnectionLimits counts_;
  std::map<ConnectionId, Open> open_;
};

}  // namespace atl
