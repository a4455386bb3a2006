// Whether this build's trainer can compute on GPUs: it has the kernels. Whether it does is its owner's choice
// (island.device) and what the cards allow. Any thread.
#pragma once

namespace atl {

bool gpus_compute();

}  // namespace atl
