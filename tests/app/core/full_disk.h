// A stand-in for a disk that becomes full, which needs no file system of its own. Owned by a test.
#pragma once

#include <sys/resource.h>

#include <csignal>

namespace atl::test {

// No file of this process may become larger meanwhile: writes beyond that fail.
class FullAt {
 public:
  explicit FullAt(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FullAt(FullAt&&) = delete;
  ~FullAt() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace atl::test
