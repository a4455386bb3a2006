// The round log of an island: golden bytes, what becomes of a round's average when it is committed, what damage and
// files of others do, and what is kept for how long.
#include <sys/stat.h>

#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "net/base/encoding.h"
#include "net/base/file.h"
#include "net/collective/canonical_digest.h"
#include "net/disk/round_log.h"
#include "tests/net/disk/golden_commit.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr std::size_t kAverageBytes = 1'000;

// Different for each round and epoch.
Bytes average_of(std::uint32_t round, std::uint64_t epoch) {
  Bytes bytes;
  for (unsigned i = 0; i < kAverageBytes; ++i) bytes.push_back(static_cast<std::byte>(3 * i + 7 * round + 31 * epoch));
  return bytes;
}

LoggedRound round_of(std::uint32_t number, std::uint64_t epoch = 5) {
  LoggedRound round{.record = {},
                    .from = sha256_hex(as_bytes("state " + std::to_string(number))),
                    .made = sha256_hex(as_bytes("state " + std::to_string(number + 1)))};
  HubCommit& commit = round.record.commit;
  commit.round = OuterStep{number};
  commit.attempt = Attempt{1};
  commit.digest = to_hex(canonical_digest(average_of(number, epoch)));
  commit.outer_learning_rate = 0.7;
  commit.outer_momentum = 0.9;
  commit.epoch = epoch;
  commit.signature = "c2lnbmF0dXJl";
  round.record.hub_certificate = "PEM";
  return round;
}

// As tests/golden/disk/make.py makes it.
LoggedRound golden_round() {
  return {.record = golden_commit(7, 1),
          .from = sha256_hex(as_bytes("outer")),
          .made = sha256_hex(as_bytes("outer after")),
          .fragments = 2};
}

void put(const std::filesystem::path& file, std::string_view content) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
}

ino_t inode_of(const std::filesystem::path& file) {
  struct stat info {};
  return ::stat(file.c_str(), &info) == 0 ? info.st_ino : 0;
}

}  // namespace

class RoundLogTest : public QObject {
  Q_OBJECT

  std::unique_ptr<QTemporaryDir> directory_;
  std::filesystem::path home() const { return directory_->path().toStdString(); }
  std::filesystem::path rounds() const { return home() / "rounds"; }
  std::filesystem::path kept() const { return home() / "average.kept"; }
  RoundLog log() const { return RoundLog(home()); }

  void write_average(std::uint32_t round, std::uint64_t epoch = 5) const {
    const Bytes canonical = average_of(round, epoch);
    QVERIFY(
        save_average(kept(), OuterStep{round}, WireFormat::kInt8Block, to_hex(canonical_digest(canonical)), canonical)
            .ok());
  }
  void commit(std::uint32_t round, std::uint64_t epoch = 5) const {
    write_average(round, epoch);
    QVERIFY(log().keep(round_of(round, epoch), kept(), WireFormat::kInt8Block, average_of(round, epoch)).ok());
  }
  std::vector<std::uint32_t> logged() const {
    std::vector<std::uint32_t> numbers;
    for (const auto& [number, round] : log().rounds()) numbers.push_back(number.value);
    return numbers;
  }

 private Q_SLOTS:
  void init() { directory_ = std::make_unique<QTemporaryDir>(); }

  void a_record_is_written_as_stated_and_read_back() {
    const auto golden = std::filesystem::path(ATOLL_TEST_DATA_DIR) / "disk" / "round.record";

    QVERIFY(write_logged_round(home() / "written", golden_round()).ok());

    QVERIFY(read_file(home() / "written").value() == read_file(golden).value());
    const auto read = read_logged_round(golden);
    QVERIFY(read.ok());
    QCOMPARE(encode(read->record), encode(golden_round().record));
    QCOMPARE(read->from, golden_round().from);
    QCOMPARE(read->made, golden_round().made);
    QCOMPARE(read->fragments, 2u);
  }

  void a_record_cut_or_flipped_anywhere_is_refused() {
    QVERIFY(write_logged_round(home() / "whole", golden_round()).ok());
    std::string content = read_file(home() / "whole").value();
    for (std::size_t at = 0; at < content.size(); ++at) {
      put(home() / "cut", content.substr(0, at));
      QCOMPARE(read_logged_round(home() / "cut").error().code, ErrorCode::kCorrupt);
      content[at] = static_cast<char>(content[at] ^ 1);
      put(home() / "flipped", content);
      content[at] = static_cast<char>(content[at] ^ 1);
      QCOMPARE(read_logged_round(home() / "flipped").error().code, ErrorCode::kCorrupt);
    }
    put(home() / "longer", content + '\0');
    QCOMPARE(read_logged_round(home() / "longer").error().code, ErrorCode::kCorrupt);
    QCOMPARE(read_logged_round(home() / "missing").error().code, ErrorCode::kNotFound);
    QCOMPARE(read_logged_round(home()).error().code, ErrorCode::kCorrupt);  // a directory
  }

  // The bytes that were flushed before the island said that it has them: they are not written twice.
  void the_average_of_a_committed_round_is_moved() {
    write_average(3);
    const ino_t before = inode_of(kept());

    QVERIFY(log().keep(round_of(3), kept(), WireFormat::kInt8Block, {}).ok());

    QVERIFY(!std::filesystem::exists(kept()));
    QCOMPARE(inode_of(rounds() / "round.3.average"), before);
    const LoggedRounds found = log().rounds();
    QCOMPARE(found.size(), std::size_t{1});
    const LoggedRound& round = found.at(OuterStep{3});
    QCOMPARE(round.average_bytes, std::uint64_t{kAverageBytes});
    QCOMPARE(round.before(), (HeldState{OuterStep{3}, round_of(3).from}));
    QCOMPARE(round.after(), (HeldState{OuterStep{4}, round_of(3).made}));
    const auto average = log().average(OuterStep{3}, round.record.commit.digest);
    QVERIFY(average.ok());
    QVERIFY(average->canonical == average_of(3, 5));
    struct stat info {};
    QCOMPARE(::stat(rounds().c_str(), &info), 0);
    QCOMPARE(info.st_mode & 07777, mode_t{0700});
  }

