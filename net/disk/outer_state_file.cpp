#include "net/disk/outer_state_file.h"

#include <fmt/format.h>

#include "net/base/json_reader.h"
#include "net/recovery/outer_state.h"

namespace atl {
namespace {

constexpr std::string_view kOuterStateMagic = "ATLOUTER";
constexpr std::uint32_t kOuterStateVersion = 1;
constexpr std::uint64_t kOuterStateHeaderBytes = 24;

Error no_whole_state(const StoredFile& file) {
  return Error{ErrorCode::kCorrupt, fmt::format("{} is no whole checkpoint", file.path().string())};
}

}  // namespace

Result<OuterStateInfo> read_outer_state_info(const StoredFile& file) {
  ATOLL_ASSIGN_OR_RETURN(const Bytes head, file.head(kOuterStateHeaderBytes));
  ByteReader header(head);
  const bool known = is_stored(header, kOuterStateMagic, kOuterStateVersion);
  OuterStateInfo info;
  info.outer_step.value = header.get<std::uint32_t>();
  info.numel = header.get<std::uint64_t>();
  const bool fits = known && header.ok() && info.numel > 0 && info.numel <= file.size() / kOuterValueBytes &&
                    file.size() == kOuterStateHeaderBytes + info.numel * kOuterValueBytes + kStoredHashChars;
  if (!fits) return no_whole_state(file);
  info.tree_hash.resize(kStoredHashChars);
  ATOLL_RETURN_IF_ERROR(file.read_at(file.size() - kStoredHashChars,
                                     std::as_writable_bytes(std::span(info.tree_hash.data(), kStoredHashChars))));
  if (!is_sha256_hex(info.tree_hash)) return no_whole_state(file);
  return info;
}

Result<Digest> read_outer_state_chunk(const StoredFile& file, const OuterStateInfo& info, std::uint64_t index,
                                      std::span<float> parameters, std::span<float> momentum) {
  Sha256 hash;
  std::uint64_t offset = kOuterStateHeaderBytes + index * kStateChunkNumel * sizeof(float);
  for (const std::span<float> half : {parameters, momentum}) {
    ATOLL_RETURN_IF_ERROR(read_hashed(file, offset, std::as_writable_bytes(half), hash));
    offset += info.numel * sizeof(float);
  }
  return hash.finish();
}

}  // namespace atl
