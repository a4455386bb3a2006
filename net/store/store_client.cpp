#include "net/store/store_client.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <thread>

#include "net/base/backoff.h"
#include "net/base/encoding.h"
#include "net/store/store_error.h"

namespace atl {
namespace {

constexpr std::size_t kMaxHeaders = 64;
constexpr std::size_t kMaxHeaderBytes = 4096;
constexpr std::uint64_t kMaxRefusalBytes = 64 * 1024;
constexpr long kPermissionMilliseconds = 300;
constexpr long kBufferBytes = 256 * 1024;
// Unsent bytes that the kernel keeps: what it took counts as moved, and on a slow link it would else take megabytes and
// then be silent for longer than a stall lasts.
constexpr int kUnsentBytes = 128 * 1024;
constexpr std::chrono::milliseconds kPaceTurn{100};
constexpr std::size_t kLeastPiece = 256;  // of a body that is sent slowly

struct CurlDeleter {
  void operator()(CURL* easy) const noexcept { curl_easy_cleanup(easy); }
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl_slist, CurlDeleter>;

const char* name_of(StoreMethod method) {
  switch (method) {
    case StoreMethod::kGet: return "GET";
    case StoreMethod::kHead: return "HEAD";
    case StoreMethod::kPut: return "PUT";
    case StoreMethod::kPost: return "POST";
    case StoreMethod::kDelete: return "DELETE";
  }
  return "GET";
}

// As Signature Version 4 wants it in path and query; libcurl signs what stands in the URL.
std::string percent_encoded(std::string_view text, bool slashes_stay) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || c == '.' || c == '~' || (slashes_stay && c == '/');
    encoded += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

// Names in their order, and with an "=" where there is no value: libcurl 7.88 signs the query as it stands.
std::string query_of(const StoreRequest& request) {
  std::string query;
  for (const auto& [name, value] : request.query) {
    query +=
        fmt::format("{}{}={}", query.empty() ? '?' : '&', percent_encoded(name, false), percent_encoded(value, false));
  }
  return query;
}

// One try of a request.
struct Exchange {
  const StoreRequest& request;
  const StoreClientOptions& options;
  const AbortSignal& abort;
  StoreAnswer answer = {};
  std::size_t sent = 0;  // of the body, given to libcurl
  Clock::time_point send_next{};
  Clock::time_point window_began = Clock::now();
  std::uint64_t at_window = 0;
  std::optional<Error> own_error = {};  // of this end: why it ended the exchange
  std::array<char, CURL_ERROR_SIZE> message = {};
};

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* context) {
  auto& exchange = *static_cast<Exchange*>(context);
  Bytes& body = exchange.answer.body;
  const ByteView bytes{reinterpret_cast<const std::byte*>(data), size * count};
  const bool good = exchange.answer.status / 100 == 2;
  if (body.size() + bytes.size() > (good ? exchange.request.max_bytes : kMaxRefusalBytes)) {
    exchange.own_error = Error{ErrorCode::kProtocol, "the store sends more than was asked for"};
    return bytes.empty() ? 1 : 0;
  }
  body.insert(body.end(), bytes.begin(), bytes.end());
  if (DownloadPace* const pace = exchange.options.download) {  // the thread is the exchange's own, so it may wait
    pace->has_read(DownloadPace::Use::kFetch, bytes.size(), Clock::now());
    exchange.window_began += pace->wait(DownloadPace::Use::kFetch, exchange.abort);
  }
  return bytes.size();
}

// A status line begins the headers anew: those of a "100 Continue" are not the answer's.
std::size_t on_header(char* data, std::size_t size, std::size_t count, void* context) {
  auto& answer = static_cast<Exchange*>(context)->answer;
  std::string_view line(data, size * count);
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {
    answer.headers.clear();
    const auto space = line.find(' ');
    answer.status =
        space == std::string_view::npos ? 0 : std::strtol(std::string(line.substr(space)).c_str(), nullptr, 10);
  }
  const auto colon = line.find(':');
  if (colon == std::string_view::npos || line.size() > kMaxHeaderBytes || answer.headers.size() >= kMaxHeaders) {
    return size * count;
  }
  std::string name(line.substr(0, colon));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view value = line.substr(colon + 1);
  while (value.starts_with(' ')) value.remove_prefix(1);
  answer.headers[std::move(name)] = value;
  return size * count;
}

// The body, in pieces that keep to the rate of the moment: the thread is the exchange's own, so it may sleep.
std::size_t on_read(char* data, std::size_t size, std::size_t count, void* context) {
  auto& exchange = *static_cast<Exchange*>(context);
  std::size_t bytes = std::min(size * count, exchange.request.body.size() - exchange.sent);
  const std::optional<double> rate = exchange.request.rate ? exchange.request.rate() : std::nullopt;
  if (rate && *rate > 0) {
    const double turn = std::chrono::duration<double>(kPaceTurn).count();
    bytes = std::min(bytes, std::max(kLeastPiece, static_cast<std::size_t>(*rate * turn)));
    while (Clock::now() < exchange.send_next && !exchange.abort.raised()) {
      std::this_thread::sleep_for(std::min<Clock::duration>(kPaceTurn, exchange.send_next - Clock::now()));
    }
    const auto takes = std::chrono::duration_cast<Clock::duration>(Seconds(static_cast<double>(bytes) / *rate));
    exchange.send_next = std::max(exchange.send_next, Clock::now()) + takes;
    exchange.window_began = Clock::now();  // slow because it was told so is no stall
  }
  if (exchange.abort.raised()) return CURL_READFUNC_ABORT;
  std::ranges::copy(exchange.request.body.subspan(exchange.sent, bytes), reinterpret_cast<std::byte*>(data));
  exchange.sent += bytes;
  return bytes;
}

int on_seek(void* context, curl_off_t offset, int origin) {
  auto& exchange = *static_cast<Exchange*>(context);
  if (origin != SEEK_SET || offset < 0 || static_cast<std::uint64_t>(offset) > exchange.request.body.size()) {
    return CURL_SEEKFUNC_FAIL;
  }
  exchange.sent = static_cast<std::size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

// Called by libcurl at least once a second.
int on_progress(void* context, curl_off_t, curl_off_t received, curl_off_t, curl_off_t sent) {
  auto& exchange = *static_cast<Exchange*>(context);
  if (exchange.abort.raised()) return 1;
  const auto now = Clock::now();
  const auto moved = static_cast<std::uint64_t>(received + sent);
  const auto stall = std::chrono::duration_cast<std::chrono::milliseconds>(exchange.options.stall);
  const auto least = kLeastStoreRate * static_cast<std::uint64_t>(stall.count()) / 1000;
  if (moved >= exchange.at_window + least) {
    exchange.window_began = now;
    exchange.at_window = moved;
  }
  if (now < exchange.window_began + stall) return 0;
  exchange.own_error =
      Error{ErrorCode::kTimeout,
            fmt::format("nothing moved for {} s, or less than {} bytes a second",
                        std::chrono::duration_cast<std::chrono::seconds>(stall).count(), kLeastStoreRate)};
  return 1;
}

int on_socket(void*, curl_socket_t socket, curlsocktype) {
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes, sizeof kUnsentBytes);
  return CURL_SOCKOPT_OK;
}

ErrorCode code_of(CURLcode code) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_INVALIDCERTSTATUS: return ErrorCode::kCertificate;
    case CURLE_OPERATION_TIMEDOUT: return ErrorCode::kTimeout;
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR: return ErrorCode::kPeerLost;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL: return ErrorCode::kInvalidArgument;
    default: return ErrorCode::kUnreachable;
  }
}

