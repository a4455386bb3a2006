// The hub's part in its members' node checks (net/wire/check.h): what the run asks, noise to measure links by, and
// dialling back. A few at a time: the hub's loop also keeps the run. On the hub's io_context thread; the dials are on
// threads of their own.
#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <map>
#include <memory>
#include <set>

#include "net/hub/data_files.h"
#include "net/hub/hub_store.h"
#include "net/hub/hub_stream.h"
#include "net/hub/island_dialer.h"
#include "net/wire/check.h"

namespace atl {

class CheckEndpoints {
 public:
  static constexpr std::size_t kTransfersAtOnce = 4;  // of different members

  // `about` is asked on the io_context's thread; what it uses outlives this, as `io` and `hub` do.
  static Result<std::unique_ptr<CheckEndpoints>> start(boost::asio::io_context& io, const Identity& hub,
                                                       std::function<CheckAbout()> about);

  static bool serves(const HttpRequest& request);
  // Answers a request whose header was read; of its body, what lies in `buffer`. `host`: where the member comes from.
  // False when the connection is to be closed.
  boost::asio::awaitable<bool> answer(TlsStream& stream, boost::beast::flat_buffer& buffer, const HttpRequest& request,
                                      const IslandId& island, const std::string& host);

 private:
  struct Dial {
    Address address;
    bool ended = false;
    bool answered = false;
  };
  CheckEndpoints(boost::asio::io_context& io, std::function<CheckAbout()> about) : io_(io), about_(std::move(about)) {}

  boost::asio::awaitable<bool> send_noise(TlsStream& stream, const HttpRequest& request, const IslandId& island,
                                          std::uint64_t bytes);
  boost::asio::awaitable<bool> take_body(TlsStream& stream, boost::beast::flat_buffer& buffer,
                                         const HttpRequest& request, const IslandId& island);
  boost::asio::awaitable<bool> dial_back(TlsStream& stream, const HttpRequest& request, const IslandId& island,
                                         const std::string& host);

  boost::asio::io_context& io_;
  const std::function<CheckAbout()> about_;
  const std::shared_ptr<std::set<IslandId>> measuring_ = std::make_shared<std::set<IslandId>>();  // one transfer each
  std::map<IslandId, Dial> dials_;        // under way, one an island
  std::unique_ptr<IslandDialer> dialer_;  // last: its threads post to io_
};

}  // namespace atl
