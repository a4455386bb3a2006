#include "net/data/mirror_origin.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "net/data/run_dataset.h"
#include "net/https/http_status.h"
#include "net/store/store_client.h"

namespace atl {
namespace {

constexpr long kMaxRedirects = 5;

struct CurlDeleter {
  void operator()(CURL* easy) const noexcept { curl_easy_cleanup(easy); }
};

struct Transfer {
  CURL* easy;
  const AbortSignal& abort;
  DownloadPace* download;
  std::uint64_t offset, bytes;
  Bytes body = {};
  std::string too_much = {};
};

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  long status = 0;
  curl_easy_getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &status);
  const std::size_t bytes = size * count;
  if (status != kStatusOk && status != kStatusPartialContent) return bytes;  // what it says of a failure
  if (status == kStatusOk && transfer.offset > 0) transfer.too_much = "it gives whole files alone, not parts (Range)";
  if (transfer.body.size() + bytes > transfer.bytes) transfer.too_much = "it gives more than was asked for";
  if (!transfer.too_much.empty()) return CURL_WRITEFUNC_ERROR;
  const auto* first = reinterpret_cast<const std::byte*>(data);
  transfer.body.insert(transfer.body.end(), first, first + bytes);
  if (transfer.download != nullptr) {  // the thread waits for this alone
    transfer.download->has_read(DownloadPace::Use::kFetch, bytes, Clock::now());
    (void)transfer.download->wait(DownloadPace::Use::kFetch, transfer.abort);
  }
  return bytes;
}

int on_progress(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Transfer*>(context)->abort.raised() ? 1 : 0;
}

class WebOrigin final : public DataOrigin {
 public:
  WebOrigin(std::string url, std::string authorities, const MirrorOptions& options, CURL* easy)
      : url_(std::move(url)), authorities_(std::move(authorities)), options_(options), easy_(easy) {}
  std::string name() const override { return url_; }

  Result<Bytes> read(const std::string& file, std::uint64_t offset, std::uint64_t bytes,
                     const AbortSignal& abort) override {
    CURL* easy = easy_.get();
    Transfer transfer{easy, abort, options_.download, offset, bytes};
    std::array<char, CURL_ERROR_SIZE> message{};
    curl_easy_reset(easy);
    curl_easy_setopt(easy, CURLOPT_URL, fmt::format("{}{}{}", url_, url_.ends_with('/') ? "" : "/", file).c_str());
    curl_easy_setopt(easy, CURLOPT_RANGE, fmt::format("{}-{}", offset, offset + bytes - 1).c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, options_.policy >= MirrorPolicy::kWeb ? "https,http" : "https");
    curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(easy, CURLOPT_MAXREDIRS, kMaxRedirects);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, static_cast<long>(options_.connect.count()));
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, static_cast<long>(options_.stall.count()));
    // Where the owner's limit is shared by several, it may be what is slow.
    const bool limited = options_.download != nullptr && options_.download->allowed();
    const std::uint64_t least = limited ? std::min(kLeastStoreRate, options_.least_rate) : options_.least_rate;
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(least));
    if (options_.policy < MirrorPolicy::kWeb) options_.filter.apply_to(easy);
    if (!authorities_.empty()) {
      curl_easy_setopt(easy, CURLOPT_CAINFO, authorities_.c_str());
      curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
    }
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, message.data());
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, &transfer);
    const CURLcode code = curl_easy_perform(easy);
    if (abort.raised()) return Error{ErrorCode::kAborted, abort.reason()};
    if (!transfer.too_much.empty()) return Error{ErrorCode::kProtocol, transfer.too_much};
    if (code != CURLE_OK) {
      const bool may_be_refused = code == CURLE_COULDNT_CONNECT && options_.policy < MirrorPolicy::kWeb;
      return Error{ErrorCode::kUnreachable,
                   fmt::format("{}{}", message[0] != '\0' ? message.data() : curl_easy_strerror(code),
                               may_be_refused ? " (addresses of private networks are asked with island.data_mirrors = "
                                                "web alone)"
                                              : "")};
    }
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (status == kStatusPartialContent || status == kStatusOk) return std::move(transfer.body);
    return Error{status == kStatusNotFound ? ErrorCode::kNotFound : ErrorCode::kProtocol,
                 fmt::format("it has no {} (HTTP status {})", file, status)};
  }

 private:
  const std::string url_, authorities_;
  const MirrorOptions options_;
  const std::unique_ptr<CURL, CurlDeleter> easy_;
};

class StoreOrigin final : public DataOrigin {
 public:
  StoreOrigin(StoreUrl url, StoreClient client) : url_(std::move(url)), client_(std::move(client)) {}
  std::string name() const override { return to_string(url_); }

  Result<Bytes> read(const std::string& file, std::uint64_t offset, std::uint64_t bytes,
                     const AbortSignal& abort) override {
    StoreRequest request;
    request.key = url_.key(file);
    request.range = ByteSpan{offset, bytes};
    request.max_bytes = bytes;
    ATOLL_ASSIGN_OR_RETURN(StoreAnswer answer, client_.call(request, abort));
    return std::move(answer.body);
  }

 private:
  const StoreUrl url_;
  StoreClient client_;
};

class RefusedOrigin final : public DataOrigin {
 public:
  RefusedOrigin(std::string name, Error why) : name_(std::move(name)), why_(std::move(why)) {}
  std::string name() const override { return name_; }
  Result<Bytes> read(const std::string&, std::uint64_t, std::uint64_t, const AbortSignal&) override { return why_; }

 private:
  const std::string name_;
  const Error why_;
};

}  // namespace

std::unique_ptr<DataOrigin> refused_origin(std::string name, Error why) {
  return std::make_unique<RefusedOrigin>(std::move(name), std::move(why));
}

Result<std::unique_ptr<DataOrigin>> mirror_origin(const std::string& mirror, const StoreSettings& settings,
                                                  const MirrorOptions& options) {
  ATOLL_RETURN_IF_ERROR(check_mirror(mirror));
  ATOLL_RETURN_IF_ERROR(check_allowed(options.policy, mirror));
  if (mirror.starts_with("/")) return directory_origin(mirror);
  if (mirror.starts_with("s3://")) {
    ATOLL_ASSIGN_OR_RETURN(StoreUrl url, parse_store_url(mirror));
    ATOLL_ASSIGN_OR_RETURN(StoreAccess access, access_to_read(settings, url));
    // One try: who asks tries again, or asks another.
    StoreClientOptions client_options{.connect = options.connect, .stall = options.stall, .tries = 1};
    client_options.download = options.download;
    const bool is_owners = !access.credentials.anonymous();
    if (options.policy < MirrorPolicy::kWeb && !is_owners) client_options.filter = options.filter;
    ATOLL_ASSIGN_OR_RETURN(StoreClient client, StoreClient::create(std::move(access), std::move(client_options)));
    return std::unique_ptr<DataOrigin>(std::make_unique<StoreOrigin>(std::move(url), std::move(client)));
  }
  CURL* easy = curl_easy_init();
  if (easy == nullptr) return Error{ErrorCode::kInternal, "libcurl gives no handle"};
  return std::unique_ptr<DataOrigin>(
      std::make_unique<WebOrigin>(mirror, settings.authorities_file.string(), options, easy));
}

}  // namespace atl
