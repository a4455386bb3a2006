#include "net/https/https_fetcher.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "net/tls/context.h"
#include "net/transport/https_pace.h"

namespace atl {
namespace {

constexpr long kReceiveBufferBytes = 512 * 1024, kLeastReceiveBufferBytes = 16 * 1024;
constexpr std::size_t kMaxRefusalBytes = 64 * 1024;    // of the body of a status that is no success
constexpr HttpsPaceLimits kPace;                       // of a server; it holds for what is asked of one, too
constexpr std::chrono::milliseconds kLookAtPace{100};  // which may have changed
constexpr long kOk = 200;
constexpr long kPartialContent = 206;

struct CurlDeleter {
  void operator()(CURL* easy) const noexcept { curl_easy_cleanup(easy); }
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};
// Another one, because CURL and CURLM are both void.
struct CurlMultiDeleter {
  void operator()(CURLM* multi) const noexcept { curl_multi_cleanup(multi); }
};

struct Transfer {
  TransferId id = 0;
  HttpsRequest request;
  std::unique_ptr<curl_slist, CurlDeleter> connect_to;
  std::unique_ptr<curl_slist, CurlDeleter> headers;
  std::array<char, CURL_ERROR_SIZE> message{};
  std::unique_ptr<CURL, CurlDeleter> easy;  // uses those above
  Clock::time_point last_byte;
  Clock::time_point window_began;
  std::uint64_t at_window = 0;  // of what moved either way, when the window began
  std::uint64_t received = 0;
  std::uint64_t sent = 0;  // of the upload
  bool head_complete = false;
  const Identity* self = nullptr;
  DownloadPace* download = nullptr;
  std::optional<Error> own_error;  // of this end: why it ended the transfer

  std::uint64_t moved() const { return received + sent; }
  std::string description() const { return fmt::format("{} at {}", request.peer.value, to_string(request.address)); }
};

long status_of(CURL* easy) {
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  return status;
}

Status take_body(Transfer& transfer, ByteView bytes) {
  transfer.last_byte = Clock::now();
  transfer.received += bytes.size();
  if (transfer.download != nullptr) {
    transfer.download->has_read(DownloadPace::Use::kFetch, bytes.size(), transfer.last_byte);
  }
  const long status = status_of(transfer.easy.get());
  const bool wanted = status == kOk || status == kPartialContent;
  if (transfer.received > (wanted ? transfer.request.max_bytes : kMaxRefusalBytes)) {
    return Error{ErrorCode::kProtocol, fmt::format("{} sends more than was asked for", transfer.description())};
  }
  return wanted ? transfer.request.on_body(bytes, status == kPartialContent) : ok_status();
}

std::size_t on_write(char* data, std::size_t size, std::size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  const std::size_t bytes = size * count;
  try {
    const Status taken = take_body(transfer, {reinterpret_cast<const std::byte*>(data), bytes});
    if (taken.ok()) return bytes;
    transfer.own_error = taken.error();
  } catch (const std::exception& failure) {
    transfer.own_error = Error{ErrorCode::kInternal, failure.what()};
  }
  return bytes == 0 ? 1 : 0;  // anything but `bytes` ends the transfer
}

// A header line also is a sign of life. The last one is empty; what follows on a "100 Continue" is another head.
std::size_t on_header(char* data, std::size_t size, std::size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  transfer.last_byte = Clock::now();
  transfer.head_complete = std::string_view(data, size * count) == "\r\n";
  return size * count;
}

// Noise: what compresses on its way would tell of a faster link.
std::size_t on_read(char* data, std::size_t size, std::size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  transfer.last_byte = Clock::now();
  const std::size_t bytes = std::min<std::uint64_t>(size * count, transfer.request.upload_bytes - transfer.sent);
  std::uint64_t state = 0x9E3779B97F4A7C15u + transfer.sent;
  for (std::size_t i = 0; i < bytes; ++i) {
    if (i % 8 == 0) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
    }
    data[i] = static_cast<char>(state >> (8 * (i % 8)));
  }
  transfer.sent += bytes;
  return bytes;
}

// By the kernel's count of the connection's life.
std::optional<double> lost_part(CURL* easy) {
  curl_socket_t socket = CURL_SOCKET_BAD;
  tcp_info info{};
  socklen_t size = sizeof info;
  if (curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &socket) != CURLE_OK || socket == CURL_SOCKET_BAD) return {};
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || info.tcpi_bytes_sent == 0) return {};
  return static_cast<double>(info.tcpi_bytes_retrans) / static_cast<double>(info.tcpi_bytes_sent);
}

