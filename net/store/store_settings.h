// What a machine's owner says of object stores, and what that allows. A run's configuration names stores, too, and who
// made the run is a stranger: the owner's credentials are used only for the bucket that the owner named, beneath the
// prefix that the owner named, at the endpoint that the owner named; whatever else a run names is read as anybody reads
// it, over TLS. Any thread; reads a file.
#pragma once

#include <filesystem>
#include <string>

#include "net/base/result.h"
#include "net/store/store_client.h"
#include "net/store/store_url.h"

namespace atl {

struct StoreSettings {
  std::string endpoint;  // https://HOST[:PORT], http:// for tests; empty: Amazon's, of the region
  std::string region;    // empty: us-east-1
  // "BUCKET", or "BUCKET/PREFIX" for what lies beneath that alone: to which this machine may write, and which it reads
  // with its credentials; empty: none.
  std::string bucket;
  std::filesystem::path credentials_file;       // empty: load_store_credentials() says from where else
  std::filesystem::path authorities_file = {};  // PEM, in place of the system's, also of data mirrors; empty: those
};

// What the owner said covers this bucket and prefix.
bool is_owners_place(const StoreSettings& settings, const StoreUrl& url);
// There are credentials for the owner's bucket.
bool may_use_bucket(const StoreSettings& settings);

// To write there: kPermissionDenied when it is not the owner's bucket, or at another endpoint than the owner's.
Result<StoreAccess> access_to_write(const StoreSettings& settings, const StoreUrl& url);
// To read: with credentials where access_to_write() would have them.
Result<StoreAccess> access_to_read(const StoreSettings& settings, const StoreUrl& url);
// On the owner's own word, typed here and now: whatever bucket it is, with the owner's credentials where there are
// some.
Result<StoreAccess> access_as_told(const StoreSettings& settings, const StoreUrl& url);

// The same place for those who do not have these settings.
StoreUrl with_place(StoreUrl url, const StoreSettings& settings);

}  // namespace atl
