// The round log: what an island keeps of each committed round whose outer step it took. A kept outer state and the
// rounds logged since give back every state between them and the newest, to the last bit, without anybody's help. Two
// files a round in the directory `rounds` of the checkpoint; the one definition of their names and of the second's
// bytes. Private to the owner.
//
//   round.N.average  the average of round N (kept_average_file.h): the file that was written before the island said
//                    that it holds it, which its commit moves here
//   round.N.record   what makes an outer step of it; there only once the average is:
//
//   offset  bytes  what
//        0      8  "ATLROUND"
//        8      4  u32, version of this layout: 1
//       12      4  u32, fragments of the run
//       16     64  tree hash of the outer state on which the step was taken, lower-case hex
//       80     64  tree hash of the one that it made, lower-case hex
//      144         the hub's signed record, as JSON (encode(SignedCommit), net/wire/mesh.h): outer learning rate and
//                  momentum, the average's digest
//      end     32  SHA-256 of all before it
//
// A round that a rollback undid is overwritten by the one that is committed in its place, and not removed before: who
// orders a way back may be a hub that knows less than this disk. One thread at a time may change it; what is read
// meanwhile is whole, or not there. Block on the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "net/base/result.h"
#include "net/disk/kept_average_file.h"
#include "net/wire/mesh.h"

namespace atl {

struct LoggedRound {
  SignedCommit record;
  std::string from, made;  // tree hashes of the outer states before and after, hex
  std::uint32_t fragments = 1;
  std::uint64_t average_bytes = 0;  // known of one that was read

  OuterStep round() const { return record.commit.round; }
  HeldState before() const { return {round(), from}; }
  HeldState after() const { return {OuterStep{round().value + 1}, made}; }
};

using LoggedRounds = std::map<OuterStep, LoggedRound>;

Status write_logged_round(const std::filesystem::path& file, const LoggedRound& round);  // replaced atomically
// kNotFound when there is none, kCorrupt when it is not what was written. Without average_bytes.
Result<LoggedRound> read_logged_round(const std::filesystem::path& file);

class RoundLog {
 public:
  explicit RoundLog(const std::filesystem::path& checkpoint_directory);

  // Logged when it returns. `kept`: the file of the round's average, which is moved; where it is of another, the
  // average is written from the caller's memory, unless it is here already.
  Status keep(const LoggedRound& round, const std::filesystem::path& kept, WireFormat wire, ByteView canonical) const;
  // The same of an average that was written beside its place, as it came.
  Result<AverageWriter> begin_average(OuterStep round, WireFormat wire, std::uint64_t bytes) const;
  Status keep(const LoggedRound& round, AverageWriter average) const;
  // One of those that rounds() has; kNotFound.
  Result<LoggedRound> round(OuterStep number) const;
  // Those that can be taken again, as the files say of themselves: record and average are there, and of one digest.
  LoggedRounds rounds() const;
  std::filesystem::path average_file(OuterStep round) const;
  // Verified; kNotFound and kCorrupt as load_average() says.
  Result<KeptAverage> average(OuterStep round, const std::string& digest) const;

  // Of the rounds from this one on, whole or not; the record of each before its average.
  std::vector<std::filesystem::path> files_from(OuterStep round) const;

  void remove(OuterStep round) const;  // one that cannot be taken again
  // What no kept state needs: rounds before the oldest, then, oldest first, those before the newest whose averages are
  // too many bytes together with those after it; but none of `needed`.
  void prune(OuterStep oldest_state, OuterStep newest_state, std::uint64_t most_bytes,
             const std::set<OuterStep>& needed = {}) const;

 private:
  std::filesystem::path record_file(OuterStep round) const;
  std::set<OuterStep> numbers() const;

  const std::filesystem::path directory_;
};

}  // namespace atl