ErrorCode code_of(CURLcode code, std::string_view message) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT: return ErrorCode::kUnreachable;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_INVALIDCERTSTATUS: return ErrorCode::kCertificate;
    case CURLE_OPERATION_TIMEDOUT: return ErrorCode::kTimeout;
    case CURLE_SSL_CONNECT_ERROR:  // also: cut short or reset in the handshake
    case CURLE_RECV_ERROR:         // in TLS 1.3 the server's verdict on our certificate comes after the handshake
    case CURLE_SEND_ERROR:
      return message.find("alert") != std::string_view::npos ? ErrorCode::kCertificate : ErrorCode::kPeerLost;
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE: return ErrorCode::kPeerLost;
    case CURLE_OUT_OF_MEMORY: return ErrorCode::kInternal;
    default: return ErrorCode::kProtocol;
  }
}

CURLcode set_tls_up(CURL*, void* context, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const Status done = set_up_client(static_cast<SSL_CTX*>(context), *transfer.self, kAlpnHttp);
  if (done.ok()) return CURLE_OK;
  transfer.own_error = done.error();
  return CURLE_SSL_CERTPROBLEM;
}

// TLS is net/tls's, but for the peer's name, which libcurl takes from the URL; no proxy, no redirects.
void set_trust(Transfer& transfer) {
  CURL* easy = transfer.easy.get();
  curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, set_tls_up);
  curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, &transfer);
  // It need not read the system's authorities for a context that trusts none of them in the end.
  curl_easy_setopt(easy, CURLOPT_CAINFO, nullptr);
  curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
  curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https");
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
}

// libcurl reads as much at a time as its buffer holds.
long receive_buffer_bytes(const DownloadPace* download) {
  if (download == nullptr || !download->allowed()) return kReceiveBufferBytes;
  return std::clamp(static_cast<long>(download->at_once(DownloadPace::Use::kFetch)), kLeastReceiveBufferBytes,
                    kReceiveBufferBytes);
}

void set_request(Transfer& transfer, std::chrono::milliseconds stall) {
  CURL* easy = transfer.easy.get();
  const HttpsRequest& request = transfer.request;
  // The URL has the name that the certificate must carry; CONNECT_TO has where to dial.
  const std::string url = fmt::format("https://{}:{}{}", request.peer.value, request.address.port, request.path);
  const std::string dial =
      fmt::format("{}:{}:{}", request.peer.value, request.address.port, to_string(request.address));
  transfer.connect_to.reset(curl_slist_append(nullptr, dial.c_str()));
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_CONNECT_TO, transfer.connect_to.get());
  const auto connect = request.connect.count() > 0 ? request.connect : stall;
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(connect.count()));
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, receive_buffer_bytes(transfer.download));
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer.message.data());
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, &transfer);
  curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, request.close_after ? 1L : 0L);
  curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, request.close_after ? 1L : 0L);
  if (request.upload_bytes > 0) {
    transfer.headers.reset(curl_slist_append(nullptr, "Expect:"));  // no waiting for a permission to send
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer.headers.get());
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.upload_bytes));
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(easy, CURLOPT_READDATA, &transfer);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, kReceiveBufferBytes);
    curl_easy_setopt(easy, CURLOPT_MAX_SEND_SPEED_LARGE, static_cast<curl_off_t>(request.upload_rate));
  }
  if (request.resume_at) {
    const std::uint64_t first = *request.resume_at, count = request.range_bytes;
    const std::string range = count > 0 ? fmt::format("{}-{}", first, first + count - 1) : fmt::format("{}-", first);
    curl_easy_setopt(easy, CURLOPT_RANGE, range.c_str());
  }
}