  // The disk did not take it before, or the process that held it died after it was moved.
  void an_average_that_is_not_there_is_written_when_its_round_is_logged() {
    write_average(2);  // of the round before

    QVERIFY(log().keep(round_of(3), kept(), WireFormat::kInt8Block, average_of(3, 5)).ok());

    QCOMPARE(logged(), std::vector<std::uint32_t>{3});
    QVERIFY(std::filesystem::exists(kept()));
    const ino_t before = inode_of(rounds() / "round.3.average");
    QVERIFY(log().keep(round_of(3), kept(), WireFormat::kInt8Block, average_of(3, 5)).ok());
    QCOMPARE(inode_of(rounds() / "round.3.average"), before);
  }

  void what_is_torn_or_of_others_is_no_round_and_costs_no_other() {
    for (std::uint32_t round = 1; round <= 8; ++round) commit(round);
    std::filesystem::resize_file(rounds() / "round.2.average", kAverageBytes / 2);
    std::filesystem::resize_file(rounds() / "round.3.record", 100);
    std::filesystem::remove(rounds() / "round.4.average");
    std::filesystem::remove(rounds() / "round.5.record");
    std::filesystem::copy_file(rounds() / "round.7.record", rounds() / "round.6.record",
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::copy_file(rounds() / "round.7.record", rounds() / "round.9.record");
    std::filesystem::copy_file(rounds() / "round.7.average", rounds() / "round.9.average");
    for (const char* name : {"round.x.record", "round..record", "round.10.record.new", "round.99999999999.record",
                             "round.-1.record", "10.record", "round.010.record"}) {
      put(rounds() / name, "not of us");
    }
    std::filesystem::create_directory(rounds() / "round.11.record");

    QCOMPARE(logged(), (std::vector<std::uint32_t>{1, 7, 8}));
    QCOMPARE(log().average(OuterStep{2}, round_of(2).record.commit.digest).error().code, ErrorCode::kCorrupt);
    QCOMPARE(log().average(OuterStep{9}, round_of(7).record.commit.digest).error().code, ErrorCode::kNotFound);
  }

  void an_altered_average_is_not_believed() {
    commit(1);
    std::fstream file(rounds() / "round.1.average", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(500);
    file.put('\x7f');
    file.close();

    QCOMPARE(logged(), std::vector<std::uint32_t>{1});  // by what it says of itself
    QCOMPARE(log().average(OuterStep{1}, round_of(1).record.commit.digest).error().code, ErrorCode::kCorrupt);
  }

  void a_round_that_is_committed_again_replaces_the_one_that_was_undone() {
    commit(4, /*epoch=*/5);

    commit(4, /*epoch=*/6);

    QCOMPARE(log().rounds().at(OuterStep{4}).record.commit.epoch, std::uint64_t{6});
    QVERIFY(log().average(OuterStep{4}, round_of(4, 6).record.commit.digest).ok());
    QCOMPARE(log().average(OuterStep{4}, round_of(4, 5).record.commit.digest).error().code, ErrorCode::kNotFound);
  }

  // A crash between the two files of a round that is committed again.
  void the_average_of_one_epoch_with_the_record_of_another_is_no_round() {
    commit(4, /*epoch=*/5);
    write_average(4, /*epoch=*/6);
    std::filesystem::rename(kept(), rounds() / "round.4.average");

    QVERIFY(logged().empty());
  }

  void what_no_kept_state_needs_is_removed() {
    for (std::uint32_t round = 1; round <= 9; ++round) commit(round);
    std::filesystem::resize_file(rounds() / "round.2.record", 10);

    log().prune(OuterStep{4}, OuterStep{8}, 1'000'000);

    QCOMPARE(logged(), (std::vector<std::uint32_t>{4, 5, 6, 7, 8, 9}));
    QVERIFY(!std::filesystem::exists(rounds() / "round.2.record"));
    QVERIFY(!std::filesystem::exists(rounds() / "round.2.average"));
  }

  // Whatever they take: nothing else leads from there to what was committed.
  void rounds_since_the_newest_state_stay_and_of_those_before_as_many_as_there_is_room_for() {
    for (std::uint32_t round = 1; round <= 9; ++round) commit(round);

    log().prune(OuterStep{1}, OuterStep{5}, 7 * kAverageBytes);
    QCOMPARE(logged(), (std::vector<std::uint32_t>{3, 4, 5, 6, 7, 8, 9}));
    log().prune(OuterStep{1}, OuterStep{5}, 2 * kAverageBytes);

    QCOMPARE(logged(), (std::vector<std::uint32_t>{5, 6, 7, 8, 9}));
  }

  void a_disk_that_takes_nothing_is_told_of() {
    put(rounds(), "a file where the directory is to be");

    QVERIFY(!log().keep(round_of(1), kept(), WireFormat::kInt8Block, average_of(1, 5)).ok());
    QVERIFY(logged().empty());
  }

  void a_round_without_its_states_is_not_logged() {
    LoggedRound round = round_of(1);
    round.from.clear();

    QVERIFY(!log().keep(round, kept(), WireFormat::kInt8Block, average_of(1, 5)).ok());
    QVERIFY(logged().empty());
  }
};

QTEST_GUILESS_MAIN(RoundLogTest)
#include "round_log_test.moc"
