// Whether this build's trainer can compute on GPUs: it has the kernels. It does where the owner chose so (island.device). What the node check says of a machine follows from
// it: which of its parts a run will use, and what would keep it from joining. Any thread.
#pragma once

namespace atl {

bool gpus_compute();

}  // namespace atl
