#include "trainer/island/inner_state.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "net/base/new_file.h"
#include "net/base/sha256.h"

namespace atl {
namespace {

// All little-endian: magic, format version, round, steps of the round, steps taken, lease (first, count), sum of
// losses, seconds, optimiser steps, numel, numel of the residual, hash of the outer state in hex; then parameters,
// first and second moments, residual, all fp32; then the SHA-256 of all of that.
constexpr std::string_view kMagic = "ATLINNER";
constexpr std::uint32_t kFormatVersion = 1;
constexpr std::size_t kHashBytes = 64;

// Writes and hashes, so that a large model is not copied once more for it.
class HashedFile {
 public:
  explicit HashedFile(NewFile file) : file_(std::move(file)) {}

  Status write(ByteView bytes) {
    hash_.update(bytes);
    return file_.write(bytes);
  }
  Status finish() {
    const Digest digest = hash_.finish();
    ATOLL_RETURN_IF_ERROR(file_.write(digest));
    return file_.take_place();
  }

 private:
  NewFile file_;
  Sha256 hash_;
};

Bytes encode_header(const InnerState& state) {
  ByteWriter writer;
  writer.put_bytes(as_bytes(kMagic));
  writer.put(kFormatVersion);
  writer.put(state.round.round.value);
  writer.put(state.round.inner_steps);
  writer.put(state.inner_step);
  writer.put(state.round.lease_first_sequence);
  writer.put(state.round.lease_sequences);
  writer.put(std::bit_cast<std::uint64_t>(state.loss_sum));
  writer.put(std::bit_cast<std::uint64_t>(state.inner_seconds));
  writer.put(static_cast<std::uint64_t>(state.optimizer_steps));
  writer.put(static_cast<std::uint64_t>(state.parameters.size()));
  writer.put(static_cast<std::uint64_t>(state.residual.size()));
  writer.put_bytes(as_bytes(state.outer_hash));
  return writer.take();
}

}  // namespace

bool InnerState::belongs_to(const HubRoundBegin& begun, const std::string& outer_hash_now) const {
  return begun.round == round.round && begun.inner_steps == round.inner_steps &&
         begun.lease_first_sequence == round.lease_first_sequence && begun.lease_sequences == round.lease_sequences &&
         inner_step < begun.inner_steps && outer_hash == outer_hash_now;
}

Status save_inner_state(const std::filesystem::path& path, const InnerState& state) {
  ATOLL_ASSIGN_OR_RETURN(NewFile created, NewFile::create(path, FileMode::kPrivate));
  HashedFile file(std::move(created));
  ATOLL_RETURN_IF_ERROR(file.write(encode_header(state)));
  for (const auto* values : {&state.parameters, &state.first_moment, &state.second_moment, &state.residual}) {
    ATOLL_RETURN_IF_ERROR(file.write(std::as_bytes(std::span(*values))));
  }
  return file.finish();
}

Result<InnerState> load_inner_state(const std::filesystem::path& file, std::uint64_t numel) {
  ATOLL_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::open(file));
  const Error corrupt{ErrorCode::kCorrupt,
                      fmt::format("{} is not the whole work of an interrupted round of this model", file.string())};
  const ByteView bytes = mapped.bytes();
  if (bytes.size() < sizeof(Digest)) return corrupt;
  const ByteView content = bytes.first(bytes.size() - sizeof(Digest));
  ByteReader reader(content);
  const bool magic_fits = to_string(reader.get_bytes(kMagic.size())) == kMagic;
  const auto version = reader.get<std::uint32_t>();
  InnerState state;
  state.round.round.value = reader.get<std::uint32_t>();
  state.round.inner_steps = reader.get<std::uint32_t>();
  state.inner_step = reader.get<std::uint32_t>();
  state.round.lease_first_sequence = reader.get<std::uint64_t>();
  state.round.lease_sequences = reader.get<std::uint64_t>();
  state.loss_sum = std::bit_cast<double>(reader.get<std::uint64_t>());
  state.inner_seconds = std::bit_cast<double>(reader.get<std::uint64_t>());
  state.optimizer_steps = static_cast<std::int64_t>(reader.get<std::uint64_t>());
  const auto count = reader.get<std::uint64_t>();
  const auto residual_count = reader.get<std::uint64_t>();
  state.outer_hash = to_string(reader.get_bytes(kHashBytes));
  if (!reader.ok() || !magic_fits || version != kFormatVersion || count != numel) return corrupt;
  if (residual_count != 0 && residual_count != numel) return corrupt;
  for (auto* values : {&state.parameters, &state.first_moment, &state.second_moment, &state.residual}) {
    const std::uint64_t size = values == &state.residual ? residual_count : numel;
    const ByteView raw = reader.get_bytes(size * sizeof(float));
    if (!reader.ok()) return corrupt;
    values->resize(size);
    if (size > 0) std::memcpy(values->data(), raw.data(), raw.size());
  }
  const Digest digest = sha256(content);
  if (!reader.at_end() || std::memcmp(digest.data(), bytes.data() + content.size(), digest.size()) != 0) return corrupt;
  return state;
}

}  // namespace atl
