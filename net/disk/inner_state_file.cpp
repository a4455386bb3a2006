#include "net/disk/inner_state_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <span>

#include "net/base/json_reader.h"
#include "net/base/sha256.h"
#include "net/disk/stored_file.h"

namespace atl {
namespace {

constexpr std::string_view kInnerStateMagic = "ATLINNER";
constexpr std::uint32_t kInnerStateVersion = 2;
constexpr std::uint32_t kInnerStateVersionOfAll = 1;
constexpr std::uint64_t kInnerStateHeaderBytes = 144;
constexpr std::uint64_t kMaxSteps = INT64_MAX;

Error not_whole_work(const std::filesystem::path& path) {
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} is not the whole work of an interrupted round of this model", path.string())};
}

Bytes encode_header(const InnerState& state) {
  ByteWriter header;
  begin_stored(header, kInnerStateMagic, kInnerStateVersion);
  header.put(state.round.round.value);
  header.put(state.round.inner_steps);
  header.put(state.inner_step);
  header.put(state.round.lease_first_sequence);
  header.put(state.round.lease_sequences);
  header.put(std::bit_cast<std::uint64_t>(state.loss_sum));
  header.put(std::bit_cast<std::uint64_t>(state.inner_seconds));
  header.put(static_cast<std::uint64_t>(state.optimizer_steps));
  header.put(static_cast<std::uint64_t>(state.parameters.size()));
  header.put(static_cast<std::uint64_t>(state.residual.size()));
  header.put_bytes(as_bytes(state.outer_hash));
  return header.take();
}

Result<InnerStateInfo> decode_header(const StoredFile& file, ByteView head) {
  ByteReader header(head), of_before(head);
  InnerStateInfo info;
  info.has_frozen = is_stored(of_before, kInnerStateMagic, kInnerStateVersionOfAll);
  const bool known = is_stored(header, kInnerStateMagic, kInnerStateVersion) || info.has_frozen;
  InnerState& work = info.work;
  work.round.round.value = header.get<std::uint32_t>();
  work.round.inner_steps = header.get<std::uint32_t>();
  work.inner_step = header.get<std::uint32_t>();
  work.round.lease_first_sequence = header.get<std::uint64_t>();
  work.round.lease_sequences = header.get<std::uint64_t>();
  work.loss_sum = std::bit_cast<double>(header.get<std::uint64_t>());
  work.inner_seconds = std::bit_cast<double>(header.get<std::uint64_t>());
  const auto steps = header.get<std::uint64_t>();
  work.optimizer_steps = static_cast<std::int64_t>(steps);
  info.numel = header.get<std::uint64_t>();
  info.residual_numel = header.get<std::uint64_t>();
  work.outer_hash = to_string(header.get_bytes(kStoredHashChars));
  const std::uint64_t most = file.size() / sizeof(float);
  const bool fits =
      known && header.ok() && steps <= kMaxSteps && info.numel <= most && info.residual_numel <= most &&
      (info.residual_numel == 0 || info.residual_numel == info.numel) &&
      file.size() == kInnerStateHeaderBytes + (3 * info.numel + info.residual_numel) * sizeof(float) + sizeof(Digest) &&
      is_sha256_hex(work.outer_hash);
  if (!fits) return not_whole_work(file.path());
  return info;
}

std::uint64_t numel_of(std::span<const ParameterRange> ranges) {
  std::uint64_t numel = 0;
  for (const ParameterRange& range : ranges) numel += static_cast<std::uint64_t>(range.numel);
  return numel;
}

// Of values of the whole model those of the ranges, end to end.
void keep_ranges(std::vector<float>& values, std::span<const ParameterRange> ranges) {
  auto to = values.begin();
  for (const ParameterRange& range : ranges) {
    to = std::copy_n(values.begin() + range.offset, range.numel, to);  // never behind where it comes from
  }
  values.erase(to, values.end());
}

// An open file, of which the header was read and hashed; then all of it, in its order.
class InnerStateReader {
 public:
  static Result<InnerStateReader> open(const std::filesystem::path& path) {
    ATOLL_ASSIGN_OR_RETURN(StoredFile file, StoredFile::open(path));
    ATOLL_ASSIGN_OR_RETURN(const Bytes head, file.head(kInnerStateHeaderBytes));
    ATOLL_ASSIGN_OR_RETURN(InnerStateInfo info, decode_header(file, head));
    InnerStateReader reader(std::move(file), std::move(info));
    reader.hash_->update(head);
    return reader;
  }

