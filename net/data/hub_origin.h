// The dataset as the run's hub serves it (GET /data/SOURCE/FILE, with Range) over HTTPS within the run. One thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "net/base/address.h"
#include "net/data/data_origin.h"
#include "net/https/https_fetcher.h"

namespace atl {

// Of one source. `fetcher` may be several origins' on one thread.
std::unique_ptr<DataOrigin> hub_origin(std::shared_ptr<HttpsFetcher> fetcher, std::vector<Address> hub,
                                       std::string source);

}  // namespace atl
