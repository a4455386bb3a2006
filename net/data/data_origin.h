// Where files of a run's dataset can be had: the hub, a mirror. Whoever asks verifies what comes. One thread each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/bytes.h"
#include "net/base/result.h"

namespace atl {

class DataOrigin {
 public:
  virtual ~DataOrigin() = default;
  virtual std::string name() const = 0;  // for people: "the hub", "https://HOST/PATH"
  // The bytes [offset, offset + bytes) of a file of the source; `bytes` above 0. Blocks, not much longer than a stalled
  // transfer takes to be noticed; one try. kAborted soon after `abort` is raised.
  virtual Result<Bytes> read(const std::string& file, std::uint64_t offset, std::uint64_t bytes,
                             const AbortSignal& abort) = 0;
};

// Those of one source, the one that is asked first before the others, the hub last.
using DataOrigins = std::vector<std::unique_ptr<DataOrigin>>;

// A directory of this machine, or one of the network that is mounted here. Regular files alone are read.
std::unique_ptr<DataOrigin> directory_origin(std::string path);

}  // namespace atl
