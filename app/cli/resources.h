// Files of resources/ that are part of the program. Generated into resources.cpp by app/CMakeLists.txt.
#pragma once

#include <string_view>
#include <vector>

namespace atl {

struct Resource {
  std::string_view name;  // the file's, without ".json"
  std::string_view content;
};

const std::vector<Resource>& run_presets();    // resources/presets
const std::vector<Resource>& model_presets();  // resources/models: HuggingFace config.json files

}  // namespace atl
