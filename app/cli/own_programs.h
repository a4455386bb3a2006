// Where the other programs of this installation are. Any thread.
#pragma once

#include <filesystem>

#include "net/base/result.h"

namespace atl {

// What the environment variable says, else beside this program's own file; kTrainerFailed where there is none.
Result<std::filesystem::path> locate_trainer();    // ATOLL_TRAINER
Result<std::filesystem::path> locate_atoll();      // ATOLL_PROGRAM
Result<std::filesystem::path> locate_gpu_probe();  // ATOLL_GPU_PROBE

}  // namespace atl
