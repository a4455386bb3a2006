#include "tests/fakes/web_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <QtCore/QtGlobal>

#include <array>
#include <chrono>
#include <csignal>

namespace atl::test {
namespace {

constexpr std::chrono::milliseconds kLook{20};

template <class T, void (*free_it)(T*)>
struct Free {
  void operator()(T* what) const { free_it(what); }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY, EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509, X509_free>>;

// Of itself, for that address.
Certificate certificate_for(const std::string& host, EVP_PKEY* key) {
  Certificate made(X509_new());
  X509_set_version(made.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), 24 * 3600);
  X509_set_pubkey(made.get(), key);
  X509_NAME* const name = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("a test"), -1, -1, 0);
  X509_set_issuer_name(made.get(), name);
  for (const auto& [id, value] : {std::pair{NID_subject_alt_name, "IP:" + host},
                                  std::pair{NID_basic_constraints, std::string("critical,CA:TRUE")}}) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, id, value.c_str());
    X509_add_ext(made.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }
  if (X509_sign(made.get(), key, EVP_sha256()) == 0) qFatal("no certificate could be made");
  return made;
}

std::string pem_of(X509* certificate) {
  BIO* const memory = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(memory, certificate);
  char* text = nullptr;
  const long size = BIO_get_mem_data(memory, &text);
  std::string pem(text, static_cast<std::size_t>(size));
  BIO_free(memory);
  return pem;
}

}  // namespace

// With or without TLS. Blocks; the server's end shuts the socket.
class WebServer::Connection {
 public:
  Connection(int socket, SSL_CTX* context) : socket_(socket) {
    if (context == nullptr) return;
    ssl_.reset(SSL_new(context));
    SSL_set_fd(ssl_.get(), socket);
    good_ = SSL_accept(ssl_.get()) == 1;
  }
  bool good() const { return good_; }
  int read(char* to, int most) {
    return ssl_ ? SSL_read(ssl_.get(), to, most)
                : static_cast<int>(::recv(socket_, to, static_cast<std::size_t>(most), 0));
  }
  bool write(std::string_view bytes) {
    while (!bytes.empty()) {
      const int count = static_cast<int>(std::min<std::size_t>(bytes.size(), 16 * 1024));
      const int sent =
          ssl_ ? SSL_write(ssl_.get(), bytes.data(), count)
               : static_cast<int>(::send(socket_, bytes.data(), static_cast<std::size_t>(count), MSG_NOSIGNAL));
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

 private:
  const int socket_;
  std::unique_ptr<SSL, Closer> ssl_;
  bool good_ = true;
};

WebServer::WebServer(Scheme scheme, const std::string& host)
    : scheme_(scheme), host_(host), listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to whoever has gone
  if (scheme == Scheme::kHttps) {
    const Key key(EVP_EC_gen("P-256"));
    const Certificate certificate = certificate_for(host, key.get());
    context_.reset(SSL_CTX_new(TLS_server_method()));
    SSL_CTX_use_certificate(context_.get(), certificate.get());
    SSL_CTX_use_PrivateKey(context_.get(), key.get());
    authority_ = pem_of(certificate.get());
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  socklen_t size = sizeof address;
  const bool listens = ::bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                       ::listen(listening_.get(), 64) == 0 &&
                       ::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0;
  if (!listens) qFatal("the web server does not listen");
  port_ = ntohs(address.sin_port);
  acceptor_ = std::jthread([this] { accept_all(); });
}

WebServer::~WebServer() {
  ends_ = true;
  acceptor_.join();
  {
    const MutexLock lock(mutex_);
    for (const UniqueFd& socket : sockets_) ::shutdown(socket.get(), SHUT_RDWR);
  }
  threads_.clear();
}

std::string WebServer::url() const {
  return fmt::format("{}://{}:{}", scheme_ == Scheme::kHttps ? "https" : "http", host_, port_);
}

void WebServer::put(const std::string& path, std::string content) {
  const MutexLock lock(mutex_);
  files_[path] = std::move(content);
}

void WebServer::fail(WebFault fault, std::string redirect_to) {
  const MutexLock lock(mutex_);
  fault_ = fault;
  redirect_to_ = std::move(redirect_to);
}

void WebServer::accept_all() {
  while (!ends_) {
    pollfd ready{listening_.get(), POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(kLook.count())) <= 0) continue;
    UniqueFd socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) continue;
    ++connections_;
    const int number = socket.get();
    const MutexLock lock(mutex_);
    sockets_.push_back(std::move(socket));
    threads_.emplace_back([this, number] { serve(number); });
  }
}

void WebServer::serve(int socket) {
  Connection connection(socket, context_.get());
  std::array<char, 4096> piece{};
  std::string buffer;
  while (connection.good() && !ends_) {
    const auto end = buffer.find("\r\n\r\n");
    if (end == std::string::npos) {
      const int got = connection.read(piece.data(), static_cast<int>(piece.size()));
      if (got <= 0) break;
      buffer.append(piece.data(), static_cast<std::size_t>(got));
      continue;
    }
    const std::string head = buffer.substr(0, end);
    buffer.erase(0, end + 4);
    ++requests_;
    const auto range = head.find("Range: bytes=");
    const bool goes_on = answer(
        connection, head.substr(4, head.find(' ', 4) - 4),
        range == std::string::npos ? std::string() : head.substr(range + 13, head.find('\r', range) - range - 13));
    if (!goes_on) break;
  }
  ::shutdown(socket, SHUT_RDWR);
}

// False: the connection is to end.
bool WebServer::answer(Connection& connection, const std::string& path, const std::string& range) {
  std::string content, redirect;
  WebFault fault = WebFault::kNone;
  bool found = false;
  {
    const MutexLock lock(mutex_);
    fault = fault_;
    redirect = redirect_to_;
    const auto file = files_.find(path);
    found = file != files_.end() && fault != WebFault::kNotFound;
    if (found) content = file->second;
  }
  if (fault == WebFault::kRedirects) {
    return connection.write(
        fmt::format("HTTP/1.1 302 .\r\nLocation: {}{}\r\nContent-Length: 0\r\n\r\n", redirect, path));
  }
  if (!found) return connection.write("HTTP/1.1 404 .\r\nContent-Length: 4\r\n\r\nnone");
  std::string status = "200 .";
  if (!range.empty() && fault != WebFault::kWholeFiles) {
    const std::size_t first = std::stoull(range), last = std::stoull(range.substr(range.find('-') + 1));
    status = fmt::format("206 .\r\nContent-Range: bytes {}-{}/{}", first, last, content.size());
    content = content.substr(first, last - first + 1);
  }
  if (fault == WebFault::kWrongBytes) content.back() = static_cast<char>(content.back() ^ 1);
  const auto wait_for_the_end = [this] {
    while (!ends_) std::this_thread::sleep_for(kLook);
    return false;
  };
  if (fault == WebFault::kSilent) return wait_for_the_end();
  if (fault == WebFault::kEndless) {
    if (!connection.write(fmt::format("HTTP/1.1 {}\r\n\r\n", status))) return false;
    while (!ends_ && connection.write(content)) {
    }
    return false;
  }
  if (!connection.write(fmt::format("HTTP/1.1 {}\r\nContent-Length: {}\r\n\r\n", status, content.size()))) return false;
  if (fault == WebFault::kCloses) {
    connection.write(content.substr(0, content.size() / 2));
    return false;
  }
  if (fault != WebFault::kDrips) return connection.write(content);
  for (const char byte : content) {
    if (ends_ || !connection.write(std::string_view(&byte, 1))) return false;
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

}  // namespace atl::test
