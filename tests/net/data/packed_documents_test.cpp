// Where documents begin in a sequence, and which tokens are predicted from their own.
#include "net/data/packed_documents.h"

#include <QtTest>
#include <vector>

using namespace atl;

namespace {

constexpr std::int32_t kEnd = 9;

struct Found {
  std::vector<std::int32_t> starts;
  std::vector<std::uint8_t> counts;
};
Found found_in(const std::vector<std::int32_t>& tokens) {
  Found found{std::vector<std::int32_t>(tokens.size() - 1, -7), std::vector<std::uint8_t>(tokens.size(), 1)};
  find_documents(tokens, kEnd, found.starts, found.counts);
  return found;
}

}  // namespace

class PackedDocumentsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void documents_begin_behind_an_end_of_text_data();
  void documents_begin_behind_an_end_of_text();
  void what_does_not_count_stays_so();
};

void PackedDocumentsTest::documents_begin_behind_an_end_of_text_data() {
  using Starts = std::vector<std::int32_t>;
  using Counts = std::vector<std::uint8_t>;
  QTest::addColumn<Starts>("tokens");
  QTest::addColumn<Starts>("starts");
  QTest::addColumn<Counts>("counts");
  QTest::newRow("one document") << Starts{1, 2, 3, 4} << Starts{0, 0, 0} << Counts{0, 1, 1, 1};
  QTest::newRow("an end belongs to its document") << Starts{1, kEnd, 3, 4} << Starts{0, 0, 2} << Counts{0, 1, 0, 1};
  QTest::newRow("the label alone is another's") << Starts{1, 2, kEnd, 4} << Starts{0, 0, 0} << Counts{0, 1, 1, 0};
  QTest::newRow("an end as the label") << Starts{1, 2, 3, kEnd} << Starts{0, 0, 0} << Counts{0, 1, 1, 1};
  QTest::newRow("ends alone") << Starts{kEnd, kEnd, kEnd, kEnd} << Starts{0, 1, 2} << Counts{0, 0, 0, 0};
  QTest::newRow("one input") << Starts{kEnd, 2} << Starts{0} << Counts{0, 0};
}

void PackedDocumentsTest::documents_begin_behind_an_end_of_text() {
  QFETCH(const std::vector<std::int32_t>, tokens);
  QFETCH(const std::vector<std::int32_t>, starts);
  QFETCH(const std::vector<std::uint8_t>, counts);

  const Found found = found_in(tokens);

  QCOMPARE(found.starts, starts);
  QCOMPARE(found.counts, counts);
}

void PackedDocumentsTest::what_does_not_count_stays_so() {
  std::vector<std::int32_t> starts(3);
  std::vector<std::uint8_t> counts{1, 0, 1, 0};

  find_documents(std::vector<std::int32_t>{1, 2, kEnd, 3}, kEnd, starts, counts);

  QCOMPARE(counts, (std::vector<std::uint8_t>{0, 0, 1, 0}));
}

QTEST_APPLESS_MAIN(PackedDocumentsTest)
#include "packed_documents_test.moc"
