// The average of the open round, written before the island says that it holds it: with the outer state before it, it
// makes the state after it, also on an island whose process died before the commit came. One file, replaced each round;
// about encoded_bytes(wire, numel). The island's loop thread alone.
#pragma once

#include <filesystem>
#include <string>

#include "kernels/wire_format.h"
#include "net/base/bytes.h"
#include "net/base/id.h"
#include "net/base/result.h"

namespace atl {

struct KeptAverage {
  OuterStep round;
  WireFormat wire = WireFormat::kFp32;
  std::string digest;  // canonical_digest, hex
  Bytes canonical;
};

// Magic, format version, round, wire format, bytes (little-endian), the digest in hex; then the canonical bytes.
Status save_average(const std::filesystem::path& file, OuterStep round, WireFormat wire, const std::string& digest,
                    ByteView canonical);
// kNotFound when there is none, or one of another round or digest; kCorrupt when it is not whole.
Result<KeptAverage> load_average(const std::filesystem::path& file, OuterStep round, const std::string& digest);

}  // namespace atl
