// Of which sources, and by what, this program was built. Constants; any thread.
#pragma once

#include <string_view>

namespace atl {

struct BuildFacts {
  std::string_view
      commit;  // of the sources, in hex, "-modified" behind it where they differ from it; "unknown": no repository
  std::string_view compiler;    // "GNU 12.2.0"
  std::string_view build_type;  // "Release"
  std::string_view libtorch;    // "2.11.0"; empty: no trainer was built
  std::string_view cuda;        // of the toolkit that compiled the kernels; empty: there are none
  bool trains_on_gpus;
};

// build_facts.cpp is written anew by each build (write_build_facts.cmake).
const BuildFacts& build_facts();

}  // namespace atl
