// What the desktop app says of an island, translated, numbers in the user's locale and always with their unit. Pure
// functions; any thread.
#pragma once

#include <cstdint>

#include <QString>

#include "app/core/island_report.h"
#include "net/control/home.h"

namespace atl::text {

QString count(std::uint64_t number);
QString bytes(std::uint64_t number);       // powers of 1000
QString duration(double seconds);          // 40 ms, 38 s, 4 min 10 s, 2 h 05 min
QString loss(std::optional<double> nats);  // "none yet" without one
QString speed(double tokens_per_second);

// A symbol and a word, never colour alone: "▶ Training".
struct StateWord {
  QString symbol;
  QString word;
};
StateWord state_word(const IslandReport& report, Clock::time_point now);

// "Updated now", "Last update 12 s ago"; empty without a state.
QString age(const IslandReport& report, Clock::time_point now);

// What a person needs to know beyond the values: what happened, why, what to do. Empty when all is well.
QString advice(const IslandReport& report, const IslandHome& home, Clock::time_point now);
// The command that helps, to be copied: joins or starts the trainer. Empty when there is none.
QString remedy(const IslandReport& report, const IslandHome& home);

}  // namespace atl::text
