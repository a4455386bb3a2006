// Numbers as people read them: in their locale, with their unit, translated. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>

#include <QString>

namespace atl::text {

QString number(double value, int digits);
QString count(std::uint64_t number);
// 318k, 1.24M, 13.6B, as tokens and parameters are counted. With `step`: as many digits as tell two values apart that
// differ by it.
QString compact(double value, double step = 0);
// The same before a unit: 71.2 G.
QString scaled(double value, double step = 0);
QString bytes(double number);                // powers of 1000: 1.9 GB
QString link_rate(double bytes_per_second);  // as links are sold: 84 Mbit/s
QString duration(double seconds);            // 40 ms, 38 s, 4 min 10 s, 2 h 05 min, 3 d 4 h
QString percent(double share);               // of 0 to 1: 38 %
QString loss(double nats);                   // 2.914
QString speed(double tokens_per_second);     // 318k tokens/s
QString watts(double watts);
QString celsius(double degrees);
QString hertz(double hertz);                  // 1.98 GHz
QString date_time(double unix_seconds);       // short, local
QString time_of_day(double unix_seconds);     // 14:05
QString ago(double seconds);                  // "now", "12 s ago", "3 min ago": whole units, as an age is read
QString short_hash(const std::string& hash);  // its first 12 digits
// What is not known is said so: a dash, for figures that stand in line with others.
QString or_dash(const std::optional<double>& value, QString (*text)(double));

// For a tool tip, which Qt would otherwise guess to be markup.
QString tool_tip(const QString& plain);

}  // namespace atl::text
