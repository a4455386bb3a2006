#include "net/model_files/config_values.h"

#include <nlohmann/json.hpp>

#include "net/base/json_text.h"

namespace atl {

nlohmann::json config_values(const ModelConfig& config) {
  const std::string text = to_json(config);
  return parse_bounded_json(text, text.size(), kMaxConfigDepth).value();
}

}  // namespace atl