bool may_pass(const Error& error) {
  return error.code == ErrorCode::kTimeout || error.code == ErrorCode::kPeerLost ||
         error.code == ErrorCode::kUnreachable;
}

// Until the pause is over; at once when `abort` is raised.
void pause(std::chrono::milliseconds length, const AbortSignal& abort) {
  pollfd wake{abort.fd(), POLLIN, 0};
  const Deadline end = Deadline::after(length);
  while (!end.expired() && !abort.raised()) (void)::poll(&wake, 1, end.poll_milliseconds());
}

}  // namespace

std::string StoreAnswer::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

class StoreClient::Impl {
 public:
  Impl(StoreAccess access, StoreClientOptions options, CURL* easy)
      : access_(std::move(access)), options_(options), easy_(easy) {}

  Result<StoreAnswer> call(const StoreRequest& request, const AbortSignal& abort) {
    const std::string action =
        fmt::format("{} {}", name_of(request.method), request.key.empty() ? "the bucket" : request.key);
    Backoff backoff(options_.first_pause, options_.longest_pause);
    for (int attempt = 1;; ++attempt) {
      Result<StoreAnswer> answer = exchange(request, action, abort);
      if (abort.raised()) return Error{ErrorCode::kAborted, abort.reason()};
      StoreRefusal refusal;
      if (!answer.ok()) {
        refusal = {answer.error(), may_pass(answer.error())};
      } else if (answer->status / 100 != 2 || (request.method != StoreMethod::kGet && is_refusal_in_body(*answer))) {
        refusal = refusal_of(*answer, action, access_);
      } else {
        return answer;
      }
      if (!refusal.may_pass) return refusal.error;
      if (attempt >= options_.tries) {
        return Error{refusal.error.code, fmt::format("{} ({} times)", refusal.error.message, attempt)};
      }
      pause(backoff.next(), abort);
    }
  }

