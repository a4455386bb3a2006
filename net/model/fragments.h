// The parts of a model that a run averages in turn (RunConfig::fragments; Streaming DiLoCo, arXiv:2501.18512): round k
// averages fragment k mod F. A fragment is a set of whole units of the canonical layout, so that what is gathered and
// freed as one is averaged as one; what the ring averages of it is its ranges side by side, ascending. All islands work
// them out alike: they depend on the model, what of it is trained, and F alone. What is not trained is averaged by
// nobody, and in none of them. No torch. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "net/base/result.h"
#include "net/model/layout.h"

namespace atl {

// Of the canonical flat order.
struct ParameterRange {
  std::int64_t offset = 0;
  std::int64_t numel = 0;

  bool operator==(const ParameterRange&) const = default;
};

struct Fragment {
  std::vector<ParameterRange> ranges;  // ascending, with other fragments' parameters between any two
  std::int64_t numel = 0;              // of all of them; positive
};

// By FragmentId. Together they are what is trained of the model; where that is all, one is the whole in one range. None
// is larger than another by more than a unit. kInvalidArgument where fewer units than that have something to train.
Result<std::vector<Fragment>> fragments_of(const ParameterLayout& layout, std::uint32_t count);

// All ranges of all of them, ascending: what is trained of the model.
std::vector<ParameterRange> ranges_of(std::span<const Fragment> fragments);

}  // namespace atl
