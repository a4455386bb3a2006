// A member of an attempt, or of one that may come.
#pragma once

#include "net/base/address.h"
#include "net/base/id.h"

namespace atl {

struct RingMember {
  IslandId id;
  Address address;
  double weight = 0;            // tokens trained this round; 0 for one that only receives
  bool dials_previous = false;  // it dials the rank before it, which else dials it; bytes flow the same way
};

}  // namespace atl