  InnerStateInfo& info() { return info_; }

  Status read(std::span<float> values) {
    while (!values.empty()) {
      const auto piece = values.first(std::min(values.size(), kStoredPieceBytes / sizeof(float)));
      ATOLL_RETURN_IF_ERROR(file_.read_at(offset_, std::as_writable_bytes(piece)));
      hash_->update(std::as_bytes(piece));
      offset_ += piece.size_bytes();
      values = values.subspan(piece.size());
    }
    return ok_status();
  }
  // After all values.
  Status finish() {
    Digest said;
    ATOLL_RETURN_IF_ERROR(file_.read_at(offset_, said));
    return hash_->finish() == said ? ok_status() : Status(not_whole_work(file_.path()));
  }

 private:
  InnerStateReader(StoredFile file, InnerStateInfo info)
      : file_(std::move(file)), info_(std::move(info)), hash_(std::make_unique<Sha256>()) {}

  StoredFile file_;
  InnerStateInfo info_;
  std::unique_ptr<Sha256> hash_;
  std::uint64_t offset_ = kInnerStateHeaderBytes;
};

}  // namespace

bool InnerState::belongs_to(const HubRoundBegin& begun, const std::string& outer_hash_now) const {
  return begun.round == round.round && begun.inner_steps == round.inner_steps &&
         begun.lease_first_sequence == round.lease_first_sequence && begun.lease_sequences == round.lease_sequences &&
         inner_step < begun.inner_steps && outer_hash == outer_hash_now;
}

Status save_inner_state(const std::filesystem::path& path, const InnerState& state) {
  const std::size_t numel = state.parameters.size();
  if (state.first_moment.size() != numel || state.second_moment.size() != numel ||
      (!state.residual.empty() && state.residual.size() != numel) || !is_sha256_hex(state.outer_hash)) {
    return Error{ErrorCode::kInternal,
                 fmt::format("work whose parts do not fit each other is not written to {}", path.string())};
  }
  ATOLL_ASSIGN_OR_RETURN(HashedFile file, HashedFile::create(path));
  ATOLL_RETURN_IF_ERROR(file.write(encode_header(state)));
  for (const auto* values : {&state.parameters, &state.first_moment, &state.second_moment, &state.residual}) {
    ATOLL_RETURN_IF_ERROR(file.write(std::as_bytes(std::span(*values))));
  }
  return file.finish();
}

Result<InnerStateInfo> peek_inner_state(const std::filesystem::path& path) {
  ATOLL_ASSIGN_OR_RETURN(InnerStateReader reader, InnerStateReader::open(path));
  return std::move(reader.info());
}

Result<InnerStateInfo> verify_inner_state(const std::filesystem::path& path) {
  ATOLL_ASSIGN_OR_RETURN(InnerStateReader reader, InnerStateReader::open(path));
  std::vector<float> piece;
  for (std::uint64_t left = 3 * reader.info().numel + reader.info().residual_numel; left > 0; left -= piece.size()) {
    piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(left, kStoredPieceBytes / sizeof(float))));
    ATOLL_RETURN_IF_ERROR(reader.read(piece));
  }
  ATOLL_RETURN_IF_ERROR(reader.finish());
  return std::move(reader.info());
}

Result<InnerState> load_inner_state(const std::filesystem::path& path, std::uint64_t numel,
                                    std::span<const ParameterRange> trained) {
  ATOLL_ASSIGN_OR_RETURN(InnerStateReader reader, InnerStateReader::open(path));
  const InnerStateInfo& info = reader.info();
  if (info.numel != (info.has_frozen ? numel : numel_of(trained))) return not_whole_work(path);
  const std::uint64_t residual_numel = info.residual_numel;
  const bool has_frozen = info.has_frozen;
  const auto held = static_cast<std::size_t>(info.numel);
  InnerState state = std::move(reader.info().work);
  for (auto* values : {&state.parameters, &state.first_moment, &state.second_moment, &state.residual}) {
    values->resize(values == &state.residual ? static_cast<std::size_t>(residual_numel) : held);
    ATOLL_RETURN_IF_ERROR(reader.read(*values));
    if (has_frozen && !values->empty()) keep_ranges(*values, trained);
  }
  ATOLL_RETURN_IF_ERROR(reader.finish());
  return state;
}

}  // namespace atl
