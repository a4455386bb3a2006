// All that a hub is, in one file, and a hub made of such a file. The file holds the run's authority: who has it can let
// anybody in. Blocks on the disk; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "net/base/result.h"

namespace atl {

struct HubBackupReport {
  std::filesystem::path file = {};
  std::string run_id, run_name;
  std::uint32_t rounds = 0;  // committed
  std::uint64_t bytes = 0;
  bool begins_at_hub = false;  // its base model is not in the file, as large as it may be
};

// Also while the hub serves. 0600. In a directory that is there the file is named by run and time (UTC):
// "hub-first-2026-03-14-092653.tar". kInvalidArgument when there is something of that name already, unless `force`,
// which puts it in that one's place once it is whole.
Result<HubBackupReport> back_up_hub(const std::filesystem::path& hub_directory, const std::filesystem::path& place,
                                    bool force = false);
// Into a directory that holds no hub; all of it is checked before anything is written.
Result<HubBackupReport> restore_hub(const std::filesystem::path& file, const std::filesystem::path& hub_directory);

}  // namespace atl
