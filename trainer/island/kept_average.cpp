#include "trainer/island/kept_average.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/base/file.h"
#include "net/base/sha256.h"
#include "net/collective/canonical_digest.h"

namespace atl {
namespace {

constexpr std::string_view kMagic = "ATLAVERG";
constexpr std::uint32_t kFormatVersion = 1;
constexpr std::size_t kDigestChars = 64;

}  // namespace

Status save_average(const std::filesystem::path& file, OuterStep round, WireFormat wire, const std::string& digest,
                    ByteView canonical) {
  ByteWriter header;
  header.put_bytes(as_bytes(kMagic));
  header.put(kFormatVersion);
  header.put(round.value);
  header.put(static_cast<std::uint32_t>(wire));
  header.put(static_cast<std::uint64_t>(canonical.size()));
  header.put_bytes(as_bytes(digest));
  std::string content = to_string(header.take());
  content += to_string(canonical);
  return write_file_atomically(file, content, FileMode::kPrivate);
}

Result<KeptAverage> load_average(const std::filesystem::path& file, OuterStep round, const std::string& digest) {
  ATOLL_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::open(file));
  ByteReader reader(mapped.bytes());
  const bool magic_fits = to_string(reader.get_bytes(kMagic.size())) == kMagic;
  const auto format = reader.get<std::uint32_t>();
  KeptAverage average;
  average.round.value = reader.get<std::uint32_t>();
  const auto wire = reader.get<std::uint32_t>();
  const auto size = reader.get<std::uint64_t>();
  average.digest = to_string(reader.get_bytes(kDigestChars));
  const Error corrupt{ErrorCode::kCorrupt, fmt::format("{} is not a whole average of a round", file.string())};
  if (!reader.ok() || !magic_fits || format != kFormatVersion || wire >= kWireFormatNames.size()) return corrupt;
  if (average.round != round || average.digest != digest) {
    return Error{ErrorCode::kNotFound, fmt::format("{} is of round {}", file.string(), average.round.value)};
  }
  average.wire = static_cast<WireFormat>(wire);
  const ByteView canonical = reader.get_bytes(size);
  if (!reader.ok() || !reader.at_end() || to_hex(canonical_digest(canonical)) != digest) return corrupt;
  average.canonical.assign(canonical.begin(), canonical.end());
  return average;
}

}  // namespace atl
