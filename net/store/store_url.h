// Where outer states are published: a bucket of an object store that speaks S3, and what the names of its objects begin
// with. Written "s3://BUCKET/PREFIX", or with where the store is, for those whose owner did not say so:
// "s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=REGION". Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "net/base/result.h"

namespace atl {

struct StoreUrl {
  std::string bucket;
  std::string prefix;    // without a slash at its ends; may be empty
  std::string endpoint;  // "https://HOST[:PORT]"; empty: not said
  std::string region;    // empty: not said
  bool operator==(const StoreUrl&) const = default;

  // The key of an object beneath it.
  std::string key(std::string_view name) const;
  StoreUrl beneath(std::string_view name) const;
};

// kInvalidArgument says what is allowed. A prefix has letters, digits and - _ ., with slashes between.
Result<StoreUrl> parse_store_url(std::string_view text);
std::string to_string(const StoreUrl& url);

// "https://HOST[:PORT]" or "http://HOST[:PORT]", as it is compared: in small letters, without a slash at its end.
Result<std::string> normalise_store_endpoint(std::string_view text);
Status validate_bucket_name(std::string_view name);
Status validate_store_region(std::string_view name);

}  // namespace atl
