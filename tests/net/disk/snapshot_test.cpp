// Snapshots on an island's disk: the bytes of their files, what is left of one that was being written when its process
// died, and every kind of damage.
#include <sys/stat.h>

#include <QTemporaryDir>
#include <QtTest>
#include <fstream>
#include <latch>
#include <set>
#include <thread>

#include "net/base/file.h"
#include "net/disk/checkpoint_directory.h"
#include "net/disk/kept_states.h"
#include "net/disk/snapshot.h"
#include "net/recovery/outer_state.h"

using namespace atl;

namespace {

constexpr std::uint64_t kSmall = 300;  // of the golden files, in one chunk
constexpr std::uint64_t kNumel = 2 * kStateChunkNumel + kSmall;

// As tests/golden/disk/make.py makes them.
std::vector<float> values(int count, int step, int modulus, float divisor) {
  std::vector<float> made;
  const int middle = modulus / 2;
  for (int i = 0; i < count; ++i) made.push_back(static_cast<float>(i * step % modulus - middle) / divisor);
  return made;
}

Bytes golden_chunk() {
  std::vector<float> chunk = values(kSmall, 37, 101, 8);
  const std::vector<float> momentum = values(kSmall, 53, 97, 64);
  chunk.insert(chunk.end(), momentum.begin(), momentum.end());
  const ByteView bytes = std::as_bytes(std::span(chunk));
  return {bytes.begin(), bytes.end()};
}

std::filesystem::path golden(const char* name) {
  return std::filesystem::path(ATOLL_TEST_DATA_DIR) / "disk" / "snapshot" / name;
}

std::string content_of(const std::filesystem::path& file) {
  const auto content = read_file(file);
  return content.ok() ? *content : "cannot be read: " + content.error().message;
}

void put(const std::filesystem::path& file, std::string_view content) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
}

void flip_byte(const std::filesystem::path& path, std::streamoff at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 1));
}

// Chunk `index` of a model of three chunks, the last one short, as it is after `step` outer steps.
Bytes chunk(std::uint64_t index, std::uint32_t step) {
  const std::uint64_t numel = std::min(kStateChunkNumel, kNumel - index * kStateChunkNumel);
  std::vector<float> made(2 * numel);
  for (std::size_t i = 0; i < made.size(); ++i) {
    made[i] = static_cast<float>((i * 7 + index * 13 + step * 1001) % 8191) / 8;
  }
  const ByteView bytes = std::as_bytes(std::span(made));
  return {bytes.begin(), bytes.end()};
}

StoredChunk stored(std::uint64_t index, std::uint32_t step) { return {OuterStep{step}, sha256(chunk(index, step))}; }

HeldState state_at(std::uint32_t step) {
  StateManifest manifest{OuterStep{step}, 2 * sizeof(float) * kNumel, {}};
  for (std::uint64_t i = 0; i < 3; ++i) manifest.chunk_sha256.push_back(stored(i, step).sha256);
  return {OuterStep{step}, to_hex(manifest.tree_hash())};
}

std::string hash() { return std::string(64, 'a'); }

}  // namespace

class SnapshotTest : public QObject {
  Q_OBJECT

  std::unique_ptr<QTemporaryDir> home_;
  std::filesystem::path directory() const { return home_->path().toStdString(); }
  std::filesystem::path writing() const { return directory() / kWrittenSnapshot; }
  std::filesystem::path place(std::uint32_t step) const { return directory() / kept_state_name(OuterStep{step}); }

  static SnapshotWriter open(const std::filesystem::path& path, std::uint64_t numel = kNumel) {
    auto writer = SnapshotWriter::open(path, numel);
    if (!writer.ok()) qFatal("%s", writer.error().message.c_str());
    return std::move(*writer);
  }
  static void must(const Status& status) {
    if (!status.ok()) qFatal("%s", status.error().message.c_str());
  }
  // One that is whole, all of it of that outer step.
  void write(std::uint32_t step) const {
    SnapshotWriter writer = open(writing());
    for (std::uint64_t i = 0; i < 3; ++i) must(writer.put(i, stored(i, step), chunk(i, step)));
    must(std::move(writer).finish(state_at(step), place(step)));
  }