// How the connection served the transfer. libcurl takes a head that was cut off between two of its lines for a whole
// one without a body.
std::optional<Error> error_of(const Transfer& transfer, CURLcode code) {
  if (code == CURLE_OK && transfer.head_complete) return std::nullopt;
  if (code == CURLE_OK) {
    return Error{ErrorCode::kPeerLost, fmt::format("{}: its answer was cut off", transfer.description())};
  }
  const std::string_view detail = transfer.message[0] != '\0' ? transfer.message.data() : curl_easy_strerror(code);
  return Error{code_of(code, detail), fmt::format("{}: {}", transfer.description(), detail)};
}

}  // namespace

class HttpsFetcher::Impl {
 public:
  Impl(const Identity& self, std::chrono::milliseconds stall, DownloadPace* download, CURLM* multi)
      : self_(self), stall_(stall), download_(download), multi_(multi) {}
  ~Impl() {
    for (const auto& [id, transfer] : transfers_) curl_multi_remove_handle(multi_.get(), transfer->easy.get());
  }

  TransferId start(HttpsRequest request) {
    auto transfer = std::make_unique<Transfer>();
    transfer->id = ++last_id_;
    transfer->request = std::move(request);
    transfer->last_byte = transfer->window_began = Clock::now();
    transfer->easy.reset(curl_easy_init());
    if (!transfer->easy) detail::die_on_wrong_access("there is memory for a transfer", "curl_easy_init failed");
    transfer->self = &self_;
    transfer->download = download_;
    set_trust(*transfer);
    set_request(*transfer, stall_);
    curl_multi_add_handle(multi_.get(), transfer->easy.get());
    transfers_.emplace(last_id_, std::move(transfer));
    return last_id_;
  }

  void cancel(TransferId id) {
    const auto found = transfers_.find(id);
    if (found == transfers_.end()) return;
    curl_multi_remove_handle(multi_.get(), found->second->easy.get());
    transfers_.erase(found);
  }

  Clock::duration held_back() const { return held_back_; }

  Result<std::vector<HttpsOutcome>> wait(Deadline deadline, const AbortSignal& abort) {
    for (;;) {
      if (!hold_back(deadline, abort)) {
        if (abort.raised()) return Error{ErrorCode::kAborted, abort.reason()};
        return std::vector<HttpsOutcome>();
      }
      int running = 0;
      if (const CURLMcode code = curl_multi_perform(multi_.get(), &running); code != CURLM_OK) {
        return Error{ErrorCode::kInternal, fmt::format("libcurl: {}", curl_multi_strerror(code))};
      }
      if (abort.raised()) return Error{ErrorCode::kAborted, abort.reason()};
      std::vector<HttpsOutcome> outcomes = collect();
      if (!outcomes.empty() || deadline.expired()) return outcomes;
      curl_waitfd abort_fd{abort.fd(), CURL_WAIT_POLLIN, 0};
      const int timeout = std::min(deadline.poll_milliseconds(), next_stall().poll_milliseconds());
      curl_multi_poll(multi_.get(), &abort_fd, 1, timeout, nullptr);
    }
  }

 private:
  // While more was read than the owner allows. False when the deadline passed, or `abort` was raised.
  bool hold_back(Deadline deadline, const AbortSignal& abort) {
    if (download_ == nullptr) return true;
    const auto began = Clock::now();
    auto now = began;
    for (; !abort.raised(); now = Clock::now()) {
      const Clock::time_point when = download_->may_read_at(DownloadPace::Use::kFetch, now);
      if (when <= now || deadline.when() <= now) break;
      pollfd wake{abort.fd(), POLLIN, 0};
      (void)::poll(&wake, 1,
                   Deadline::at(std::min(when, now + kLookAtPace)).but_not_after(deadline).poll_milliseconds());
    }
    const auto held = now - began;
    held_back_ += held;
    for (const auto& [id, transfer] : transfers_) {
      transfer->last_byte += held;
      transfer->window_began += held;
    }
    return !abort.raised() && download_->may_read_at(DownloadPace::Use::kFetch, now) <= now;
  }

