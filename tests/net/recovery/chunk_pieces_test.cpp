// A chunk that comes in pieces from several sources: what is asked for, and whom to blame when it is wrong.
#include "net/recovery/chunk_pieces.h"

#include <QtTest>

namespace atl {
namespace {

constexpr std::uint64_t kBytes = 4 * kChunkPieceBytes + 1000;  // five pieces, the last one short
const IslandId kOne{"isl-1"}, kTwo{"isl-2"}, kThree{"isl-3"};

Bytes right_bytes(PieceSpan span) {
  Bytes all(kBytes);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i * 7 + i / 4096);
  const std::size_t begin = span.first * kChunkPieceBytes;
  const std::size_t end = std::min<std::size_t>(span.end() * kChunkPieceBytes, kBytes);
  return {all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end)};
}

Bytes wrong_bytes(PieceSpan span) {
  Bytes bytes = right_bytes(span);
  bytes.back() ^= std::byte{1};
  return bytes;
}

}  // namespace

class ChunkPiecesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void pieces_of_several_sources_make_the_chunk();
  void what_was_cut_off_counts_by_whole_pieces();
  void what_is_asked_of_two_is_open_again_when_both_have_ended();
  void who_sent_other_bytes_is_known_when_the_chunk_is_right();
  void once_wrong_it_comes_from_one_source();
};

void ChunkPiecesTest::pieces_of_several_sources_make_the_chunk() {
  ChunkPieces chunk(kBytes);
  const PieceSpan first = chunk.ask(2), second = chunk.ask(8);
  QCOMPARE(first.count, std::size_t{2});
  QCOMPARE(second.first, std::size_t{2});
  QCOMPARE(second.count, std::size_t{3});
  QCOMPARE(chunk.open(), std::size_t{0});

  QCOMPARE(chunk.put(second, right_bytes(second), kTwo), chunk.bytes_of(second));
  QVERIFY(!chunk.is_whole());
  QCOMPARE(chunk.put(first, right_bytes(first), kOne), chunk.bytes_of(first));

  QVERIFY(chunk.is_whole() && chunk.had_several());
  QVERIFY(std::ranges::equal(chunk.bytes(), right_bytes({0, 5})));
  QVERIFY(chunk.liars().empty());
  // Again, from whom it was asked twice.
  QCOMPARE(chunk.put(first, right_bytes(first), kThree), std::uint64_t{0});
}

void ChunkPiecesTest::what_was_cut_off_counts_by_whole_pieces() {
  ChunkPieces chunk(kBytes);
  const PieceSpan all = chunk.ask(5);
  Bytes cut = right_bytes(all);
  cut.resize(2 * kChunkPieceBytes + 5);

  QCOMPARE(chunk.put(all, std::move(cut), kOne), std::uint64_t{2 * kChunkPieceBytes});
  chunk.give_back(all);

  QVERIFY(chunk.has(1) && !chunk.has(2));
  const PieceSpan rest = chunk.ask(5);
  QCOMPARE(rest.first, std::size_t{2});
  QCOMPARE(rest.count, std::size_t{3});
}

void ChunkPiecesTest::what_is_asked_of_two_is_open_again_when_both_have_ended() {
  ChunkPieces chunk(kBytes);
  const PieceSpan all = chunk.ask(5), part{3, 2};
  chunk.ask_again(part);
  QCOMPARE(chunk.asked(2), 1);
  QCOMPARE(chunk.asked(3), 2);

  chunk.give_back(all);
  QCOMPARE(chunk.open(), std::size_t{3});
  QVERIFY(chunk.asked_by_anybody());
  chunk.give_back(part);

  QCOMPARE(chunk.open(), std::size_t{5});
  QVERIFY(!chunk.asked_by_anybody());
}

void ChunkPiecesTest::who_sent_other_bytes_is_known_when_the_chunk_is_right() {
  ChunkPieces chunk(kBytes);
  const PieceSpan first = chunk.ask(2), second = chunk.ask(2), third = chunk.ask(1);
  chunk.put(first, right_bytes(first), kOne);
  chunk.put(second, wrong_bytes(second), kTwo);
  chunk.put(third, right_bytes(third), kThree);
  for (const PieceSpan span : {first, second, third}) chunk.give_back(span);
  QVERIFY(chunk.is_whole() && chunk.had_several());

  chunk.was_wrong();
  const PieceSpan all = chunk.ask(1);
  QCOMPARE(chunk.put(all, right_bytes(all), kOne), kBytes);

  QVERIFY(chunk.is_whole());
  QVERIFY(chunk.liars() == std::vector{kTwo});
}

// And from the next one, where that one lied as well: what the first ones sent is not forgotten.
void ChunkPiecesTest::once_wrong_it_comes_from_one_source() {
  ChunkPieces chunk(kBytes);
  const PieceSpan first = chunk.ask(2), second = chunk.ask(3);
  chunk.put(first, wrong_bytes(first), kOne);
  chunk.put(second, right_bytes(second), kTwo);
  chunk.give_back(first);
  chunk.give_back(second);
  chunk.was_wrong();
  QVERIFY(chunk.is_of_one());

  PieceSpan all = chunk.ask(1);
  QCOMPARE(all.count, std::size_t{5});
  Bytes cut = right_bytes(all);
  cut.resize(3 * kChunkPieceBytes);
  QCOMPARE(chunk.put(all, std::move(cut), kThree), std::uint64_t{0});
  chunk.give_back(all);
  all = chunk.ask(1);
  chunk.put(all, wrong_bytes(all), kThree);
  chunk.give_back(all);
  QVERIFY(chunk.is_whole() && !chunk.had_several());
  chunk.was_wrong();
  all = chunk.ask(1);
  chunk.put(all, right_bytes(all), kTwo);

  QVERIFY(chunk.is_whole());
  QVERIFY(chunk.liars() == std::vector{kOne});
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::ChunkPiecesTest)
#include "chunk_pieces_test.moc"
