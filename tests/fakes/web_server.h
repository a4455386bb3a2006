// A web server of files within the test, at 127.0.0.1 or 127.0.0.2: with TLS by a certificate of its own, or without.
// It fails as it is told to. A thread a connection.
#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "net/base/mutex.h"
#include "net/base/unique_fd.h"

namespace atl::test {

enum class WebFault {
  kNone,
  kWrongBytes,  // the last of each body
  kNotFound,
  kDrips,       // a byte now and then
  kSilent,      // takes the request, says nothing
  kWholeFiles,  // whatever range is asked for
  kEndless,     // a body without an end
  kRedirects,   // to `redirect_to` and the path
  kCloses       // in the middle of the body
};

class WebServer {
 public:
  enum class Scheme { kHttp, kHttps };
  explicit WebServer(Scheme scheme, const std::string& host = "127.0.0.1");
  ~WebServer();

  std::string url() const;  // without a slash at its end
  // PEM: of the authority that made its certificate, which is the certificate itself.
  const std::string& authority() const { return authority_; }
  void put(const std::string& path, std::string content);  // before anybody asks
  void fail(WebFault fault, std::string redirect_to = {});
  int connections() const { return connections_; }
  int requests() const { return requests_; }

 private:
  struct Closer {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  class Connection;

  void accept_all();
  void serve(int socket);
  bool answer(Connection& connection, const std::string& path, const std::string& range);

  const Scheme scheme_;
  const std::string host_;
  std::unique_ptr<SSL_CTX, Closer> context_;
  std::string authority_;
  UniqueFd listening_;
  int port_ = 0;
  std::atomic<int> connections_{0}, requests_{0};
  std::atomic<bool> ends_{false};
  Mutex mutex_;
  std::map<std::string, std::string> files_ ATOLL_GUARDED_BY(mutex_);
  WebFault fault_ ATOLL_GUARDED_BY(mutex_) = WebFault::kNone;
  std::string redirect_to_ ATOLL_GUARDED_BY(mutex_);
  std::list<UniqueFd> sockets_ ATOLL_GUARDED_BY(mutex_);
  std::list<std::jthread> threads_;  // the acceptor's
  std::jthread acceptor_;
};

}  // namespace atl::test
