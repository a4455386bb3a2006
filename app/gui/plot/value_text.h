// How the values of a plot's axes are written. Plain values; GUI thread.
#pragma once

#include <functional>

#include <QString>

namespace atl {

// `step`: between two ticks, for as many digits as tell them apart; 0: a single value.
struct ValueText : std::function<QString(double value, double step)> {
  using function::function;
  double least_step = 0;  // between two ticks
};

ValueText compact_values();  // 318k, 1.24M
ValueText count_values();    // likewise, of whole numbers
ValueText loss_values();     // 2.914
ValueText percent_values();  // of 0 to 1
ValueText second_values();
// A fixed unit behind a compact number: "612 W".
ValueText unit_values(const QString& unit);
ValueText byte_values();

}  // namespace atl
