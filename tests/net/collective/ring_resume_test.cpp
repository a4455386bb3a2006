// What an attempt that failed leaves whole is not averaged again by those that go on.
#include <QtTest>
#include <algorithm>

#include "net/collective/canonical_digest.h"
#include "tests/net/collective/fault_parts.h"
#include "tests/net/collective/slow_link.h"

using namespace atl;

namespace {

std::vector<bool> held_by(const std::vector<MemberResult>& results) {
  std::vector<bool> held = results[0].failure().whole_buckets;
  for (const MemberResult& result : results) {
    for (std::size_t i = 0; i < held.size(); ++i) held[i] = held[i] && result.failure().whole_buckets[i];
  }
  return held;
}

constexpr int kBuckets = 64;

}  // namespace

class RingResumeTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_attempt_cut_in_the_middle_is_finished_with_fewer_bytes();
};

void RingResumeTest::an_attempt_cut_in_the_middle_is_finished_with_fewer_bytes() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.bucket_numel = 500 * kBlockNumel;
  const Inputs inputs = some_inputs(3, kBuckets * static_cast<std::size_t>(spec.bucket_numel));
  const auto whole_round = ring.run(spec, inputs);
  // Slow enough for the buckets to follow each other, and cut when half of them are through: what lies in buffers is
  // less than the other half.
  SlowLink link(spec.order[1].address, 20'000'000);
  link.cut_after(whole_round[0].report().bytes_sent / 2);
  AllReduceSpec cut = spec;
  cut.attempt = Attempt{2};
  cut.order[1].address = link.address();
  auto failed = ring.run(cut, inputs);
  for (const MemberResult& result : failed) QVERIFY(!result.ok());

  AllReduceSpec next = spec;
  next.attempt = Attempt{3};
  next.final_buckets = held_by(failed);
  std::vector<Bytes> rooms;
  for (MemberResult& result : failed) rooms.push_back(std::move(result.canonical));
  const auto results = ring.run(next, inputs, {}, std::move(rooms));

  const auto kept = std::ranges::count(next.final_buckets, true);
  QVERIFY(kept > 0 && kept < kBuckets);
  for (std::size_t i = 0; i < 3; ++i) {
    QVERIFY2(results[i].ok(), results[i].ok() ? "" : results[i].failure().error.message.c_str());
    QVERIFY(results[i].canonical == whole_round[0].canonical);
    QVERIFY(results[i].report().digest == whole_round[0].report().digest);
    const auto full = static_cast<double>(whole_round[i].report().bytes_sent);
    const double share = static_cast<double>(kBuckets - kept) / kBuckets;
    QVERIFY(static_cast<double>(results[i].report().bytes_sent) < full * share * 1.05);
  }
}

QTEST_GUILESS_MAIN(RingResumeTest)
#include "ring_resume_test.moc"
