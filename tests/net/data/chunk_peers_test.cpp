// What islands say to each other of a run's data, who is asked about a chunk, and which mirrors an owner allows.
#include "net/data/chunk_peers.h"

#include <QtTest/QTest>
#include <map>

#include "net/data/holder_book.h"
#include "net/data/mirror_policy.h"

using namespace atl;

namespace {

std::vector<IslandId> islands(int count) {
  std::vector<IslandId> made;
  for (int i = 0; i < count; ++i) made.push_back(IslandId{"isl-" + std::to_string(i)});
  return made;
}

}  // namespace

class ChunkPeersTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_target_is_written_as_ever_and_read_back_data();
  void a_target_is_written_as_ever_and_read_back();
  void what_is_no_target_is_none_data();
  void what_is_no_target_is_none();
  void holders_are_written_as_ever_and_read_back();
  void a_list_that_is_none_is_refused_data();
  void a_list_that_is_none_is_refused();
  void every_island_is_asked_about_its_share();
  void a_newcomer_is_the_home_of_its_own_share_and_who_was_is_the_second();
  void who_asked_has_it();
  void of_an_island_what_it_asked_for_last_is_remembered();
  void a_policy_allows_what_it_says_data();
  void a_policy_allows_what_it_says();
};

void ChunkPeersTest::a_target_is_written_as_ever_and_read_back_data() {
  QTest::addColumn<quint32>("tree");
  QTest::addColumn<quint64>("chunk");
  QTest::addColumn<bool>("holders");
  QTest::addColumn<QString>("text");
  QTest::newRow("a chunk") << 0u << quint64{0} << false << "/data/0/0";
  QTest::newRow("of 4 TB") << 127u << quint64{3'814'697} << false << "/data/127/3814697";
  QTest::newRow("who has it") << 1u << quint64{7} << true << "/data/1/7/holders";
  QTest::newRow("the last") << UINT32_MAX << quint64{UINT64_MAX} << true
                            << "/data/4294967295/18446744073709551615/holders";
}

void ChunkPeersTest::a_target_is_written_as_ever_and_read_back() {
  QFETCH(const quint32, tree);
  QFETCH(const quint64, chunk);
  QFETCH(const bool, holders);
  QFETCH(const QString, text);

  QCOMPARE(to_target({{tree, chunk}, holders}), text.toStdString());
  const auto read = parse_data_target(text.toStdString());
  QVERIFY(read.has_value());
  QVERIFY(read->id == (ChunkId{tree, chunk}) && read->asks_for_holders == holders);
}

void ChunkPeersTest::what_is_no_target_is_none_data() {
  QTest::addColumn<QString>("text");
  for (const char* text : {"", "/data/", "/data/1", "/data/1/", "/data//1", "/data/1/x", "/data/01/1", "/data/1/-1",
                           "/data/1/1/", "/data/1/1/holder", "/data/1/1/holders/", "/data/4294967296/1", "/data/1/1?",
                           "/data/1/99999999999999999999", "/state/1/1", "/data/../1/1"}) {
    QTest::newRow(*text == '\0' ? "nothing" : text) << text;
  }
}

void ChunkPeersTest::what_is_no_target_is_none() {
  QFETCH(const QString, text);
  QVERIFY(!parse_data_target(text.toStdString()));
}

void ChunkPeersTest::holders_are_written_as_ever_and_read_back() {
  const std::vector<IslandId> two = islands(2);
  QCOMPARE(encode_holders(two), std::string("isl-0\nisl-1\n"));
  QVERIFY(decode_holders("isl-0\nisl-1\n").value() == two);
  QVERIFY(decode_holders("").value().empty());
  // More are there than are told.
  QCOMPARE(decode_holders(encode_holders(islands(50))).value().size(), kMaxHolders);
}