 private:
  // Whatever the status says. libcurl's connection stays open for the next one.
  Result<StoreAnswer> exchange(const StoreRequest& request, const std::string& action, const AbortSignal& abort) {
    Exchange exchange{request, options_, abort};
    curl_easy_reset(easy_.get());
    const HeaderList headers = headers_of(request);
    set_request(request, exchange, headers.get());
    const CURLcode code = curl_easy_perform(easy_.get());
    if (abort.raised()) return Error{ErrorCode::kAborted, abort.reason()};
    const auto failed = [&](ErrorCode kind, std::string_view why) {
      return Error{
          kind, without_secrets(fmt::format("{} in bucket {} at {}: {}", action, access_.bucket, access_.endpoint, why),
                                access_.credentials)};
    };
    if (exchange.own_error) return failed(exchange.own_error->code, exchange.own_error->message);
    // A store that refuses an upload may close before it has read all of it: then its answer counts.
    const bool refused_early = code == CURLE_SEND_ERROR && exchange.answer.status >= 400;
    if (code == CURLE_OK || refused_early) return std::move(exchange.answer);
    return failed(code_of(code), exchange.message[0] != '\0' ? exchange.message.data() : curl_easy_strerror(code));
  }

  HeaderList headers_of(const StoreRequest& request) const {
    HeaderList list;
    const auto add = [&](const std::string& line) {
      curl_slist* longer = curl_slist_append(list.get(), line.c_str());
      if (longer == nullptr) detail::die_on_wrong_access("there is memory for a header", "curl_slist_append failed");
      (void)list.release();
      list.reset(longer);
    };
    const bool sends = request.method == StoreMethod::kPut || request.method == StoreMethod::kPost;
    if (sends && !request.headers.contains("Content-Type")) add("Content-Type: application/octet-stream");
    for (const auto& [name, value] : request.headers) add(fmt::format("{}: {}", name, value));
    if (access_.credentials.anonymous()) return list;
    // Without it libcurl 7.88 would sign an upload as of an unknown payload, and the store would take other bytes, too.
    const Digest digest = request.body_sha256 ? *request.body_sha256 : sha256(request.body);
    add(fmt::format("x-amz-content-sha256: {}", to_hex(digest)));
    if (!access_.credentials.session_token.empty()) {
      add(fmt::format("x-amz-security-token: {}", access_.credentials.session_token));
    }
    return list;
  }

