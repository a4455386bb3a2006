// The mesh connections of islands: each says its hello within a deadline, takes part when it may enter, and is heard
// until it ends; a newer one of the same island replaces it. On the hub's io_context thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include <boost/asio/io_context.hpp>

#include "net/hub/island_link.h"
#include "net/mesh/coordinator_types.h"

namespace atl {

// What the sessions ask of the server.
class SessionGate {
 public:
  virtual ~SessionGate() = default;
  // Asked anew when it enters: the connection may be older than the island's removal. An error: it cannot be said now.
  virtual Result<bool> is_member(const EnrolledIsland& island) = 0;
  // An error is told to the island: it may not enter with this hello.
  virtual Result<IslandConnected> read_hello(const IslandLink& link, const std::string& text) = 0;
  // Where others dial it, as far as that has to be found out; seconds at most.
  virtual boost::asio::awaitable<void> find_place(std::shared_ptr<IslandLink> link, IslandConnected& event) = 0;
  virtual void step(const CoordinatorEvent& event) = 0;
};

class IslandSessions {
 public:
  static constexpr const char* kRemoved = "removed from the run by its operator";

  // Both outlive it, and its coroutines.
  IslandSessions(boost::asio::io_context& io, SessionGate& gate) : io_(io), gate_(gate) {}

  // Until the connection ends. What it throws ends it alone.
  boost::asio::awaitable<void> serve(std::shared_ptr<IslandLink> link);

  void send(const IslandId& island, std::string text);  // to nobody, when it is not here
  void close(const IslandId& island);                   // takes part no more; what was sent still goes out
  void send_away(const IslandId& island);               // removed, with a goodbye; greeted or not
  void close_all();                                     // each when all is sent
  void cut_all();
  bool empty() const { return links_.empty(); }

 private:
  boost::asio::awaitable<void> close_after_silence(std::weak_ptr<IslandLink> link, std::shared_ptr<bool> greeted);
  boost::asio::awaitable<bool> greet(std::shared_ptr<IslandLink> link);
  boost::asio::awaitable<void> hear(std::shared_ptr<IslandLink> link);
  void forget(const std::shared_ptr<IslandLink>& link);
  bool is_still_member(IslandLink& link);

  boost::asio::io_context& io_;
  SessionGate& gate_;
  std::set<std::shared_ptr<IslandLink>> ungreeted_;
  std::map<IslandId, std::shared_ptr<IslandLink>> placing_;  // greeted, while their places are found out; the newest
  std::map<IslandId, std::shared_ptr<IslandLink>> links_;
};

}  // namespace atl
