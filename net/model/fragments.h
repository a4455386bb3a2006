// The parts of a model that a run averages in turn (RunConfig::fragments; Streaming DiLoCo, arXiv:2501.18512): round k
// averages fragment k mod F. A fragment is a set of whole units of the canonical layout, so that what is gathered and
// freed as one is averaged as one; what the ring averages of it is its ranges side by side, ascending. All islands work
// them out alike: they depend on the model and F alone. No torch. Pure; any thread.
#pragma once

#include <cstdint>
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

// By FragmentId. Together they are the model; of one, the whole of it in one range. None is larger than another by more
// than a unit. kInvalidArgument where the model has fewer units than that.
Result<std::vector<Fragment>> fragments_of(const ParameterLayout& layout, std::uint32_t count);

}  // namespace atl
