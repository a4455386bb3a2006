// cuBLASLt in host memory, behind the trainer's table of its functions: products by three plain loops, of column-major
// matrices as their descriptors say, on the fake runtime's streams. Refuses what the library refuses: addresses less
// aligned than was said, workspaces that are too small, sums that would be rounded between their parts. A product fills
// its workspace with NaN bytes, so that two that share one spoil nothing else. One at a time. Any thread.
#pragma once

#include "trainer/device/cublas_lt.h"

namespace atl::test {

class FakeCublasLt {
 public:
  FakeCublasLt();

  static CublasLtApi api();

  struct Counts {
    int heuristics = 0;  // asked which algorithm to take
    int products = 0;
    int open = 0;  // handles, descriptors and layouts
  };
  Counts counts() const;
};

}  // namespace atl::test
