// Ranks that are threads agree on sums to the last bit, and one that gives up frees the others.
#include <QtTest>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "trainer/fsdp/shared_memory_communicator.h"

namespace {

using namespace atl;

void on_ranks(SharedMemoryGroup& group, const std::function<void(Communicator&)>& task) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < group.world_size(); ++rank) {
    threads.emplace_back([&, rank] { task(*group.communicator(LocalRank{rank})); });
  }
}

}  // namespace

class CommunicatorTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void all_gather_joins_shards_in_rank_order();
  void reduce_scatter_adds_in_rank_order();
  void all_reduce_is_the_same_on_every_rank();
  void an_abort_frees_ranks_that_wait();
  void a_rank_that_never_comes_is_a_timeout();
  void after_a_reset_all_ranks_have_to_come();
  void ranks_that_disagree_on_sizes_fail();
};

void CommunicatorTest::all_gather_joins_shards_in_rank_order() {
  SharedMemoryGroup group(4, std::chrono::seconds(10));
  std::atomic<int> right = 0;

  on_ranks(group, [&](Communicator& communicator) {
    for (int round = 0; round < 50; ++round) {
      const auto base = static_cast<float>(communicator.rank().value * 10 + round);
      const std::vector<float> shard{base, base + 1};
      std::vector<float> full(8);
      communicator.all_gather(std::as_bytes(std::span(shard)), std::as_writable_bytes(std::span(full)));
      const auto r = static_cast<float>(round);
      if (full == std::vector<float>{r, r + 1, r + 10, r + 11, r + 20, r + 21, r + 30, r + 31}) ++right;
    }
  });

  QCOMPARE(right.load(), 200);
}

void CommunicatorTest::reduce_scatter_adds_in_rank_order() {
  // 1e8 + 1 - 1e8 depends on the order in fp32.
  const float parts[] = {1e8f, 1.0f, -1e8f};
  float in_order = 0;
  for (const float value : parts) in_order += value;
  SharedMemoryGroup group(3, std::chrono::seconds(10));
  std::vector<float> first(3), sums(3, 7.0f);

  on_ranks(group, [&](Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank().value);
    const std::vector<float> full(3, parts[rank]);
    const auto own = std::span(sums).subspan(rank, 1);
    communicator.reduce_scatter(full, own, /*accumulate=*/false);
    first[rank] = own[0];
    communicator.reduce_scatter(full, own, /*accumulate=*/true);
  });

  QCOMPARE(first, std::vector<float>(3, in_order));
  for (const float value : parts) in_order += value;  // one after the other, to what was there
  QCOMPARE(sums, std::vector<float>(3, in_order));
}

void CommunicatorTest::all_reduce_is_the_same_on_every_rank() {
  SharedMemoryGroup group(4, std::chrono::seconds(10));
  std::vector<double> results(4);

  on_ranks(group, [&](Communicator& communicator) {
    double value[] = {0.1 * (communicator.rank().value + 1)};
    communicator.all_reduce_sum(value);
    results[static_cast<std::size_t>(communicator.rank().value)] = value[0];
  });

  QCOMPARE(results, std::vector<double>(4, 0.1 + 0.2 + 0.1 * 3 + 0.4));
}

void CommunicatorTest::an_abort_frees_ranks_that_wait() {
  SharedMemoryGroup group(3, std::chrono::seconds(10));
  std::atomic<int> freed = 0;

  on_ranks(group, [&](Communicator& communicator) {
    if (communicator.rank().value == 1) return communicator.abort("out of memory");
    double value[] = {1.0};
    try {
      communicator.all_reduce_sum(value);
    } catch (const CollectiveAborted& aborted) {
      if (std::string(aborted.what()) == "out of memory") ++freed;
    }
  });

  QCOMPARE(freed.load(), 2);
}

void CommunicatorTest::a_rank_that_never_comes_is_a_timeout() {
  SharedMemoryGroup group(3, std::chrono::milliseconds(1));
  double value[] = {1.0};
  std::string cause;

  try {
    group.communicator(LocalRank{1})->all_reduce_sum(value);
  } catch (const CollectiveAborted& aborted) {
    cause = aborted.what();
  }

  QCOMPARE(cause, std::string("local rank 0, 2 did not come to all_reduce of 1 within 0.001 s"));
}

// The one that had come meanwhile is not counted among those who come after a reset.
void CommunicatorTest::after_a_reset_all_ranks_have_to_come() {
  SharedMemoryGroup group(2, std::chrono::milliseconds(1));
  double value[] = {1.0};
  QVERIFY_THROWS_EXCEPTION(CollectiveAborted, group.communicator(LocalRank{0})->all_reduce_sum(value));
  QVERIFY_THROWS_EXCEPTION(CollectiveAborted, group.communicator(LocalRank{1})->all_reduce_sum(value));

  group.reset();

  QVERIFY_THROWS_EXCEPTION(CollectiveAborted, group.communicator(LocalRank{1})->all_reduce_sum(value));
}

void CommunicatorTest::ranks_that_disagree_on_sizes_fail() {
  SharedMemoryGroup group(1, std::chrono::seconds(10));
  std::vector<float> shard(2), full(3);

  QVERIFY_THROWS_EXCEPTION(std::logic_error,
                           group.communicator(LocalRank{0})
                               ->all_gather(std::as_bytes(std::span(shard)), std::as_writable_bytes(std::span(full))));
}

QTEST_GUILESS_MAIN(CommunicatorTest)
#include "communicator_test.moc"