  void set_request(const StoreRequest& request, Exchange& exchange, curl_slist* headers) {
    CURL* easy = easy_.get();
    const std::string url = fmt::format("{}/{}{}{}{}", access_.endpoint, access_.bucket, request.key.empty() ? "" : "/",
                                        percent_encoded(request.key, true), query_of(request));
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https,http");  // http only where the endpoint says so
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.connect.count()));
    // "Expect:" among the headers would keep libcurl from asking before a large body, but 7.88 signs it, and does not
    // send it. A store that refuses says so before the body has gone out.
    curl_easy_setopt(easy, CURLOPT_EXPECT_100_TIMEOUT_MS, kPermissionMilliseconds);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, kBufferBytes);
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, kBufferBytes);
    curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
    if (!access_.authorities_file.empty()) {
      curl_easy_setopt(easy, CURLOPT_CAINFO, access_.authorities_file.c_str());
      curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
    }
    options_.filter.apply_to(easy);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange.message.data());
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &exchange);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &exchange);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, &exchange);
    set_method(request, exchange);
    if (!access_.credentials.anonymous()) {
      curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, fmt::format("aws:amz:{}:s3", access_.region).c_str());
      curl_easy_setopt(easy, CURLOPT_USERNAME, access_.credentials.key_id.c_str());
      curl_easy_setopt(easy, CURLOPT_PASSWORD, access_.credentials.secret.c_str());
    }
  }

  void set_method(const StoreRequest& request, Exchange& exchange) {
    CURL* easy = easy_.get();
    switch (request.method) {
      case StoreMethod::kGet:
        if (request.range) {
          const auto last = request.range->offset + request.range->bytes - 1;
          curl_easy_setopt(easy, CURLOPT_RANGE, fmt::format("{}-{}", request.range->offset, last).c_str());
        }
        break;
      case StoreMethod::kHead: curl_easy_setopt(easy, CURLOPT_NOBODY, 1L); break;
      case StoreMethod::kPut:
        curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
        curl_easy_setopt(easy, CURLOPT_READDATA, &exchange);
        curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
        curl_easy_setopt(easy, CURLOPT_SEEKDATA, &exchange);
        break;
      case StoreMethod::kPost:
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS,
                         request.body.empty() ? "" : reinterpret_cast<const char*>(request.body.data()));
        break;
      case StoreMethod::kDelete: curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "DELETE"); break;
    }
  }

  const StoreAccess access_;
  const StoreClientOptions options_;
  std::unique_ptr<CURL, CurlDeleter> easy_;
};

Result<StoreClient> StoreClient::create(StoreAccess access, StoreClientOptions options) {
  ATOLL_RETURN_IF_ERROR(validate_bucket_name(access.bucket));
  ATOLL_RETURN_IF_ERROR(validate_store_region(access.region));
  ATOLL_ASSIGN_OR_RETURN(access.endpoint, normalise_store_endpoint(access.endpoint));
  CURL* easy = curl_easy_init();
  if (easy == nullptr) return Error{ErrorCode::kInternal, "libcurl does not start: out of memory"};
  return StoreClient(std::make_unique<Impl>(std::move(access), options, easy));
}

StoreClient::StoreClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StoreClient::StoreClient(StoreClient&&) noexcept = default;
StoreClient& StoreClient::operator=(StoreClient&&) noexcept = default;
StoreClient::~StoreClient() = default;

Result<StoreAnswer> StoreClient::call(const StoreRequest& request, const AbortSignal& abort) {
  return impl_->call(request, abort);
}

}  // namespace atl
