#include "net/disk/round_log.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

#include "net/base/file.h"
#include "net/base/json_reader.h"
#include "net/base/new_file.h"
#include "net/base/sha256.h"
#include "net/disk/checkpoint_directory.h"
#include "net/disk/stored_file.h"

namespace atl {
namespace {

constexpr std::string_view kRoundMagic = "ATLROUND";
constexpr std::uint32_t kRoundVersion = 1;
constexpr std::size_t kRoundHeaderBytes = 144;
constexpr std::uint64_t kMostRoundBytes = 4u
                                          << 20;  // a record is no longer than a message of the mesh; escapes included
constexpr std::string_view kRoundPrefix = "round.", kAverage = ".average", kRecord = ".record";

Error not_whole_record(const std::filesystem::path& path) {
  return Error{ErrorCode::kCorrupt, fmt::format("{} is not a whole record of a round", path.string())};
}

// The N of round.N.average or round.N.record.
std::optional<OuterStep> round_of_name(std::string_view name) {
  if (!name.starts_with(kRoundPrefix)) return std::nullopt;
  name.remove_prefix(kRoundPrefix.size());
  for (const std::string_view suffix : {kAverage, kRecord}) {
    if (!name.ends_with(suffix)) continue;
    const std::string_view digits = name.substr(0, name.size() - suffix.size());
    OuterStep round;
    const auto [end, failed] = std::from_chars(digits.begin(), digits.end(), round.value);
    if (failed == std::errc() && end == digits.end()) return round;
  }
  return std::nullopt;
}

}  // namespace

Status write_logged_round(const std::filesystem::path& path, const LoggedRound& round) {
  if (!is_sha256_hex(round.from) || !is_sha256_hex(round.made)) {
    return Error{ErrorCode::kInternal, fmt::format("a round without its states is not written to {}", path.string())};
  }
  ByteWriter header;
  begin_stored(header, kRoundMagic, kRoundVersion);
  header.put(round.fragments);
  header.put_bytes(as_bytes(round.from));
  header.put_bytes(as_bytes(round.made));
  ATOLL_ASSIGN_OR_RETURN(HashedFile file, HashedFile::create(path));
  ATOLL_RETURN_IF_ERROR(file.write(header.bytes()));
  ATOLL_RETURN_IF_ERROR(file.write(as_bytes(encode(round.record))));
  return file.finish();
}

Result<LoggedRound> read_logged_round(const std::filesystem::path& path) {
  ATOLL_ASSIGN_OR_RETURN(const StoredFile file, StoredFile::open(path));
  if (file.size() < kRoundHeaderBytes + sizeof(Digest) || file.size() > kMostRoundBytes) return not_whole_record(path);
  ATOLL_ASSIGN_OR_RETURN(const Bytes all, file.head(static_cast<std::size_t>(file.size())));
  const ByteView hashed = ByteView(all).first(all.size() - sizeof(Digest));
  const Digest digest = sha256(hashed);
  if (!std::ranges::equal(digest, ByteView(all).last(sizeof(Digest)))) return not_whole_record(path);
  ByteReader header(hashed);
  LoggedRound round;
  const bool known = is_stored(header, kRoundMagic, kRoundVersion);
  round.fragments = header.get<std::uint32_t>();
  round.from = to_string(header.get_bytes(kStoredHashChars));
  round.made = to_string(header.get_bytes(kStoredHashChars));
  const bool fits = known && header.ok() && round.fragments >= 1 && round.fragments <= kMaxFragments &&
                    is_sha256_hex(round.from) && is_sha256_hex(round.made);
  if (!fits) return not_whole_record(path);
  Result<SignedCommit> record = decode_signed_commit(to_string(hashed.subspan(kRoundHeaderBytes)));
  if (!record.ok() || record->commit.fragment.value != record->commit.round.value % round.fragments) {
    return not_whole_record(path);
  }
  round.record = std::move(*record);
  return round;
}

RoundLog::RoundLog(const std::filesystem::path& checkpoint_directory)
    : directory_(checkpoint_directory / kRoundsDirectory) {}

std::filesystem::path RoundLog::average_file(OuterStep round) const {
  return directory_ / fmt::format("{}{}{}", kRoundPrefix, round.value, kAverage);
}

std::filesystem::path RoundLog::record_file(OuterStep round) const {
  return directory_ / fmt::format("{}{}{}", kRoundPrefix, round.value, kRecord);
}

// The average first: a record says that all is there. What an earlier epoch left under the same name has another digest
// and is replaced.
Status RoundLog::keep(const LoggedRound& round, const std::filesystem::path& kept, WireFormat wire,
                      ByteView canonical) const {
  const OuterStep number = round.round();
  const std::string& digest = round.record.commit.digest;
  const auto is_it = [&](const std::filesystem::path& file) {
    const Result<KeptAverageInfo> info = peek_average(file);
    return info.ok() && info->round == number && info->digest == digest;
  };
  ATOLL_RETURN_IF_ERROR(make_directories(directory_, FileMode::kPrivate));
  if (is_it(kept)) {
    ATOLL_RETURN_IF_ERROR(rename_and_flush(kept, average_file(number)));
  } else if (!is_it(average_file(number))) {
    ATOLL_RETURN_IF_ERROR(save_average(average_file(number), number, wire, digest, canonical));
  }
  return write_logged_round(record_file(number), round);
}

Result<AverageWriter> RoundLog::begin_average(OuterStep round, WireFormat wire, std::uint64_t bytes) const {
  ATOLL_RETURN_IF_ERROR(make_directories(directory_, FileMode::kPrivate));
  return AverageWriter::create(average_file(round), round, wire, bytes);
}

Status RoundLog::keep(const LoggedRound& round, AverageWriter average) const {
  ATOLL_RETURN_IF_ERROR(average.finish(round.record.commit.digest));
  return write_logged_round(record_file(round.round()), round);
}

Result<LoggedRound> RoundLog::round(OuterStep number) const {
  Result<LoggedRound> round = read_logged_round(record_file(number));
  const Result<KeptAverageInfo> average = peek_average(average_file(number));
  const bool is_whole = round.ok() && round->round() == number && average.ok() && average->round == number &&
                        average->digest == round->record.commit.digest;
  if (!is_whole) return Error{ErrorCode::kNotFound, fmt::format("round {} is not logged", number.value)};
  round->average_bytes = average->bytes;
  return round;
}

LoggedRounds RoundLog::rounds() const {
  LoggedRounds found;
  for (const OuterStep number : numbers()) {
    Result<LoggedRound> round = this->round(number);
    if (round.ok()) found.emplace(number, std::move(*round));
  }
  return found;
}

Result<KeptAverage> RoundLog::average(OuterStep round, const std::string& digest) const {
  return load_average(average_file(round), round, digest);
}

std::vector<std::filesystem::path> RoundLog::files_from(OuterStep round) const {
  std::vector<std::filesystem::path> files;
  for (const OuterStep number : numbers()) {
    if (number < round) continue;
    for (const auto& file : {record_file(number), average_file(number)}) {
      std::error_code failed;
      if (std::filesystem::exists(file, failed)) files.push_back(file);
    }
  }
  return files;
}

// The record first, as it came last.
void RoundLog::remove(OuterStep round) const {
  for (const auto& file : {record_file(round), average_file(round)}) {
    std::error_code failed;
    std::filesystem::remove(file, failed);
    if (failed) spdlog::warn("round_log file={} error=\"{}\"", file.string(), failed.message());
  }
}

void RoundLog::prune(OuterStep oldest_state, OuterStep newest_state, std::uint64_t most_bytes,
                     const std::set<OuterStep>& needed) const {
  for (const OuterStep number : numbers()) {
    if (number < oldest_state && !needed.contains(number)) remove(number);
  }
  const LoggedRounds logged = rounds();
  std::uint64_t bytes = 0;
  for (const auto& [number, round] : logged) bytes += round.average_bytes;
  for (const auto& [number, round] : logged) {
    if (bytes <= most_bytes || number >= newest_state) return;
    if (needed.contains(number)) continue;
    remove(number);
    bytes -= round.average_bytes;
  }
}

// By the names of their files, whole or not.
std::set<OuterStep> RoundLog::numbers() const {
  std::set<OuterStep> found;
  std::error_code failed;
  std::filesystem::directory_iterator entries(directory_, failed);
  for (; !failed && entries != std::filesystem::directory_iterator(); entries.increment(failed)) {
    if (const auto number = round_of_name(entries->path().filename().string())) found.insert(*number);
  }
  return found;
}

}  // namespace atl
