// The hub's port: accepts, completes TLS, and leads each connection where it may go: enrolment, the mesh, the dataset,
// the base model, its members' node checks. On the hub's io_context thread. Bounded by address, network and member, and
// in the time of each step (OpenConnections).
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "net/base/log_limit.h"
#include "net/hub/base_model_files.h"
#include "net/hub/check_endpoints.h"
#include "net/hub/data_files.h"
#include "net/hub/island_link.h"
#include "net/hub/member_rate.h"
#include "net/hub/open_connections.h"
#include "net/hub/open_streams.h"
#include "net/wire/enrol.h"

namespace atl {

// What the listener asks of the server.
class HubGate {
 public:
  virtual ~HubGate() = default;
  // Empty: not in the roster. An error says nothing of the island: the roster could not be read.
  virtual Result<std::optional<EnrolledIsland>> admit(const PeerCertificate& certificate) = 0;
  // A new certificate for the key that this one certifies.
  virtual Result<std::string> renew(const EnrolledIsland& island, const std::string& certificate_pem) = 0;
  virtual Result<std::string> contributors() = 0;  // net/wire/contributors.h
  virtual std::string past() = 0;                  // net/wire/told_past.h
  virtual EnrolResponse enrol(const EnrolRequest& request) = 0;
  virtual AboutResponse about(const AboutRequest& request) = 0;                             // what everybody may know
  virtual boost::asio::awaitable<void> serve_island(std::shared_ptr<IslandLink> link) = 0;  // until it ends
  virtual void stop_serving(const Error& error) = 0;  // nobody reaches this hub any more
};

class HubListener {
 public:
  // All outlive it, and the coroutines that it starts on `io`.
  HubListener(boost::asio::io_context& io, const TlsContext& tls, const DataFiles& data,
              const BaseModelFiles& base_model, CheckEndpoints& checks, HubGate& gate,
              const HubPortLimits& limits = {});

  Status listen(
      const Address& address);  // kPermissionDenied when the port is taken, kInvalidArgument for a wrong address
  std::uint16_t port() const { return port_; }
  void expect(const std::vector<std::string>& hosts) { connections_->expect(hosts); }
  void close();                                             // no new connections
  void cut(const IslandId& island) { open_->cut(island); }  // its requests, also those that are being answered

 private:
  using Socket = boost::asio::ip::tcp::socket;
  boost::asio::awaitable<void> accept();
  boost::asio::awaitable<void> watch();
  bool begin_serving(Socket socket);
  boost::asio::awaitable<void> serve(Socket socket);
  // Where the connection that this proxy passes on comes from. An error: it is not said, or not so.
  boost::asio::awaitable<Result<std::string>> read_source(boost::beast::tcp_stream& stream, std::string proxy);
  bool is_proxy(const std::string& host) const;
  void refuse(const std::string& host, const std::string& why);  // a line of the log
  boost::asio::awaitable<void> serve_enrolment(TlsStream& stream);
  Bytes answer_enrolment(ByteView body);
  boost::asio::awaitable<void> serve_http(TlsStream& stream, OpenConnections::Place& place, std::string host);
  boost::asio::awaitable<void> serve_link(TlsStream& stream, OpenConnections::Place& place, const HttpRequest& request,
                                          const EnrolledIsland& island, std::string host);
  boost::asio::awaitable<std::optional<EnrolledIsland>> admit(TlsStream& stream, const HttpRequest& request,
                                                              const PeerCertificate& peer);
  boost::asio::awaitable<bool> answer(TlsStream& stream, const HttpRequest& request, const EnrolledIsland& island);
  boost::asio::awaitable<bool> serve_contributors(TlsStream& stream, const HttpRequest& request);
  boost::asio::awaitable<bool> serve_certificate(TlsStream& stream, const HttpRequest& request,
                                                 const EnrolledIsland& island);

  boost::asio::io_context& io_;
  boost::asio::ssl::context tls_;
  const DataFiles& data_;
  const BaseModelFiles& base_model_;
  CheckEndpoints& checks_;
  HubGate& gate_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::uint16_t port_ = 0;
  const std::vector<NetworkRange> trusted_proxies_;
  const std::chrono::milliseconds header_time_;
  std::size_t headers_awaited_ = 0;  // of proxies
  const std::shared_ptr<OpenConnections> connections_;
  const std::shared_ptr<OpenStreams> open_ = std::make_shared<OpenStreams>();
  MemberRate joins_;
  LogLimit refused_;  // lines about hosts and islands that were not let in
  LogLimit failed_;   // about connections that ended by an exception
};

}  // namespace atl
