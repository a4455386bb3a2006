// Whether a run can work at all, before it is made: its islands would find out too late. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "net/base/result.h"
#include "net/wire/run_config.h"

namespace atl {

// What an invite can carry: printable, 1 to 64 bytes.
Status validate_run_name(const std::string& name);
// The model, as islands read it; the learning rates. `vocab_size`: of the dataset. kInvalidArgument says which.
Status validate_run(const RunConfig& run, std::uint32_t vocab_size);

}  // namespace atl
