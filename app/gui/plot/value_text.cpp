#include "app/gui/plot/value_text.h"

#include "app/gui/look/format.h"

namespace atl {

ValueText compact_values() {
  return [](double value, double step) { return text::compact(value, step); };
}

ValueText loss_values() {
  return [](double value, double step) { return step > 0 ? text::compact(value, step) : text::loss(value); };
}

ValueText percent_values() {
  return [](double value, double step) { return QString("%1 %").arg(text::compact(100 * value, 100 * step)); };
}

ValueText second_values() {
  return [](double value, double step) {
    return step > 0 ? QString("%1 s").arg(text::compact(value, step)) : text::duration(value);
  };
}

ValueText unit_values(const QString& unit) {
  return [unit](double value, double step) { return QString("%1 %2").arg(text::compact(value, step), unit); };
}

ValueText byte_values() {
  return [](double value, double step) { return step > 0 ? text::scaled(value, step) + "B" : text::bytes(value); };
}

}  // namespace atl