  Deadline next_stall() const {
    auto next = Clock::now() + std::chrono::seconds(1);
    for (const auto& [id, transfer] : transfers_) next = std::min(next, transfer->last_byte + stall_);
    return Deadline::at(next);
  }

  std::vector<HttpsOutcome> collect() {
    std::vector<HttpsOutcome> outcomes;
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      Transfer* transfer = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
      HttpsOutcome outcome{transfer->id, status_of(transfer->easy.get()), lost_part(transfer->easy.get()),
                           transfer->own_error};
      if (!outcome.error) outcome.error = error_of(*transfer, code);
      outcomes.push_back(std::move(outcome));
    }
    const auto now = Clock::now();
    for (const auto& entry : transfers_) {
      const auto id = entry.first;
      const auto& transfer = entry.second;
      const bool ended = std::ranges::any_of(outcomes, [&](const HttpsOutcome& o) { return o.id == id; });
      if (ended) continue;
      const auto give_up = [&](std::string_view why) {
        const Error error{ErrorCode::kTimeout, fmt::format("{}: {}", transfer->description(), why)};
        outcomes.push_back({id, 0, std::nullopt, error});
      };
      if (now >= transfer->last_byte + stall_) {
        give_up(fmt::format("nothing came for {} ms", stall_.count()));
      } else if (now >= transfer->window_began + kPace.window) {
        if (transfer->moved() - transfer->at_window < kPace.least_bytes) give_up("it comes byte by byte");
        transfer->window_began = now;
        transfer->at_window = transfer->moved();
      }
    }
    for (const HttpsOutcome& outcome : outcomes) cancel(outcome.id);
    return outcomes;
  }

  const Identity& self_;
  const std::chrono::milliseconds stall_;
  DownloadPace* const download_;
  Clock::duration held_back_{};  // in all
  std::unique_ptr<CURLM, CurlMultiDeleter> multi_;
  std::map<TransferId, std::unique_ptr<Transfer>> transfers_;
  TransferId last_id_ = 0;
};

Result<HttpsFetcher> HttpsFetcher::create(const Identity& self, std::chrono::milliseconds stall,
                                          DownloadPace* download) {
  CURLM* multi = curl_multi_init();
  if (multi == nullptr) return Error{ErrorCode::kInternal, "libcurl does not start: out of memory"};
  return HttpsFetcher(std::make_unique<Impl>(self, stall, download, multi));
}

HttpsFetcher::HttpsFetcher(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpsFetcher::HttpsFetcher(HttpsFetcher&&) noexcept = default;
HttpsFetcher& HttpsFetcher::operator=(HttpsFetcher&&) noexcept = default;
HttpsFetcher::~HttpsFetcher() = default;

TransferId HttpsFetcher::start(HttpsRequest request) { return impl_->start(std::move(request)); }
void HttpsFetcher::cancel(TransferId id) { impl_->cancel(id); }
Result<std::vector<HttpsOutcome>> HttpsFetcher::wait(Deadline deadline, const AbortSignal& abort) {
  return impl_->wait(deadline, abort);
}

Result<std::vector<HttpsOutcome>> HttpsFetcher::wait_for_peer(Clock::duration patience, const AbortSignal& abort) {
  const auto begun = Clock::now();
  const Clock::duration held_before = impl_->held_back();
  for (;;) {
    const Deadline end = Deadline::at(begun + patience + (impl_->held_back() - held_before));
    auto outcomes = impl_->wait(end, abort);
    const bool held = end.when() < begun + patience + (impl_->held_back() - held_before);
    if (!outcomes.ok() || !outcomes->empty() || !held) return outcomes;
  }
}

}  // namespace atl
