// The files on an island's disk, byte for byte: golden files, which tests/golden/disk/make.py makes from the stated
// layouts alone, and every damage to them.
#include <sys/stat.h>

#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "net/base/file.h"
#include "net/collective/canonical_digest.h"
#include "net/disk/checkpoint_directory.h"
#include "net/disk/commit_log.h"
#include "net/disk/inner_state_file.h"
#include "net/disk/kept_average_file.h"
#include "net/disk/snapshot.h"
#include "net/recovery/outer_state.h"
#include "tests/net/disk/golden_commit.h"

using namespace atl;
using namespace atl::test;

namespace {

// As make.py makes them.
std::vector<float> values(int count, int step, int modulus, float divisor) {
  std::vector<float> made;
  const int middle = modulus / 2;
  for (int i = 0; i < count; ++i) made.push_back(static_cast<float>(i * step % modulus - middle) / divisor);
  return made;
}

constexpr int kOuterNumel = 300, kInnerNumel = 120;
constexpr std::array kAllTrained{ParameterRange{0, kInnerNumel}};
constexpr std::array kUpperTrained{ParameterRange{10, 5}, ParameterRange{80, 40}};

FetchedState outer_state() { return {OuterStep{7}, values(kOuterNumel, 37, 101, 8), values(kOuterNumel, 53, 97, 64)}; }

InnerState inner_state(bool with_residual) {
  InnerState state;
  state.round = {.round = OuterStep{7}, .inner_steps = 20, .lease_first_sequence = 1ull << 40, .lease_sequences = 160};
  state.outer_hash = sha256_hex(as_bytes("outer"));
  state.inner_step = 11;
  state.loss_sum = 31.5;
  state.inner_seconds = 2.25;
  state.optimizer_steps = 151;
  state.parameters = values(kInnerNumel, 37, 101, 8);
  state.first_moment = values(kInnerNumel, 53, 97, 64);
  state.second_moment = values(kInnerNumel, 29, 89, 32);
  if (with_residual) state.residual = values(kInnerNumel, 41, 83, 256);
  return state;
}

Bytes average() {
  Bytes bytes;
  for (unsigned i = 0; i < 204; ++i) bytes.push_back(static_cast<std::byte>(7 * i + 3));
  return bytes;
}

std::filesystem::path golden(const char* name) { return std::filesystem::path(ATOLL_TEST_DATA_DIR) / "disk" / name; }

std::string content_of(const std::filesystem::path& file) {
  const auto content = read_file(file);
  return content.ok() ? *content : "cannot be read: " + content.error().message;
}

void put(const std::filesystem::path& file, std::string_view content) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
}

// `count` as a u64 at `offset`.
std::string with_count(std::string content, std::size_t offset, std::uint64_t count) {
  std::memcpy(content.data() + offset, &count, sizeof count);
  return content;
}

// The three binary formats, each with what reads all of it, verifies it and reads its header.
struct Format {
  const char* file;
  std::vector<std::size_t> counts;  // offsets of sizes in its header
  std::function<Status(const std::filesystem::path&)> read, verify, peek;
};

template <class T>
Status status_of(const Result<T>& result) {
  return result.ok() ? ok_status() : Status(result.error());
}

const std::vector<Format>& formats() {
  using Path = std::filesystem::path;
  static const std::string digest = to_hex(canonical_digest(average()));
  static const std::vector<Format> all = {
      {"outer.state",
       {16},
       [](const Path& file) { return status_of(verify_snapshot(file)); },
       [](const Path& file) { return status_of(verify_snapshot(file)); },
       [](const Path& file) { return status_of(peek_snapshot(file)); }},
      {"inner.state",
       {64, 72},
       [](const Path& file) { return status_of(load_inner_state(file, kInnerNumel, kAllTrained)); },
       [](const Path& file) { return status_of(verify_inner_state(file)); },
       [](const Path& file) { return status_of(peek_inner_state(file)); }},
      {"inner-v1.state",
       {64, 72},
       [](const Path& file) { return status_of(load_inner_state(file, kInnerNumel, kUpperTrained)); },
       [](const Path& file) { return status_of(verify_inner_state(file)); },
       [](const Path& file) { return status_of(peek_inner_state(file)); }},
      {"inner-without-residual.state",
       {64, 72},
       [](const Path& file) { return status_of(load_inner_state(file, kInnerNumel, kAllTrained)); },
       [](const Path& file) { return status_of(verify_inner_state(file)); },
       [](const Path& file) { return status_of(peek_inner_state(file)); }},
      {"average.kept",
       {20},
       [](const Path& file) { return status_of(load_average(file, OuterStep{7}, digest)); },
       [](const Path& file) { return status_of(verify_average(file)); },
       [](const Path& file) { return status_of(peek_average(file)); }},
  };
  return all;
}

}  // namespace

