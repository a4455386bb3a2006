// What the lines of many GPUs come to: eight of them cover each other. Pure; any thread.
#pragma once

#include <span>
#include <vector>

#include "app/core/series.h"

namespace atl {

// At each place where one of the lines has a column: the mean of them all, the least and the greatest. Between two of
// its columns a line stays as it was; before its first, after its last and within a gap it does not count.
std::vector<SeriesColumn> spread_of(std::span<const std::vector<SeriesColumn>> lines);

}  // namespace atl
