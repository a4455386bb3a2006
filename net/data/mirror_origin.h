// A mirror of a source's files, which whoever made the run named: a directory on the web, beneath a prefix of an object
// store, or of this machine, as far as the island's owner allows. All bytes are verified by who asks, so http will do
// where that is allowed. Redirects are followed, to https and to addresses that are allowed. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "net/base/download_pace.h"
#include "net/data/data_origin.h"
#include "net/data/mirror_policy.h"
#include "net/store/address_filter.h"
#include "net/store/store_settings.h"

namespace atl {

struct MirrorOptions {
  MirrorPolicy policy = MirrorPolicy::kHttps;
  std::chrono::seconds connect{15};
  std::chrono::seconds stall{20};                            // in which less than least_rate comes: it is given up
  std::uint64_t least_rate = 16 * 1024;                      // bytes/s
  AddressFilter filter = AddressFilter::public_addresses();  // below MirrorPolicy::kWeb
  DownloadPace* download = nullptr;  // what the owner lets the island receive; null: no limit. Outlives the origin
};

// kInvalidArgument when it is none (check_mirror, net/data/run_dataset.h), kPermissionDenied as check_allowed and
// access_to_read say: with the owner's credentials only where the owner named the bucket.
Result<std::unique_ptr<DataOrigin>> mirror_origin(const std::string& mirror, const StoreSettings& settings,
                                                  const MirrorOptions& options);

// One that is not asked, and says why.
std::unique_ptr<DataOrigin> refused_origin(std::string name, Error why);

}  // namespace atl
