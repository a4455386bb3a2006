#include "net/store/store_error.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdlib>

#include <curl/curl.h>

#include "net/base/printable.h"
#include "net/store/s3_xml.h"

namespace atl {
namespace {

constexpr std::size_t kShown = 200;  // of a store's own words
constexpr std::size_t kShownCode = 64;
constexpr std::size_t kMaxBody = 8192;  // of a refusal that is read

struct Refused {
  long status;
  std::string code, message, action;
  const StoreAnswer& answer;
  const StoreAccess& access;

  bool is(std::string_view other) const { return code == other; }
  std::string words() const {
    return fmt::format("HTTP {} {}{}{}", status, code, message.empty() ? "" : ": ", message);
  }
  Error error(ErrorCode kind, std::string_view what_to_do) const {
    const std::string text =
        fmt::format("{} in bucket {} at {}: {}. {}", action, access.bucket, access.endpoint, words(), what_to_do);
    return Error{kind, without_secrets(text, access.credentials)};
  }
};

std::string clock_advice(const StoreAnswer& answer) {
  const std::time_t theirs = curl_getdate(answer.header("date").c_str(), nullptr);
  const std::time_t ours = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  if (theirs < 0) return "This machine's clock is wrong; set it (timedatectl set-ntp true)";
  return fmt::format("This machine's clock is {} s {} the store's; set it (timedatectl set-ntp true)",
                     std::llabs(static_cast<long long>(ours - theirs)), ours > theirs ? "ahead of" : "behind");
}

std::string where_from(const StoreAccess& access) {
  return access.credentials.anonymous() ? "no credentials were given (store.credentials_file, store.bucket)"
                                        : fmt::format("the credentials come from {}", access.credentials.origin);
}

Error permission_error(const Refused& refused) {
  const auto denied = [&](const std::string& advice) { return refused.error(ErrorCode::kPermissionDenied, advice); };
  const std::string from = where_from(refused.access);
  if (refused.is("RequestTimeTooSkewed")) return denied(clock_advice(refused.answer));
  if (refused.is("SignatureDoesNotMatch")) {
    return denied(fmt::format("The secret is not that of the access key; write the right one ({})", from));
  }
  if (refused.is("InvalidAccessKeyId")) {
    return denied(
        fmt::format("The store does not know the access key; give another, or another store.endpoint ({})", from));
  }
  if (refused.is("ExpiredToken") || refused.is("InvalidToken") || refused.is("TokenRefreshRequired")) {
    return denied(fmt::format("The session's token is not good any more; get another ({})", from));
  }
  return denied(fmt::format(
      "It is not allowed; the access key needs the rights to get, put and delete objects, and to list the bucket and "
      "its uploads ({})",
      from));
}

bool is_full(const Refused& refused) {
  constexpr std::array<std::string_view, 6> kCodes = {
      "QuotaExceeded",        "XMinioStorageFull",   "XMinioAdminBucketQuotaExceeded",
      "InsufficientCapacity", "InsufficientStorage", "StorageFull"};
  return refused.status == 507 || std::find(kCodes.begin(), kCodes.end(), refused.code) != kCodes.end();
}

bool is_of_another_region(const Refused& refused) {
  return refused.status == 301 || refused.status == 307 || refused.is("AuthorizationHeaderMalformed") ||
         refused.is("PermanentRedirect") || refused.is("IllegalLocationConstraintException");
}

Error region_error(const Refused& refused) {
  std::string region = refused.answer.header("x-amz-bucket-region");
  if (region.empty()) region = xml_text(to_string(refused.answer.body), "Region");
  return refused.error(ErrorCode::kInvalidArgument,
                       region.empty()
                           ? "The bucket is in another region or at another endpoint; set store.region and "
                             "store.endpoint"
                           : fmt::format("The bucket is in region {}; set store.region", printable(region, 64)));
}

Error not_found_error(const Refused& refused) {
  if (refused.is("NoSuchBucket")) {
    return refused.error(ErrorCode::kNotFound,
                         "There is no such bucket; make it, or look at store.endpoint and store.region");
  }
  return refused.error(ErrorCode::kNotFound, "It is not there");
}

}  // namespace

bool is_refusal_in_body(const StoreAnswer& answer) {
  const std::string_view text(reinterpret_cast<const char*>(answer.body.data()),
                              std::min(answer.body.size(), kMaxBody));
  return text.find("<Error>") != std::string_view::npos && !xml_text(text, "Code").empty();
}

StoreRefusal refusal_of(const StoreAnswer& answer, const std::string& action, const StoreAccess& access) {
  const std::string body = to_string(ByteView(answer.body).first(std::min(answer.body.size(), kMaxBody)));
  const Refused refused{answer.status,
                        printable(xml_text(body, "Code"), kShownCode),
                        printable(xml_text(body, "Message"), kShown),
                        action,
                        answer,
                        access};
  if (is_full(refused)) {
    return {refused.error(ErrorCode::kDiskFull,
                          "The bucket is full; delete old states (outer-STEP) from it, or have its quota raised")};
  }
  if (is_of_another_region(refused)) return {region_error(refused)};
  if (answer.status == 404) return {not_found_error(refused)};
  if (answer.status == 401 || answer.status == 403 || refused.is("InvalidToken") || refused.is("ExpiredToken")) {
    return {permission_error(refused)};
  }
  const bool slow = refused.is("RequestTimeout") || refused.is("InternalError") || refused.is("SlowDown");
  // What was sent arrived as something else.
  const bool damaged = refused.is("BadDigest") || refused.is("XAmzContentSHA256Mismatch");
  if (answer.status >= 500 || answer.status == 429 || answer.status == 408 || slow || damaged) {
    return {refused.error(ErrorCode::kUnreachable, "The store fails or is busy; it is tried again later"), true};
  }
  return {refused.error(ErrorCode::kProtocol,
                        "The store does not take the request; is there an S3 store at that "
                        "endpoint (store.endpoint)?")};
}

}  // namespace atl
