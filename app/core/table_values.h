// What tables say of a cell beside its text: the value to sort by, and the words for who hears it. Pure functions; GUI
// thread.
#pragma once

#include <cstdint>
#include <optional>

#include <QCoreApplication>
#include <QVariant>

namespace atl {

template <class T>
QVariant sortable(const std::optional<T>& value) {
  if constexpr (std::is_same_v<T, std::uint64_t>) {
    return value ? QVariant::fromValue<qulonglong>(*value) : QVariant();
  } else {
    return value ? QVariant::fromValue(*value) : QVariant();
  }
}

// "Round trip: 32 ms".
inline QString spoken(const QVariant& caption, const QString& shown) {
  const auto words = [](const char* text) { return QCoreApplication::translate("atl::Table", text); };
  return words(QT_TRANSLATE_NOOP("atl::Table", "%1: %2"))
      .arg(caption.toString(), shown.isEmpty() ? words(QT_TRANSLATE_NOOP("atl::Table", "not known")) : shown);
}

}  // namespace atl
