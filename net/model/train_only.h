// Which of a model's parameters a run trains, where it is not all of them (RunConfig::train_only): those whose
// canonical names match one of some patterns. The others stay as they began, bit for bit: they are averaged by nobody,
// and take no gradient and no optimiser's state. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"
#include "net/model/layout.h"

namespace atl {

inline constexpr std::size_t kMostTrainPatterns = 2048;    // of a run
inline constexpr std::size_t kMostTrainPatternBytes = 64;  // of each; all of them leave its dataset room (kMaxRunBytes)

// Whether all of `name` is what `pattern` says: * is any text, ? any one character. Takes their lengths' product at
// most.
bool glob_matches(std::string_view pattern, std::string_view name);

// The canonical layout, with what matches one of the patterns as trained; without any pattern that is everything.
ParameterLayout layout_of_training(const ModelConfig& config, const std::vector<std::string>& train_only);

// Whether each pattern is one, and names something: kInvalidArgument says which does not.
Status check_train_only(const ModelConfig& config, const std::vector<std::string>& train_only);

}  // namespace atl
