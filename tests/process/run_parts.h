// What every test that runs whole runs is made of. Functions abort the test program with a message when the set-up
// itself fails.
#pragma once

#include <QtCore/QtGlobal>
#include <filesystem>
#include <memory>
#include <string>

#include "net/control/home.h"
#include "net/wire/invite.h"
#include "net/wire/run_config.h"

class QProcess;

namespace atl::test {

// The value, or the end of the test program.
template <class T>
T require(Result<T> result) {
  if (!result.ok()) qFatal("%s", result.error().message.c_str());
  return std::move(result).value();
}
inline void require(const Status& status) {
  if (!status.ok()) qFatal("%s", status.error().message.c_str());
}

// A text with enough structure for a loss to fall, written to `text`, and the dataset made of it.
void make_dataset(const std::filesystem::path& text, const std::filesystem::path& dataset);

// Enrols, from the network namespace that the caller is in, and writes an island's home as `atoll join` leaves it,
// named after the island's id, with the run's data already there.
struct IslandHomeOptions {
  std::filesystem::path directory;  // of all homes
  std::filesystem::path dataset;
  Invite invite;
  std::string display_name;
  Address bind;
};
IslandHome make_island_home(const IslandHomeOptions& options, const RunConfig& run);
// `atoll-trainer run` of this build on that home, its words at the end of the home's log; ends with its owner.
std::unique_ptr<QProcess> start_trainer(const IslandHome& home);

// A Llama small enough that a round of it takes a fraction of a second.
std::string small_model_json();
// A run of it with rounds of six inner steps and no validation, to be changed as a test needs it.
RunConfig small_run(std::uint32_t min_islands);

}  // namespace atl::test
