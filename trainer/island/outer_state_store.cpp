#include "trainer/island/outer_state_store.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>

#include "kernels/outer_nesterov.h"
#include "net/base/file.h"

namespace atl {
namespace {

// The checkpoint file of the outer state: magic, format version, outer step, numel (all little-endian), parameters,
// momentum, tree hash.
constexpr std::string_view kMagic = "ATLOUTER";
constexpr std::uint32_t kFormatVersion = 1;
constexpr std::size_t kHeaderBytes = 8 + 4 + 4 + 8, kHashBytes = 64;

Bytes encode_header(OuterStep version, std::int64_t numel) {
  ByteWriter writer;
  writer.put_bytes(as_bytes(kMagic));
  writer.put(kFormatVersion);
  writer.put(version.value);
  writer.put(static_cast<std::uint64_t>(numel));
  return writer.take();
}

struct Header {
  OuterStep version;
  std::uint64_t numel = 0;
};

// Of a file that is as long as it says; else nothing.
std::optional<Header> read_header(ByteView file) {
  ByteReader reader(file);
  const bool magic_fits = to_string(reader.get_bytes(kMagic.size())) == kMagic;
  const auto format = reader.get<std::uint32_t>();
  Header header;
  header.version.value = reader.get<std::uint32_t>();
  header.numel = reader.get<std::uint64_t>();
  const bool fits = reader.ok() && magic_fits && format == kFormatVersion && header.numel <= file.size() / 8 &&
                    file.size() == kHeaderBytes + header.numel * 8 + kHashBytes;
  return fits ? std::optional(header) : std::nullopt;
}

std::string_view chars(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

}  // namespace

void OuterStateStore::hold(std::unique_lock<std::mutex>&) {
  manifest_ = make_state_manifest(version_, parameters_, momentum_);
  tree_hash_ = to_hex(manifest_.tree_hash());
}

void OuterStateStore::initialise(std::vector<float> parameters) {
  std::unique_lock lock(mutex_);
  version_ = OuterStep{0};
  parameters_ = std::move(parameters);
  momentum_.assign(parameters_.size(), 0.0f);
  hold(lock);
}

void OuterStateStore::replace(FetchedState state) {
  std::unique_lock lock(mutex_);
  version_ = state.version;
  parameters_ = std::move(state.parameters);
  momentum_ = std::move(state.momentum);
  hold(lock);
}

void OuterStateStore::apply(WireFormat wire, ByteView canonical, float learning_rate, float momentum) {
  std::unique_lock lock(mutex_);
  outer_nesterov(parameters_, momentum_, wire, canonical, OuterSgd{learning_rate, momentum});
  ++version_.value;
  hold(lock);
}

Status OuterStateStore::save(const std::filesystem::path& file) const {
  if (!holds_state()) return ok_status();
  std::string content = to_string(encode_header(version_, numel_));
  content.reserve(content.size() + parameters_.size() * 8 + tree_hash_.size());
  content += chars(parameters_);
  content += chars(momentum_);
  content += tree_hash_;
  return write_file_atomically(file, content, FileMode::kPrivate);
}

Status OuterStateStore::load(const std::filesystem::path& file) {
  ATOLL_ASSIGN_OR_RETURN(FetchedState state, read(file, numel_));
  replace(std::move(state));
  return ok_status();
}

Result<HeldState> OuterStateStore::peek(const std::filesystem::path& file) {
  ATOLL_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::open(file));
  const auto header = read_header(mapped.bytes());
  if (!header) return Error{ErrorCode::kCorrupt, fmt::format("{} is no whole checkpoint", file.string())};
  return HeldState{header->version, to_string(mapped.bytes().last(kHashBytes))};
}

Result<FetchedState> OuterStateStore::read(const std::filesystem::path& file, std::int64_t model_numel) {
  ATOLL_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::open(file));
  const Error corrupt{ErrorCode::kCorrupt,
                      fmt::format("{} is not a whole checkpoint of this model; it is left as it is", file.string())};
  const auto header = read_header(mapped.bytes());
  const auto count = static_cast<std::size_t>(model_numel);
  if (!header || header->numel != count) return corrupt;
  ByteReader reader(mapped.bytes().subspan(kHeaderBytes));
  FetchedState state;
  state.version = header->version;
  for (std::vector<float>* part : {&state.parameters, &state.momentum}) {
    const ByteView raw = reader.get_bytes(count * 4);
    part->resize(count);
    std::memcpy(part->data(), raw.data(), raw.size());
  }
  const std::string hash = to_string(reader.get_bytes(kHashBytes));
  if (to_hex(make_state_manifest(state.version, state.parameters, state.momentum).tree_hash()) != hash) return corrupt;
  return state;
}

Result<StateManifest> OuterStateStore::manifest() const {
  std::unique_lock lock(mutex_);
  if (!holds_state()) return Error{ErrorCode::kNotFound, "this island holds no outer state yet"};
  return manifest_;
}

Result<Bytes> OuterStateStore::copy_chunk(OuterStep version, std::uint64_t index) const {
  std::unique_lock lock(mutex_);
  if (!holds_state() || version != version_) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("outer step {} is not held here, but {}", version.value, version_.value)};
  }
  if (index >= manifest_.chunk_sha256.size()) return Error{ErrorCode::kInvalidArgument, "no such chunk"};
  const std::uint64_t begin = index * kStateChunkBytes;
  Bytes chunk(std::min<std::uint64_t>(kStateChunkBytes, manifest_.state_bytes - begin));
  // The state is parameters, then momentum; a chunk may span both.
  const std::uint64_t half = parameters_.size() * sizeof(float);
  const auto copy = [&](const std::vector<float>& part, std::uint64_t part_begin) {
    const std::uint64_t from = std::max(begin, part_begin);
    const std::uint64_t to = std::min(begin + chunk.size(), part_begin + half);
    if (from >= to) return;
    std::memcpy(chunk.data() + (from - begin), reinterpret_cast<const std::byte*>(part.data()) + (from - part_begin),
                to - from);
  };
  copy(parameters_, 0);
  copy(momentum_, half);
  return chunk;
}

Result<std::pair<OuterStep, std::vector<float>>> OuterStateStore::snapshot() const {
  std::unique_lock lock(mutex_);
  if (!holds_state())
    return Error{ErrorCode::kNotFound, "this island holds no outer state yet; try again after the first round"};
  return std::pair{version_, parameters_};
}

}  // namespace atl
