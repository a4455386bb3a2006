#include "app/gui/plot/value_text.h"

#include "app/gui/look/format.h"

namespace atl {

ValueText compact_values() {
  return [](double value, double step) { return text::compact(value, step); };
}

ValueText count_values() {
  ValueText text = compact_values();
  text.least_step = 1;
  return text;
}

ValueText loss_values() {
  return [](double value, double step) { return step > 0 ? text::compact(value, step) : text::loss(value); };
}

ValueText percent_values() {
  return [](double value, double step) { return QString("%1 %").arg(text::compact(100 * value, 100 * step)); };
}

ValueText second_values() {
  return [](double value, double step) {
    if (!(step > 0)) return text::duration(value);
    if (step >= 0.1) return QString("%1 s").arg(text::compact(value, step));
    const bool milli = step >= 1e-4;
    const double factor = milli ? 1e3 : 1e6;
    return QString(milli ? "%1 ms" : "%1 \u00B5s").arg(text::compact(factor * value, factor * step));
  };
}

ValueText unit_values(const QString& unit) {
  return [unit](double value, double step) { return QString("%1 %2").arg(text::compact(value, step), unit); };
}

ValueText byte_values() {
  return [](double value, double step) { return step > 0 ? text::scaled(value, step) + "B" : text::bytes(value); };
}

}  // namespace atl
