// The hub's signed commit that the golden files of tests/golden/disk hold, as make.py makes it there.
#pragma once

#include <string>

#include "net/base/sha256.h"
#include "net/wire/mesh.h"

namespace atl::test {

inline SignedCommit golden_commit(std::uint32_t round, std::uint32_t fragment) {
  SignedCommit signed_commit{.commit = {}, .hub_certificate = "PEM of the hub"};
  HubCommit& made = signed_commit.commit;
  made.round = OuterStep{round};
  made.attempt = Attempt{2};
  made.digest = sha256_hex(as_bytes("average " + std::to_string(round)));
  made.outer_learning_rate = 0.7;
  made.outer_momentum = 0.9;
  for (const unsigned i : {1u, 2u}) {
    const IslandId id{"isl-" + std::to_string(i)};
    made.members.push_back({id, {"198.51.100." + std::to_string(i), 47000}, 4096 * i, i == 2});
    made.holders.push_back(id);
  }
  made.signature = "c2lnbmF0dXJl";
  made.fragment = FragmentId{fragment};
  made.epoch = 5;
  made.lease_cursor = 1280;
  return signed_commit;
}

}  // namespace atl::test
