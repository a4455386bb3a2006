// What is read from a plot at one place. Pure; any thread.
#pragma once

#include <span>

#include <QString>

#include "app/core/series.h"
#include "app/gui/plot/value_text.h"

namespace atl {

// The column nearest to x; null where none is near (a fiftieth of the span), as within a gap.
const SeriesColumn* column_near(std::span<const SeriesColumn> columns, double x, double span);
// "2.914", with a band "2.914 (2.802 to 3.051)".
QString readout_value(const SeriesColumn& column, bool band, const ValueText& text);
QString readout_x(double x, bool time, const ValueText& text, const QString& caption);

}  // namespace atl
