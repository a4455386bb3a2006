#include "app/core/figures.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QLocale>
#include <algorithm>
#include <array>
#include <cmath>

namespace atl::figures {
namespace {

struct Figures {
  Q_DECLARE_TR_FUNCTIONS(Figures)
};

}  // namespace

QString count(std::uint64_t number) { return QLocale().toString(static_cast<qulonglong>(number)); }

QString bytes(double bytes) {
  if (!std::isfinite(bytes) || bytes < 0 || bytes > 9e18) return Figures::tr("unknown");
  return QLocale().formattedDataSize(static_cast<qint64>(bytes), bytes < 1000 ? 0 : 1, QLocale::DataSizeSIFormat);
}

QString rate(double bytes_per_second) {
  const double bits = 8 * bytes_per_second;
  if (!std::isfinite(bits) || bits < 0) return Figures::tr("unknown");
  constexpr std::array kUnits{"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
  std::size_t unit = 0;
  double shown = bits;
  for (; shown >= 999.5 && unit + 1 < kUnits.size(); shown /= 1000) ++unit;
  const bool whole = shown >= 99.95 || std::abs(shown - std::round(shown)) < 0.05;
  return QLocale().toString(shown, 'f', whole ? 0 : 1) + " " + QLatin1String(kUnits[unit]);
}

QString duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e12) return Figures::tr("unknown");
  if (seconds < 0.0995) return Figures::tr("%1 ms").arg(std::llround(1000 * seconds));
  if (seconds < 9.95) return Figures::tr("%1 s").arg(QLocale().toString(seconds, 'f', 1));
  const auto whole = static_cast<qint64>(std::llround(seconds));
  if (whole < 100) return Figures::tr("%1 s").arg(whole);
  if (whole < 3600) return Figures::tr("%1 min %2 s").arg(whole / 60).arg(whole % 60, 2, 10, QChar('0'));
  if (whole < 48 * 3600) return Figures::tr("%1 h %2 min").arg(whole / 3600).arg(whole % 3600 / 60, 2, 10, QChar('0'));
  return Figures::tr("%1 d %2 h").arg(whole / 86400).arg(whole % 86400 / 3600);
}

QString fraction(double part) { return Figures::tr("%1 %").arg(QLocale().toString(100 * part, 'f', 1)); }

QString loss(double nats) {
  return std::isfinite(nats) ? QLocale().toString(nats, 'f', 3) : Figures::tr("not a number");
}

QString moment(double unix_seconds) {
  if (!(unix_seconds > 0 && unix_seconds < 1e12)) return Figures::tr("unknown");
  const QDateTime time = QDateTime::fromMSecsSinceEpoch(static_cast<qint64>(unix_seconds * 1000));
  const bool today = time.date() == QDate::currentDate();
  return today ? QLocale().toString(time.time(), QLocale::ShortFormat) : QLocale().toString(time, QLocale::ShortFormat);
}

}  // namespace atl::figures