 private Q_SLOTS:
  // One that was fetched and one that was written: which is the newer is told by their numbers alone.
  void those_that_are_whole_at_the_same_time_have_different_numbers() {
    constexpr std::size_t kAtOnce = 8;
    const Bytes bytes = golden_chunk();
    std::vector<SnapshotWriter> writers;
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      writers.push_back(open(directory() / ("writing." + std::to_string(i)), kSmall));
      QVERIFY(writers.back().put(0, {OuterStep{7}, sha256(bytes)}, bytes).ok());
    }
    std::vector<Status> placed(kAtOnce, ok_status());
    {
      std::latch all(kAtOnce);
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < kAtOnce; ++i) {
        threads.emplace_back([&, i] {
          all.arrive_and_wait();
          placed[i] = std::move(writers[i]).finish({OuterStep{7}, hash()}, place(7));
        });
      }
    }
    std::set<std::uint64_t> numbers;
    for (const KeptState& kept : kept_states(directory())) numbers.insert(kept.info.number);
    for (const Status& status : placed) QVERIFY2(status.ok(), status.ok() ? "" : status.error().message.c_str());
    QCOMPARE(numbers.size(), kAtOnce);
  }

  void init() { home_ = std::make_unique<QTemporaryDir>(); }

  // ---- golden files

  void a_snapshot_is_written_as_before_and_read_back() {
    const Bytes bytes = golden_chunk();
    const StoredChunk only{OuterStep{6}, sha256(bytes)};
    SnapshotWriter writer = open(writing(), kSmall);
    must(writer.put(0, only, bytes));
    must(writer.flush());
    QVERIFY(content_of(writing() / "written") == content_of(golden("written")));
    const HeldState state{OuterStep{7}, sha256_hex(as_bytes("outer"))};

    must(std::move(writer).finish(state, place(7)));

    QVERIFY(content_of(place(7) / "chunks.00000") == content_of(golden("chunks.00000")));
    auto info = peek_snapshot(place(7));
    QVERIFY(info.ok());
    QVERIFY(info->saved_at > 1'700'000'000);  // by the clock
    info->saved_at = 1'763'725'000;
    must(write_snapshot_index(place(7), *info));
    QVERIFY(content_of(place(7) / "index") == content_of(golden("index")));
  }

  void a_golden_snapshot_is_read() {
    const auto reader = SnapshotReader::open(golden(""));
    QVERIFY2(reader.ok(), reader.ok() ? "" : reader.error().message.c_str());
    const SnapshotInfo& info = reader->info();
    QCOMPARE(info.state, (HeldState{OuterStep{7}, sha256_hex(as_bytes("outer"))}));
    QCOMPARE(info.numel, kSmall);
    QCOMPARE(info.number, std::uint64_t{2});
    QCOMPARE(info.saved_at, std::uint64_t{1'763'725'000});
    QCOMPARE(info.oldest_chunk(), OuterStep{6});
    QCOMPARE(info.newest_chunk(), OuterStep{6});
    std::vector<float> parameters(kSmall), momentum(kSmall);
    const auto digest = reader->read(0, parameters, momentum);
    QVERIFY(digest.ok());
    QCOMPARE(*digest, sha256(golden_chunk()));
    QCOMPARE(parameters, values(kSmall, 37, 101, 8));
    QCOMPARE(momentum, values(kSmall, 53, 97, 64));
    QCOMPARE(reader->read(1, parameters, momentum).error().code, ErrorCode::kInvalidArgument);
  }

  void an_outer_state_in_a_single_file_is_read_as_a_snapshot() {
    const auto file = golden("").parent_path().parent_path() / "outer.state";

    const auto info = verify_snapshot(file);

    QVERIFY2(info.ok(), info.ok() ? "" : info.error().message.c_str());
    QCOMPARE(info->state.outer_step, OuterStep{7});
    QCOMPARE(info->numel, kSmall);
    QCOMPARE(info->oldest_chunk(), OuterStep{7});
    const auto reader = SnapshotReader::open(file);
    std::vector<float> parameters(kSmall), momentum(kSmall);
    QVERIFY(reader->read(0, parameters, momentum).ok());
    QCOMPARE(parameters, values(kSmall, 37, 101, 8));
    QCOMPARE(momentum, values(kSmall, 53, 97, 64));
  }

  // ---- what is written

  void chunks_come_in_any_order_and_of_different_outer_steps() {
    SnapshotWriter writer = open(writing());
    must(writer.put(2, stored(2, 7), chunk(2, 7)));
    must(writer.put(0, stored(0, 9), chunk(0, 9)));
    must(writer.put(1, stored(1, 8), chunk(1, 8)));

    must(std::move(writer).finish(state_at(10), place(10)));

    const auto info = verify_snapshot(place(10));
    QVERIFY(info.ok());
    QCOMPARE(info->state, state_at(10));
    QCOMPARE(info->chunks, (std::vector{stored(0, 9), stored(1, 8), stored(2, 7)}));
    QCOMPARE(info->oldest_chunk(), OuterStep{7});
    QCOMPARE(info->newest_chunk(), OuterStep{9});
    QVERIFY(!std::filesystem::exists(writing()));
    QVERIFY(!std::filesystem::exists(place(10) / "written"));
  }

  void one_of_a_name_that_is_taken_lies_beside_it_and_has_a_higher_number() {
    write(7);
    write(7);
    write(6);

    const std::vector<KeptState> kept = kept_states(directory());

    QCOMPARE(kept.size(), std::size_t{3});
    QCOMPARE(kept[0].path.filename().string(), std::string("outer.7.2.state"));
    QCOMPARE(kept[1].path.filename().string(), std::string("outer.7.state"));
    QVERIFY(kept[0].info.number > kept[1].info.number);
    QCOMPARE(newest_of(kept)->state(), state_at(6));
  }

  void what_is_written_is_its_owners_alone() {
    write(7);
    for (const char* name : {"", "index", "chunks.00000"}) {
      struct stat info {};
      QCOMPARE(::stat((place(7) / name).c_str(), &info), 0);
      QCOMPARE(info.st_mode & 0777, mode_t{*name == '\0' ? 0700u : 0600u});
    }
  }

  void what_does_not_lead_to_its_state_takes_no_place() {
    SnapshotWriter writer = open(writing());
    must(writer.put(0, stored(0, 7), chunk(0, 7)));
    must(writer.put(1, stored(1, 7), chunk(1, 7)));
    QVERIFY(!std::move(writer).finish(state_at(7), place(7)).ok());  // one is missing
    SnapshotWriter again = open(writing());
    must(again.put(0, stored(0, 7), chunk(0, 7)));
    must(again.put(1, stored(1, 8), chunk(1, 8)));
    must(again.put(2, stored(2, 7), chunk(2, 7)));
    QVERIFY(!std::move(again).finish(state_at(7), place(7)).ok());  // one is of a later state

    QVERIFY(!std::filesystem::exists(place(7)));
    QVERIFY(!again.put(3, stored(2, 7), chunk(2, 7)).ok());
    QVERIFY(!again.put(0, stored(2, 7), chunk(2, 7)).ok());
    QVERIFY(!SnapshotWriter::open(directory() / "none", 0).ok());
  }

  // ---- a process that dies

  // As kill -9 leaves it: nothing is done on the way out.
  void what_was_flushed_is_there_for_the_next_process_and_the_rest_is_not() {
    {
      SnapshotWriter writer = open(writing());
      must(writer.put(2, stored(2, 7), chunk(2, 7)));
      must(writer.put(0, stored(0, 8), chunk(0, 8)));
      must(writer.flush());
      must(writer.put(1, stored(1, 8), chunk(1, 8)));
    }

    SnapshotWriter again = open(writing());

    QVERIFY(again.chunks()[0] == stored(0, 8));
    QVERIFY(!again.chunks()[1]);
    QVERIFY(again.chunks()[2] == stored(2, 7));
    QCOMPARE(*again.read(0), chunk(0, 8));
    QCOMPARE(again.read(1).error().code, ErrorCode::kNotFound);
    must(again.put(1, stored(1, 9), chunk(1, 9)));
    must(std::move(again).finish(state_at(9), place(9)));
    QVERIFY(verify_snapshot(place(9)).ok());
  }

  void a_journal_cut_anywhere_gives_what_was_written_before() {
    {
      SnapshotWriter writer = open(writing());
      for (std::uint64_t i = 0; i < 3; ++i) {
        must(writer.put(i, stored(i, 7), chunk(i, 7)));
        must(writer.flush());
      }
    }
    const std::string whole = content_of(writing() / "written");
    QCOMPARE(whole.size(), std::size_t{28 + 3 * 48});
    for (std::size_t size = whole.size(); size-- > 28;) {
      put(writing() / "written", whole.substr(0, size) + (size % 2 == 0 ? "" : std::string(whole.size() - size, '\0')));

      SnapshotWriter again = open(writing());

      const std::size_t left = (size - 28) / 48;
      for (std::size_t i = 0; i < 3; ++i) QCOMPARE(again.chunks()[i].has_value(), i < left);
    }
    // What is put now is behind what was whole, not behind the torn record.
    put(writing() / "written", whole.substr(0, whole.size() - 5));
    {
      SnapshotWriter again = open(writing());
      must(again.put(2, stored(2, 8), chunk(2, 8)));
      must(again.flush());
    }
    QVERIFY(open(writing()).chunks()[2] == stored(2, 8));
    // A head that is none: all is begun anew.
    put(writing() / "written", whole.substr(0, 27));
    const SnapshotWriter anew = open(writing());
    for (const auto& there : anew.chunks()) QVERIFY(!there);
    QVERIFY(!std::filesystem::exists(writing() / "chunks.00000"));
  }

  void a_record_with_any_byte_flipped_is_the_end_of_the_journal() {
    {
      SnapshotWriter writer = open(writing());
      for (std::uint64_t i = 0; i < 3; ++i) {
        must(writer.put(i, stored(i, 7), chunk(i, 7)));
        must(writer.flush());
      }
    }
    std::string content = content_of(writing() / "written");
    for (std::size_t at = 28 + 48; at < 28 + 2 * 48; ++at) {
      content[at] = static_cast<char>(content[at] ^ 1);
      put(writing() / "written", content);
      content[at] = static_cast<char>(content[at] ^ 1);

      const SnapshotWriter again = open(writing());

      QVERIFY(again.chunks()[0] && !again.chunks()[1] && !again.chunks()[2]);
    }
  }

  void one_of_another_model_is_begun_anew() {
    {
      SnapshotWriter writer = open(writing());
      must(writer.put(0, stored(0, 7), chunk(0, 7)));
      must(writer.flush());
    }

    const SnapshotWriter again = open(writing(), kNumel + 1);

    QVERIFY(std::ranges::none_of(again.chunks(), [](const auto& there) { return there.has_value(); }));
  }

  // The process died after the new bytes, and before the journal said so.
  void a_chunk_that_was_being_replaced_is_missing() {
    {
      SnapshotWriter writer = open(writing());
      for (std::uint64_t i = 0; i < 3; ++i) must(writer.put(i, stored(i, 7), chunk(i, 7)));
      must(writer.flush());
      must(writer.put(1, stored(1, 8), chunk(1, 8)));
    }
    SnapshotWriter again = open(writing());

    QCOMPARE(again.read(1).error().code, ErrorCode::kCorrupt);
    QVERIFY(!again.chunks()[1]);
    QCOMPARE(*again.read(0), chunk(0, 7));
  }

  void one_that_takes_its_place_is_read_through_first_where_another_process_wrote_it() {
    {
      SnapshotWriter writer = open(writing());
      for (std::uint64_t i = 0; i < 3; ++i) must(writer.put(i, stored(i, 7), chunk(i, 7)));
      must(writer.flush());
    }
    flip_byte(writing() / "chunks.00000", static_cast<std::streamoff>(kStateChunkBytes + 5));

    const Status finished = open(writing()).finish(state_at(7), place(7));

    QCOMPARE(finished.error().code, ErrorCode::kCorrupt);
    QVERIFY(!std::filesystem::exists(place(7)));
    SnapshotWriter again = open(writing());
    must(again.put(1, stored(1, 7), chunk(1, 7)));
    must(std::move(again).finish(state_at(7), place(7)));
    QVERIFY(verify_snapshot(place(7)).ok());
  }

  void the_last_of_the_same_chunk_counts() {
    {
      SnapshotWriter writer = open(writing());
      must(writer.put(2, stored(2, 7), chunk(2, 7)));
      must(writer.flush());
      must(writer.put(2, stored(2, 8), chunk(2, 8)));
      must(writer.put(2, stored(2, 9), chunk(2, 9)));
      must(writer.flush());
    }

    SnapshotWriter again = open(writing());

    QVERIFY(again.chunks()[2] == stored(2, 9));
    QCOMPARE(*again.read(2), chunk(2, 9));
  }

  // An index says that all is there.
  void one_that_is_gone_on_with_has_no_index_until_it_is_whole_again() {
    write(7);
    SnapshotWriter writer = open(writing());
    for (std::uint64_t i = 0; i < 3; ++i) must(writer.put(i, stored(i, 8), chunk(i, 8)));
    must(writer.flush());
    must(write_snapshot_index(writing(), *peek_snapshot(place(7))));

    const SnapshotWriter again = open(writing());

    QVERIFY(!std::filesystem::exists(writing() / "index"));
    QVERIFY(std::ranges::all_of(again.chunks(), [](const auto& there) { return there.has_value(); }));
  }

  // ---- damage

  void an_index_cut_anywhere_or_with_any_byte_flipped_is_refused() {
    std::filesystem::copy(golden(""), place(7), std::filesystem::copy_options::recursive);
    const std::string whole = content_of(place(7) / "index");
    for (std::size_t size = 0; size < whole.size(); ++size) {
      put(place(7) / "index", whole.substr(0, size));
      QCOMPARE(peek_snapshot(place(7)).error().code, ErrorCode::kCorrupt);
    }
    put(place(7) / "index", whole + '\0');
    QCOMPARE(peek_snapshot(place(7)).error().code, ErrorCode::kCorrupt);
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ 1);
      put(place(7) / "index", flipped);
      QCOMPARE(peek_snapshot(place(7)).error().code, ErrorCode::kCorrupt);
    }
  }

  void a_chunk_file_of_another_length_or_none_is_refused() {
    std::filesystem::copy(golden(""), place(7), std::filesystem::copy_options::recursive);
    const auto file = place(7) / "chunks.00000";
    for (const std::uintmax_t size : {0u, 1u, 8u * 300 - 1, 8u * 300 + 1}) {
      std::filesystem::resize_file(file, size);
      QCOMPARE(peek_snapshot(place(7)).error().code, ErrorCode::kCorrupt);
    }
    std::filesystem::remove(file);
    QCOMPARE(peek_snapshot(place(7)).error().code, ErrorCode::kCorrupt);
    std::filesystem::remove(place(7) / "index");
    QCOMPARE(peek_snapshot(place(7)).error().code, ErrorCode::kCorrupt);
    QCOMPARE(peek_snapshot(place(8)).error().code, ErrorCode::kNotFound);
  }

  void any_byte_of_a_chunk_that_is_flipped_is_found_and_the_chunk_named() {
    write(7);
    flip_byte(place(7) / "chunks.00000", static_cast<std::streamoff>(2 * kStateChunkBytes + 100));

    const auto verified = verify_snapshot(place(7));

    QCOMPARE(verified.error().code, ErrorCode::kCorrupt);
    QVERIFY2(verified.error().message.find("chunk 2") != std::string::npos, verified.error().message.c_str());
    const auto reader = SnapshotReader::open(place(7));
    std::vector<float> parameters(kStateChunkNumel), momentum(kStateChunkNumel);
    QVERIFY(reader->read(1, parameters, momentum).ok());
    QVERIFY(!reader->read(2, std::span(parameters).first(kSmall), std::span(momentum).first(kSmall)).ok());
  }

  void whole_chunks_that_are_not_of_the_state_are_no_state() {
    SnapshotWriter writer = open(writing());
    for (std::uint64_t i = 0; i < 3; ++i) must(writer.put(i, stored(i, 7), chunk(i, 7)));
    must(std::move(writer).finish({OuterStep{7}, hash()}, place(7)));

    QCOMPARE(verify_snapshot(place(7)).error().code, ErrorCode::kCorrupt);
  }

  void what_is_neither_file_nor_directory_is_not_waited_for() {
    QCOMPARE(::mkfifo(place(7).c_str(), 0600), 0);

    QCOMPARE(peek_snapshot(place(7)).error().code, ErrorCode::kCorrupt);
    QVERIFY(kept_states(directory()).empty());
  }

  void one_that_is_removed_while_it_is_read_is_read_to_its_end() {
    write(7);
    const auto reader = SnapshotReader::open(place(7));
    std::filesystem::remove_all(place(7));

    std::vector<float> parameters(kStateChunkNumel), momentum(kStateChunkNumel);

    QVERIFY(reader->read(0, parameters, momentum).ok());
  }
};

QTEST_GUILESS_MAIN(SnapshotTest)
#include "snapshot_test.moc"
