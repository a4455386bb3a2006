// In which order the members of an attempt form the ring: rank r sends to rank r + 1. Pure; any thread.
#pragma once

#include <vector>

#include "net/wire/mesh.h"

namespace atl {

// By island id: the same for the same members, whoever came first.
std::vector<AttemptMember> ring_order(std::vector<AttemptMember> members);

}  // namespace atl
