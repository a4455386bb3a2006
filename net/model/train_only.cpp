#include "net/model/train_only.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/base/printable.h"

namespace atl {

// The last * takes a character more whenever what follows it does not fit.
bool glob_matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

ParameterLayout layout_of_training(const ModelConfig& config, const std::vector<std::string>& train_only) {
  ParameterLayout layout = canonical_layout(config);
  if (train_only.empty()) return layout;
  for (ParameterInfo& parameter : layout.parameters) {
    parameter.trained = std::ranges::any_of(
        train_only, [&](const std::string& pattern) { return glob_matches(pattern, parameter.name); });
  }
  return layout;
}

Status check_train_only(const ModelConfig& config, const std::vector<std::string>& train_only) {
  if (train_only.size() > kMostTrainPatterns) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--train-only has {} patterns, and may have {}; let one match several parameters, as in "
                             "'model.layers.2?.*'",
                             train_only.size(), kMostTrainPatterns)};
  }
  const ParameterLayout layout = canonical_layout(config);
  for (const std::string& pattern : train_only) {
    const bool is_pattern = !pattern.empty() && pattern.size() <= kMostTrainPatternBytes && is_printable(pattern);
    const auto matches = [&](const ParameterInfo& parameter) { return glob_matches(pattern, parameter.name); };
    if (is_pattern && std::ranges::any_of(layout.parameters, matches)) continue;
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("--train-only '{}' names no parameter of the model: they are called {}, {}, ... {}; * is any "
                    "text",
                    printable(pattern, kMostTrainPatternBytes), layout.parameters.front().name,
                    layout.parameters[1].name, layout.parameters.back().name)};
  }
  return ok_status();
}

}  // namespace atl
