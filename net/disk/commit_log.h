// The hub's signed records on an island's disk, private to the owner; the one definition of both files:
//
//   commits.log  every commit that the island took the outer step of, in their order: an empty line, then a line of
//                JSON (encode(SignedCommit), net/wire/mesh.h), so that a line which a crash cut short swallows no other
//   epoch.json   a line of JSON: the highest epoch in which the island met the hub (encode(SignedEpoch))
//
// One thread a file; block on the disk.
#pragma once

#include <filesystem>
#include <optional>

#include "net/base/result.h"
#include "net/wire/mesh.h"

namespace atl {

// On the disk when it returns. A log beyond 64 MiB loses its older half first.
Status append_commit(const std::filesystem::path& log, const SignedCommit& commit);
// The last that can be read, of the end of the log (2 MiB); empty when there is none.
std::optional<SignedCommit> newest_kept_commit(const std::filesystem::path& log);

Status write_epoch(const std::filesystem::path& file, const SignedEpoch& epoch);  // replaced atomically
// kNotFound when there is none.
Result<SignedEpoch> read_epoch(const std::filesystem::path& file);

}  // namespace atl