void ChunkPeersTest::a_list_that_is_none_is_refused_data() {
  QTest::addColumn<QString>("text");
  QTest::newRow("cut short") << "isl-0\nisl-1";
  QTest::newRow("no name") << "isl-0\n\n";
  QTest::newRow("a name that is none") << "isl 0\n";
  QTest::newRow("a path") << "../key\n";
  QTest::newRow("too many") << QString("a\n").repeated(9);
  QTest::newRow("too long") << QString("a").repeated(65) + "\n";
  QTest::newRow("endless") << QString("isl-0\n").repeated(100'000);
}

void ChunkPeersTest::a_list_that_is_none_is_refused() {
  QFETCH(const QString, text);
  const auto read = decode_holders(text.toStdString());
  QVERIFY(!read.ok());
  QCOMPARE(read.error().code, ErrorCode::kProtocol);
}

void ChunkPeersTest::every_island_is_asked_about_its_share() {
  std::map<IslandId, int> homes;
  for (std::uint64_t chunk = 0; chunk < 1400; ++chunk) ++homes[homes_of({0, chunk}, islands(14)).front()];
  QCOMPARE(homes.size(), std::size_t{14});
  for (const auto& [island, count] : homes) QVERIFY2(count > 50 && count < 150, std::to_string(count).c_str());
  // The same for all, in whichever order they know each other.
  std::vector<IslandId> reversed = islands(14);
  std::ranges::reverse(reversed);
  QVERIFY(homes_of({3, 5}, reversed) == homes_of({3, 5}, islands(14)));
}

void ChunkPeersTest::a_newcomer_is_the_home_of_its_own_share_and_who_was_is_the_second() {
  int moved = 0;
  for (std::uint64_t chunk = 0; chunk < 1000; ++chunk) {
    const auto before = homes_of({0, chunk}, islands(9)), after = homes_of({0, chunk}, islands(10));
    if (after.front() == before.front()) continue;
    ++moved;
    QCOMPARE(after.front().value, std::string("isl-9"));
    QVERIFY(after[1] == before.front());
  }
  QVERIFY(moved > 50 && moved < 150);
}

void ChunkPeersTest::who_asked_has_it() {
  HolderBook book;
  const std::vector<IslandId> all = islands(12);
  for (const IslandId& island : all) book.note(island, {0, 1});
  book.note(all[0], {0, 2});

  QVERIFY(book.holders({0, 2}, all[1]) == std::vector{all[0]});
  QVERIFY(book.holders({0, 2}, all[0]).empty());  // it asks itself
  QVERIFY(book.holders({1, 2}, all[1]).empty());
  QCOMPARE(book.holders({0, 1}, all[0]).size(), kMaxHolders);
  std::map<IslandId, int> first;
  for (int i = 0; i < 22; ++i) ++first[book.holders({0, 1}, all[0]).front()];
  QCOMPARE(first.size(), std::size_t{11});  // no one serves all
  book.forget(all[0], {0, 2});
  QVERIFY(book.holders({0, 2}, all[1]).empty());
}

void ChunkPeersTest::of_an_island_what_it_asked_for_last_is_remembered() {
  HolderBook book;
  const IslandId greedy{"isl-greedy"}, modest{"isl-modest"}, asker{"isl-asker"};
  book.note(modest, {0, 5});
  for (std::uint64_t i = 0; i < 10 * HolderBook::kMostOfIsland; ++i) book.note(greedy, {1, i});

  QVERIFY(book.holders({1, 0}, asker).empty());
  QVERIFY(book.holders({1, 10 * HolderBook::kMostOfIsland - 1}, asker) == std::vector{greedy});
  QVERIFY(book.holders({0, 5}, asker) == std::vector{modest});  // nobody pushes out what others asked for
}

void ChunkPeersTest::a_policy_allows_what_it_says_data() {
  QTest::addColumn<QString>("policy");
  QTest::addColumn<QStringList>("allowed");
  QTest::newRow("none") << "none" << QStringList{};
  QTest::newRow("https") << "https" << QStringList{"https://example.org/a", "s3://bucket/a"};
  QTest::newRow("web") << "web" << QStringList{"https://example.org/a", "s3://bucket/a", "http://example.org/a"};
  QTest::newRow("all") << "all"
                       << QStringList{"https://example.org/a", "s3://bucket/a", "http://example.org/a", "/mnt/a"};
}

void ChunkPeersTest::a_policy_allows_what_it_says() {
  QFETCH(const QString, policy);
  QFETCH(const QStringList, allowed);
  const MirrorPolicy parsed = parse_mirror_policy(policy.toStdString()).value();
  for (const char* mirror : {"https://example.org/a", "s3://bucket/a", "http://example.org/a", "/mnt/a"}) {
    const Status found = check_allowed(parsed, mirror);
    QCOMPARE(found.ok(), allowed.contains(mirror));
    if (found.ok()) continue;
    QCOMPARE(found.error().code, ErrorCode::kPermissionDenied);
    QVERIFY(found.error().message.find("atoll config set island.data_mirrors ") != std::string::npos);
  }
  QCOMPARE(parse_mirror_policy("file").error().code, ErrorCode::kInvalidArgument);
}

QTEST_GUILESS_MAIN(ChunkPeersTest)
#include "chunk_peers_test.moc"
