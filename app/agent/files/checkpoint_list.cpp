#include "app/agent/files/checkpoint_list.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/recovery/outer_state.h"

namespace atl {
namespace {

// As trainer/island/outer_state_store.cpp writes it: magic, format version, outer step, numel, parameters, momentum,
// tree hash in hex.
constexpr std::string_view kMagic = "ATLOUTER";
constexpr std::uint32_t kFormatVersion = 1;
constexpr std::size_t kHeaderBytes = 24, kHashBytes = 64;

Result<CheckpointFacts> read_header(const std::filesystem::path& file, ByteView bytes) {
  CheckpointFacts facts{.path = file, .bytes = bytes.size(), .state_hash = {}, .whole = {}};
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return errno_error("examine", file);
  facts.saved_at = static_cast<double>(info.st_mtime);
  ByteReader reader(bytes);
  const bool magic = to_string(reader.get_bytes(kMagic.size())) == kMagic;
  const auto format = reader.get<std::uint32_t>();
  facts.outer_step = reader.get<std::uint32_t>();
  facts.parameters = reader.get<std::uint64_t>();
  const bool fits = magic && reader.ok() && format == kFormatVersion && facts.parameters <= bytes.size() / 8 &&
                    bytes.size() == kHeaderBytes + facts.parameters * 8 + kHashBytes;
  if (!fits) {
    facts.outer_step = 0;
    facts.parameters = 0;
    facts.whole = false;
    return facts;
  }
  facts.state_hash = to_string(bytes.last(kHashBytes));
  return facts;
}

}  // namespace

Result<std::vector<CheckpointFacts>> list_checkpoints(const IslandHome& home) {
  std::vector<CheckpointFacts> found;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(home.checkpoint(), failed)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("outer.") || !name.ends_with("state")) continue;
    const auto mapped = MappedFile::open(entry.path());
    if (!mapped.ok()) {
      if (mapped.error().code == ErrorCode::kNotFound) continue;
      return mapped.error();
    }
    ATOLL_ASSIGN_OR_RETURN(found.emplace_back(), read_header(entry.path(), mapped->bytes()));
  }
  // outer.state is the newest; the others have their outer step in their names.
  std::ranges::sort(found, [](const CheckpointFacts& a, const CheckpointFacts& b) {
    return a.outer_step != b.outer_step ? a.outer_step > b.outer_step : a.path < b.path;
  });
  return found;
}

Result<CheckpointFacts> verify_checkpoint(const std::filesystem::path& file) {
  ATOLL_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::open(file));
  ATOLL_ASSIGN_OR_RETURN(CheckpointFacts facts, read_header(file, mapped.bytes()));
  if (facts.whole) return facts;
  const auto* values = reinterpret_cast<const float*>(mapped.bytes().data() + kHeaderBytes);
  const std::span<const float> parameters(values, facts.parameters),
      momentum(values + facts.parameters, facts.parameters);
  const StateManifest manifest = make_state_manifest(OuterStep{facts.outer_step}, parameters, momentum);
  facts.whole = to_hex(manifest.tree_hash()) == facts.state_hash;
  return facts;
}

nlohmann::json checkpoints_json(const std::vector<CheckpointFacts>& checkpoints) {
  nlohmann::json list = nlohmann::json::array();
  for (const CheckpointFacts& facts : checkpoints) {
    list.push_back({{"path", facts.path.string()},
                    {"outer_step", facts.outer_step},
                    {"parameters", facts.parameters},
                    {"bytes", facts.bytes},
                    {"saved_at", facts.saved_at},
                    {"state_hash", facts.state_hash},
                    {"whole", facts.whole ? nlohmann::json(*facts.whole) : nlohmann::json()}});
  }
  return {{"checkpoints", std::move(list)}};
}

}  // namespace atl