class DiskFilesTest : public QObject {
  Q_OBJECT

  QTemporaryDir directory_;
  std::filesystem::path path(const char* name) const {
    return std::filesystem::path(directory_.path().toStdString()) / name;
  }

  static void each_format() {
    QTest::addColumn<std::size_t>("format");
    for (std::size_t i = 0; i < formats().size(); ++i) QTest::newRow(formats()[i].file) << i;
  }

 private Q_SLOTS:
  void init() {
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path().toStdString())) {
      std::filesystem::remove_all(entry);
    }
  }

  // ---- golden files

  void an_outer_state_of_the_layout_before_is_read() {
    const FetchedState state = outer_state();
    const auto reader = SnapshotReader::open(golden("outer.state"));
    QVERIFY(reader.ok());
    std::vector<float> parameters(kOuterNumel), momentum(kOuterNumel);
    QVERIFY(reader->read(0, parameters, momentum).ok());
    QCOMPARE(parameters, state.parameters);
    QCOMPARE(momentum, state.momentum);
    for (const auto& info : {peek_snapshot(golden("outer.state")), verify_snapshot(golden("outer.state"))}) {
      QVERIFY(info.ok());
      QCOMPARE(info->state.outer_step, state.version);
      QCOMPARE(info->numel, std::uint64_t{kOuterNumel});
      QCOMPARE(info->state.state_hash,
               to_hex(make_state_manifest(state.version, state.parameters, state.momentum).tree_hash()));
    }
  }

  void interrupted_work_is_written_as_before_and_read_back_data() {
    QTest::addColumn<bool>("with_residual");
    QTest::newRow("with a residual") << true;
    QTest::newRow("without one") << false;
  }
  void interrupted_work_is_written_as_before_and_read_back() {
    QFETCH(const bool, with_residual);
    const InnerState state = inner_state(with_residual);
    const auto expected = golden(with_residual ? "inner.state" : "inner-without-residual.state");

    QVERIFY(save_inner_state(path("inner.state"), state).ok());

    QVERIFY(content_of(path("inner.state")) == content_of(expected));
    const auto read = load_inner_state(expected, kInnerNumel, kAllTrained);
    QVERIFY(read.ok());
    QVERIFY(read->belongs_to(state.round, state.outer_hash));
    QCOMPARE(read->inner_step, state.inner_step);
    QCOMPARE(read->loss_sum, state.loss_sum);
    QCOMPARE(read->inner_seconds, state.inner_seconds);
    QCOMPARE(read->optimizer_steps, state.optimizer_steps);
    QCOMPARE(read->parameters, state.parameters);
    QCOMPARE(read->first_moment, state.first_moment);
    QCOMPARE(read->second_moment, state.second_moment);
    QCOMPARE(read->residual, state.residual);
    for (const auto& info : {peek_inner_state(expected), verify_inner_state(expected)}) {
      QVERIFY(info.ok());
      QCOMPARE(info->work.round.round, state.round.round);
      QCOMPARE(info->work.outer_hash, state.outer_hash);
      QCOMPARE(info->numel, std::uint64_t{kInnerNumel});
      QCOMPARE(info->residual_numel, with_residual ? std::uint64_t{kInnerNumel} : 0);
    }
  }

  // Layout 1 has values of what is frozen, too.
  void of_interrupted_work_of_the_layout_before_what_is_trained_is_read() {
    const InnerState whole = inner_state(true);
    const auto trained_of = [](const std::vector<float>& values) {
      std::vector<float> trained(values.begin() + 10, values.begin() + 15);
      trained.insert(trained.end(), values.begin() + 80, values.end());
      return trained;
    };

    const auto read = load_inner_state(golden("inner-v1.state"), kInnerNumel, kUpperTrained);

    QVERIFY(read.ok());
    QVERIFY(read->belongs_to(whole.round, whole.outer_hash));
    QCOMPARE(read->parameters, trained_of(whole.parameters));
    QCOMPARE(read->first_moment, trained_of(whole.first_moment));
    QCOMPARE(read->second_moment, trained_of(whole.second_moment));
    QCOMPARE(read->residual, trained_of(whole.residual));
    QCOMPARE(*load_inner_state(golden("inner-v1.state"), kInnerNumel, kAllTrained)->parameters.rbegin(),
             whole.parameters.back());
  }

  void an_average_is_written_as_before_and_read_back() {
    const Bytes canonical = average();
    const std::string digest = to_hex(canonical_digest(canonical));

    QVERIFY(save_average(path("average.kept"), OuterStep{7}, WireFormat::kInt8Block, digest, canonical).ok());

    QVERIFY(content_of(path("average.kept")) == content_of(golden("average.kept")));
    const auto read = load_average(golden("average.kept"), OuterStep{7}, digest);
    QVERIFY(read.ok());
    QVERIFY(read->canonical == canonical && read->wire == WireFormat::kInt8Block && read->digest == digest);
    for (const auto& info : {peek_average(golden("average.kept")), verify_average(golden("average.kept"))}) {
      QVERIFY(info.ok());
      QCOMPARE(info->round, OuterStep{7});
      QCOMPARE(info->bytes, canonical.size());
      QCOMPARE(info->digest, digest);
    }
  }

  void commits_are_appended_as_before_and_the_newest_is_read_back() {
    QVERIFY(append_commit(path("commits.log"), golden_commit(6, 0)).ok());
    QVERIFY(append_commit(path("commits.log"), golden_commit(7, 1)).ok());

    QCOMPARE(QString::fromStdString(content_of(path("commits.log"))),
             QString::fromStdString(content_of(golden("commits.log"))));
    const auto newest = newest_kept_commit(golden("commits.log"));
    QVERIFY(newest.has_value());
    QCOMPARE(encode(*newest), encode(golden_commit(7, 1)));
  }

  void a_log_of_before_fragments_with_a_line_cut_short_gives_its_last_whole_commit() {
    const auto newest = newest_kept_commit(golden("commits-v3.log"));

    QVERIFY(newest.has_value());
    QCOMPARE(encode(*newest), encode(golden_commit(6, 0)));
    QVERIFY(commit_record(newest->commit) == commit_record(golden_commit(6, 0).commit));  // its signature still fits
  }

  void an_epoch_is_written_as_before_and_read_back() {
    const SignedEpoch epoch{5, "c2lnbmF0dXJl", "PEM of the hub"};

    QVERIFY(write_epoch(path("epoch.json"), epoch).ok());

    QCOMPARE(content_of(path("epoch.json")), content_of(golden("epoch.json")));
    const auto read = read_epoch(golden("epoch.json"));
    QVERIFY(read.ok());
    QCOMPARE(encode(*read), encode(epoch));
  }

  // ---- damage

  void a_file_cut_anywhere_is_refused_data() { each_format(); }
  void a_file_cut_anywhere_is_refused() {
    QFETCH(const std::size_t, format);
    const Format& tried = formats()[format];
    const std::string whole = content_of(golden(tried.file));
    for (std::size_t size = 0; size < whole.size(); ++size) {
      put(path("cut"), whole.substr(0, size));

      for (const auto& read : {tried.read, tried.verify, tried.peek}) {
        const Status status = read(path("cut"));
        QVERIFY2(!status.ok(), qPrintable(QString::number(size)));
        QCOMPARE(status.error().code, ErrorCode::kCorrupt);
      }
    }
    put(path("longer"), whole + '\0');
    QCOMPARE(tried.peek(path("longer")).error().code, ErrorCode::kCorrupt);
  }

  // No byte is without effect: what was flipped is refused, by who reads and by who verifies.
  void a_file_with_any_byte_flipped_is_refused_data() { each_format(); }
  void a_file_with_any_byte_flipped_is_refused() {
    QFETCH(const std::size_t, format);
    const Format& tried = formats()[format];
    std::string content = content_of(golden(tried.file));
    for (std::size_t at = 0; at < content.size(); ++at) {
      content[at] = static_cast<char>(content[at] ^ 1);
      put(path("flipped"), content);
      content[at] = static_cast<char>(content[at] ^ 1);

      const Status read = tried.read(path("flipped"));
      // Its wire format is not behind an average's digest, and the number beside it is another format's.
      if (std::string_view(tried.file) == "average.kept" && at == 16 && read.ok()) continue;
      QVERIFY2(!read.ok(), qPrintable(QString::number(at)));
      // An average of another round, or with another digest, is another average.
      QVERIFY(read.error().code == ErrorCode::kCorrupt || read.error().code == ErrorCode::kNotFound);
      if (std::string_view(tried.file) != "average.kept") {
        QCOMPARE(read.error().code, ErrorCode::kCorrupt);
        QCOMPARE(tried.verify(path("flipped")).error().code, ErrorCode::kCorrupt);
      }
    }
  }

  // Of an average's header only the round and the wire format are not behind its digest: the commit says both.
  void an_average_with_any_byte_of_its_values_flipped_fails_its_verification() {
    std::string content = content_of(golden("average.kept"));
    for (std::size_t at = 20; at < content.size(); ++at) {
      content[at] = static_cast<char>(content[at] ^ 1);
      put(path("flipped"), content);
      content[at] = static_cast<char>(content[at] ^ 1);

      QCOMPARE(verify_average(path("flipped")).error().code, ErrorCode::kCorrupt);
    }
  }

  void sizes_that_no_file_has_are_refused_before_room_is_made_data() {
    QTest::addColumn<std::size_t>("format");
    QTest::addColumn<quint64>("count");
    for (std::size_t i = 0; i < formats().size(); ++i) {
      for (const quint64 count :
           {quint64{1} << 40, quint64{1} << 61, quint64{1} << 62, quint64{1} << 63, ~quint64{0}}) {
        QTest::addRow("%s %llu", formats()[i].file, count) << i << count;
      }
    }
  }
  void sizes_that_no_file_has_are_refused_before_room_is_made() {
    QFETCH(const std::size_t, format);
    QFETCH(const quint64, count);
    const Format& tried = formats()[format];
    for (const std::size_t at : tried.counts) {
      put(path("huge"), with_count(content_of(golden(tried.file)), at, count));

      for (const auto& read : {tried.read, tried.verify, tried.peek}) {
        QCOMPARE(read(path("huge")).error().code, ErrorCode::kCorrupt);
      }
    }
  }

  void a_file_of_a_model_of_another_size_is_refused() {
    for (const std::uint64_t wrong : {0, 1, kInnerNumel - 1, kInnerNumel + 1}) {
      QCOMPARE(load_inner_state(golden("inner-v1.state"), wrong, kUpperTrained).error().code, ErrorCode::kCorrupt);
      const ParameterRange other{0, static_cast<std::int64_t>(wrong)};
      QCOMPARE(load_inner_state(golden("inner.state"), kInnerNumel, {&other, 1}).error().code, ErrorCode::kCorrupt);
    }
  }

  void an_average_of_another_round_or_digest_is_not_found() {
    const std::string digest = to_hex(canonical_digest(average()));
    QCOMPARE(load_average(golden("average.kept"), OuterStep{8}, digest).error().code, ErrorCode::kNotFound);
    QCOMPARE(load_average(golden("average.kept"), OuterStep{7}, std::string(64, 'a')).error().code,
             ErrorCode::kNotFound);
  }

  // ---- other things of that name

  void what_is_no_file_is_not_waited_for_data() { each_format(); }
  void what_is_no_file_is_not_waited_for() {
    QFETCH(const std::size_t, format);
    const Format& tried = formats()[format];
    QCOMPARE(::mkfifo(path("pipe").c_str(), 0600), 0);

    for (const auto& read : {tried.read, tried.verify, tried.peek}) {
      QCOMPARE(read(path("pipe")).error().code, ErrorCode::kCorrupt);
      QCOMPARE(read(path("")).error().code, ErrorCode::kCorrupt);  // a directory
      QCOMPARE(read(path("missing")).error().code, ErrorCode::kNotFound);
    }
  }

  void parts_that_do_not_fit_each_other_are_not_written() {
    InnerState work = inner_state(true);
    work.residual.pop_back();
    QVERIFY(!save_inner_state(path("x"), work).ok());
    QVERIFY(!save_average(path("x"), OuterStep{7}, WireFormat::kFp32, "", average()).ok());

    QVERIFY(!std::filesystem::exists(path("x")));
  }

  void what_is_written_is_its_owners_alone() {
    QVERIFY(save_inner_state(path("b"), inner_state(true)).ok());
    QVERIFY(save_average(path("c"), OuterStep{7}, WireFormat::kFp32, std::string(64, 'a'), average()).ok());
    QVERIFY(append_commit(path("d"), golden_commit(1, 0)).ok());
    QVERIFY(write_epoch(path("e"), {5, "", ""}).ok());

    for (const char* name : {"b", "c", "d", "e"}) {
      struct stat info {};
      QCOMPARE(::stat(path(name).c_str(), &info), 0);
      QCOMPARE(info.st_mode & 07777, mode_t{0600});
    }
  }

  // ---- the directory

  void the_names_of_outer_states_are_told_from_others() {
    QCOMPARE(kept_state_name(OuterStep{12}), std::string("outer.12.state"));
    for (const char* name : {"outer.state", "outer.12.state", "outer.12.2.state"}) {
      QVERIFY(is_outer_state_name(name));
      put(path(name), "");
    }
    for (const char* name :
         {"inner.state", "outer.state.new.abc", "outer.12state", "config.json", "xouter.state", kWrittenSnapshot}) {
      QVERIFY2(!is_outer_state_name(name), name);
      put(path(name), "");
    }

    const auto files = outer_state_files(directory_.path().toStdString());

    QVERIFY(files.ok());
    QCOMPARE(files->size(), std::size_t{3});
    QVERIFY(outer_state_files(path("missing")).ok() && outer_state_files(path("missing"))->empty());
  }
};

QTEST_GUILESS_MAIN(DiskFilesTest)
#include "disk_files_test.moc"
