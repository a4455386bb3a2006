// Ranks that do not issue the same collectives are told so, however far apart they run.
#include "trainer/fsdp/nccl_sequence.h"

#include <QtTest>
#include <optional>
#include <string>

using namespace atl;

namespace {

constexpr CollectiveCall kUsual{CollectiveKind::kAllGather, DType::kBfloat16, 64};
constexpr CollectiveCall kOther{CollectiveKind::kAllGather, DType::kBfloat16, 65};

}  // namespace

class NcclSequenceTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_second_to_come_learns_of_the_difference();
  void a_difference_that_is_long_past_is_found_later();
  void progress_is_that_of_the_farthest();
};

void NcclSequenceTest::the_second_to_come_learns_of_the_difference() {
  CollectiveSequence sequence(3);
  for (const int rank : {2, 0, 1}) QVERIFY(!sequence.note(LocalRank{rank}, kUsual));
  QVERIFY(!sequence.note(LocalRank{2}, kOther));

  const auto mismatch = sequence.note(LocalRank{1}, kUsual);

  QVERIFY(mismatch.has_value());
  QCOMPARE(*mismatch, std::string("local ranks 1 and 2 disagree on collective 2: all_gather of 64 bf16 on rank 1, "
                                  "all_gather of 65 bf16 on rank 2"));
}

void NcclSequenceTest::a_difference_that_is_long_past_is_found_later() {
  CollectiveSequence sequence(2);
  QVERIFY(!sequence.note(LocalRank{0}, kOther));
  for (int i = 1; i < 10'000; ++i) QVERIFY(!sequence.note(LocalRank{0}, kUsual));

  std::optional<std::string> mismatch;
  for (int i = 0; i < 10'000 && !mismatch; ++i) mismatch = sequence.note(LocalRank{1}, kUsual);

  QVERIFY(mismatch.has_value());
  QVERIFY2(mismatch->starts_with("local ranks 1 and 0 disagree on a collective before their "), mismatch->c_str());
}

void NcclSequenceTest::progress_is_that_of_the_farthest() {
  CollectiveSequence sequence(2);
  (void)sequence.note(LocalRank{0}, kUsual);
  (void)sequence.note(LocalRank{1}, kUsual);
  (void)sequence.note(LocalRank{1}, kOther);

  const CollectiveSequence::Progress progress = sequence.progress();

  QCOMPARE(progress.issued, (std::vector<std::uint64_t>{1, 2}));
  QCOMPARE(progress.most, std::uint64_t{2});
  QVERIFY(progress.last == kOther);
}

QTEST_APPLESS_MAIN(NcclSequenceTest)
#include "nccl_sequence_test.moc"
