// Figures as people read them: in the words and numbers of the user's locale, always with their unit. For tables, plots
// and sentences. Pure functions; any thread once the translators are installed.
#pragma once

#include <cstdint>

#include <QString>

namespace atl::figures {

QString count(std::uint64_t number);
QString bytes(double bytes);            // powers of 1000: "1.9 GB"
QString rate(double bytes_per_second);  // as links are sold: "100 Mbit/s"
QString duration(double seconds);       // 40 ms, 38 s, 4 min 10 s, 2 h 05 min, 3 d 4 h
QString fraction(double part);          // 0.384: "38.4 %"
QString loss(double nats);              // "2.914"
QString moment(double unix_seconds);    // local; of today only the time of day

}  // namespace atl::figures
