#include "app/gui/look/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <QCoreApplication>
#include <QDateTime>
#include <QLocale>

#include "app/core/figures.h"

namespace atl::text {
namespace {

struct Format {
  Q_DECLARE_TR_FUNCTIONS(Format)
};

struct Prefix {
  double factor;
  const char* letter;
};
constexpr std::array kPrefixes{Prefix{1e15, "P"}, Prefix{1e12, "T"}, Prefix{1e9, "G"}, Prefix{1e6, "M"},
                               Prefix{1e3, "k"}};

Prefix prefix_of(double value) {
  for (const Prefix& prefix : kPrefixes) {
    if (std::abs(value) >= prefix.factor * 0.9995) return prefix;
  }
  return {1, ""};
}

Prefix count_prefix_of(double value) {
  const Prefix prefix = prefix_of(value);
  if (prefix.factor == 1e15) return {1e12, "T"};
  return prefix.factor == 1e9 ? Prefix{1e9, "B"} : prefix;
}

// Three digits in all, as far as they are after the point.
int digits_of(double value) {
  const double size = std::abs(value);
  if (size == 0 || size >= 99.95) return 0;
  if (size >= 9.995) return 1;
  return size >= 0.9995 ? 2 : 3;
}

QString without_zeros(QString number) {
  const QString point = QLocale().decimalPoint();
  if (!number.contains(point)) return number;
  while (number.endsWith('0')) number.chop(1);
  if (number.endsWith(point)) number.chop(point.size());
  return number;
}

QString with_unit(double value, const char* unit, int kept_digits = -1) {
  if (!std::isfinite(value)) return Format::tr("unknown");
  const Prefix prefix = prefix_of(value);
  const double scaled = value / prefix.factor;
  const int digits = kept_digits >= 0 ? kept_digits : prefix.factor == 1 ? 0 : std::min(digits_of(scaled), 1);
  const QString text = kept_digits >= 0 ? number(scaled, digits) : without_zeros(number(scaled, digits));
  return text + " " + QLatin1String(prefix.letter) + QLatin1String(unit);
}

// Below a thousandth zeros would hide the figure: 2.4e-4.
QString tiny(double value, double step) {
  const double size = std::max(std::abs(value), step);
  const int digits = step > 0 ? std::clamp(static_cast<int>(std::ceil(std::log10(size / step))), 0, 5) : 2;
  if (value == 0) return QString("0");
  return QString::number(value, 'e', digits).replace("e-0", "e-").replace(".", QLocale().decimalPoint());
}

QString figure(double value, double step, const Prefix& prefix) {
  const double size = std::max(std::abs(value), step);
  if (size > 0 && size < 1e-3) return tiny(value, step);
  const double scaled = value / prefix.factor;
  int digits = prefix.factor == 1 && value == std::round(value) ? 0 : digits_of(scaled);
  if (step > 0) {
    const double scaled_step = step / prefix.factor;
    digits = std::clamp(static_cast<int>(std::ceil(-std::log10(scaled_step) - 1e-9)), 0, 9);
    // 0.25 needs two digits, though it is more than 0.1.
    const double shifted = scaled_step * std::pow(10, digits);
    if (std::abs(shifted - std::round(shifted)) > 0.01) digits = std::min(digits + 1, 9);
  }
  const QString text = number(scaled, digits);
  return step > 0 ? text : without_zeros(text);
}

}  // namespace

QString number(double value, int digits) {
  return std::isfinite(value) ? QLocale().toString(value, 'f', digits) : Format::tr("unknown");
}

QString count(std::uint64_t number) { return QLocale().toString(static_cast<qulonglong>(number)); }

QString compact(double value, double step) {
  if (!std::isfinite(value)) return Format::tr("unknown");
  const Prefix prefix = count_prefix_of(value);
  return figure(value, step, prefix) + QLatin1String(prefix.letter);
}

QString scaled(double value, double step) {
  if (!std::isfinite(value)) return Format::tr("unknown");
  const Prefix prefix = prefix_of(value);
  return figure(value, step, prefix) + " " + QLatin1String(prefix.letter);
}

QString bytes(double number) { return with_unit(number, "B"); }
QString link_rate(double bytes_per_second) { return figures::rate(bytes_per_second); }
QString hertz(double hertz) { return with_unit(hertz, "Hz", hertz >= 0.9995e9 ? 2 : 0); }

QString duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e12) return Format::tr("unknown");
  if (seconds > 0 && seconds < 0.9995e-3) return Format::tr("%1 \u00B5s").arg(std::llround(1e6 * seconds));
  if (seconds > 0 && seconds < 9.95e-3) return Format::tr("%1 ms").arg(number(1e3 * seconds, 1));
  if (seconds < 0.0995) return Format::tr("%1 ms").arg(std::llround(1e3 * seconds));
  if (seconds < 9.95) return Format::tr("%1 s").arg(number(seconds, 1));
  const auto whole = static_cast<qint64>(std::llround(seconds));
  if (whole < 100) return Format::tr("%1 s").arg(whole);
  if (whole < 3600) return Format::tr("%1 min %2 s").arg(whole / 60).arg(whole % 60, 2, 10, QChar('0'));
  if (whole < 48 * 3600) return Format::tr("%1 h %2 min").arg(whole / 3600).arg(whole % 3600 / 60, 2, 10, QChar('0'));
  return Format::tr("%1 d %2 h").arg(whole / 86400).arg(whole % 86400 / 3600);
}

QString percent(double share) {
  if (!std::isfinite(share)) return Format::tr("unknown");
  return Format::tr("%1 %").arg(number(100 * share, 0));
}

QString loss(double nats) { return number(nats, 3); }

QString speed(double tokens_per_second) {
  const bool sane = std::isfinite(tokens_per_second) && tokens_per_second >= 0;
  return sane ? Format::tr("%1 tokens/s").arg(compact(tokens_per_second)) : Format::tr("unknown");
}

QString watts(double watts) { return Format::tr("%1 W").arg(number(watts, 0)); }
QString celsius(double degrees) {
  return Format::tr(
             "%1 \u00B0"
             "C")
      .arg(number(degrees, 0));
}

QString date_time(double unix_seconds) {
  return QLocale().toString(QDateTime::fromSecsSinceEpoch(static_cast<qint64>(unix_seconds)), QLocale::ShortFormat);
}

QString time_of_day(double unix_seconds) {
  return QLocale().toString(QDateTime::fromSecsSinceEpoch(static_cast<qint64>(unix_seconds)).time(),
                            QLocale::ShortFormat);
}

QString ago(double seconds) {
  if (!(seconds >= 2)) return Format::tr("now");
  const auto whole = static_cast<qint64>(std::floor(std::min(seconds, 1e12)));
  if (whole < 60) return Format::tr("%1 s ago").arg(whole);
  if (whole < 3600) return Format::tr("%1 min ago").arg(whole / 60);
  if (whole < 48 * 3600) return Format::tr("%1 h ago").arg(whole / 3600);
  return Format::tr("%1 d ago").arg(whole / 86400);
}

QString short_hash(const std::string& hash) { return QString::fromStdString(hash).left(12); }

QString or_dash(const std::optional<double>& value, QString (*text)(double)) {
  return value && std::isfinite(*value) ? text(*value) : QString("\u2013");
}

QString tool_tip(const QString& plain) { return plain.isEmpty() ? plain : "<qt>" + plain.toHtmlEscaped() + "</qt>"; }

}  // namespace atl::text
