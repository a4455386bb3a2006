// How far a download is, told while it goes on. Called on the thread that fetches.
#pragma once

#include <cstdint>
#include <functional>

namespace atl {

using FetchProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

}  // namespace atl
