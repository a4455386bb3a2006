// The demo's dataset, prepared once for each text: kept in the cache under the hash of what it was made from, so that
// the next demo starts at once. Blocks.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "net/base/result.h"

namespace atl {

struct DemoData {
  std::filesystem::path directory;
  std::uint64_t text_bytes = 0;
  bool prepared_before = false;
};

// Empty `text`: Debian's dictionary; kNotFound says how to get it.
Result<DemoData> demo_data(const std::vector<std::string>& text, const std::function<void()>& on_prepare);

}  // namespace atl
