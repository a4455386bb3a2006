#include "net/store/store_settings.h"

#include <fmt/format.h>

namespace atl {
namespace {

constexpr const char* kUsualRegion = "us-east-1";

std::string endpoint_of(const StoreSettings& settings, const std::string& region) {
  return settings.endpoint.empty() ? fmt::format("https://s3.{}.amazonaws.com", region) : settings.endpoint;
}

// Where it is; the owner's word counts before the address's, but for another endpoint than the owner's.
Result<StoreAccess> place_of(const StoreSettings& settings, const StoreUrl& url) {
  StoreAccess access;
  access.bucket = url.bucket;
  access.authorities_file = settings.authorities_file;
  access.region = !settings.region.empty() ? settings.region : !url.region.empty() ? url.region : kUsualRegion;
  ATOLL_ASSIGN_OR_RETURN(access.endpoint, normalise_store_endpoint(endpoint_of(settings, access.region)));
  if (url.endpoint.empty() || url.endpoint == access.endpoint) return access;
  access.endpoint = url.endpoint;
  if (!url.region.empty()) access.region = url.region;
  return access;
}

Result<bool> is_owners_endpoint(const StoreSettings& settings, const StoreAccess& access) {
  ATOLL_ASSIGN_OR_RETURN(const std::string own, normalise_store_endpoint(endpoint_of(settings, access.region)));
  return own == access.endpoint;
}

// Whoever is on the way could read and change what goes over http; only the owner can want that.
Status check_scheme(const StoreAccess& access, bool owners_endpoint) {
  if (owners_endpoint || access.endpoint.starts_with("https://")) return ok_status();
  return Error{ErrorCode::kPermissionDenied,
               fmt::format("the store at {} is asked over http, which anybody on the way can read and change; set "
                           "store.endpoint to it if that is meant",
                           access.endpoint)};
}

}  // namespace

bool is_owners_place(const StoreSettings& settings, const StoreUrl& url) {
  const std::string& said = settings.bucket;
  const std::size_t slash = said.find('/');
  if (said.empty() || said.substr(0, slash) != url.bucket) return false;
  std::string prefix = slash == std::string::npos ? std::string() : said.substr(slash + 1);
  while (prefix.ends_with('/')) prefix.pop_back();
  return prefix.empty() || url.prefix == prefix || url.prefix.starts_with(prefix + "/");
}

bool may_use_bucket(const StoreSettings& settings) {
  if (settings.bucket.empty()) return false;
  const auto credentials = load_store_credentials(settings.credentials_file);
  return credentials.ok() && !credentials->anonymous();
}

Result<StoreAccess> access_to_write(const StoreSettings& settings, const StoreUrl& url) {
  ATOLL_ASSIGN_OR_RETURN(StoreAccess access, place_of(settings, url));
  ATOLL_ASSIGN_OR_RETURN(const bool owners, is_owners_endpoint(settings, access));
  if (!owners || !is_owners_place(settings, url)) {
    const std::string place = url.prefix.empty() ? url.bucket : fmt::format("{}/{}", url.bucket, url.prefix);
    return Error{ErrorCode::kPermissionDenied,
                 fmt::format("this machine's owner did not say that it may write to {} at {}; set store.bucket to {} "
                             "(and store.endpoint) if it may",
                             place, access.endpoint, place)};
  }
  ATOLL_ASSIGN_OR_RETURN(access.credentials, load_store_credentials(settings.credentials_file));
  return access;
}

Result<StoreAccess> access_to_read(const StoreSettings& settings, const StoreUrl& url) {
  ATOLL_ASSIGN_OR_RETURN(StoreAccess access, place_of(settings, url));
  ATOLL_ASSIGN_OR_RETURN(const bool owners, is_owners_endpoint(settings, access));
  ATOLL_RETURN_IF_ERROR(check_scheme(access, owners));
  if (!owners || !is_owners_place(settings, url)) return access;
  ATOLL_ASSIGN_OR_RETURN(access.credentials, load_store_credentials(settings.credentials_file));
  return access;
}

Result<StoreAccess> access_as_told(const StoreSettings& settings, const StoreUrl& url) {
  ATOLL_ASSIGN_OR_RETURN(StoreAccess access, place_of(settings, url));
  ATOLL_ASSIGN_OR_RETURN(access.credentials, load_store_credentials(settings.credentials_file));
  return access;
}

StoreUrl with_place(StoreUrl url, const StoreSettings& settings) {
  if (url.endpoint.empty()) url.endpoint = settings.endpoint;
  if (url.region.empty()) url.region = settings.region;
  return url;
}

}  // namespace atl
