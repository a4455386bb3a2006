// From series of core to what a plot draws: smoothed lines and the marks of rounds. Pure; any thread.
#pragma once

#include <span>
#include <vector>

#include "app/core/rounds_model.h"
#include "app/core/series.h"
#include "app/gui/plot/plot.h"

namespace atl {

// What `smoothing` of 0 to 0.99 makes of the series, in [from, to]. It means the same however far one zooms in: a
// thousandth of the whole series, or the usual step where that is more, is the distance that it is reckoned by.
std::vector<SeriesColumn> smoothed_columns(const Series& series, double from, double to, std::size_t columns,
                                           double smoothing);

// Of a few values, a dot each: no line leads over a pause of several usual distances.
std::vector<SeriesColumn> dotted_columns(const Series& series, double from, double to, std::size_t columns);

// Where rounds ended: `syncs` has one point a round (sync_seconds), `rounds` their numbers, newest first.
std::vector<PlotMark> round_marks(const Series& syncs, const std::vector<RoundRow>& rounds, double from, double to);

}  // namespace atl
