// Ranks on GPUs get each other's data, and none of them waits for good: whatever goes wrong on one, all end with its
// cause. NCCL is a fake in host memory, whose collectives end late and out of step.
#include <QtTest>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/fake_nccl.h"
#include "tests/fakes/fake_stream.h"
#include "trainer/fsdp/communicator.h"
#include "trainer/fsdp/nccl_api.h"
#include "trainer/fsdp/nccl_communicator.h"

namespace {

using namespace atl;
using namespace atl::test;
using namespace std::chrono_literals;

constexpr auto kMostDelay = std::chrono::microseconds(500);

// Never reached, but by the one that a test makes short.
NcclTimeouts patient() { return {.init = 120s, .call = 120s, .wait = 120s, .poll = 5ms, .grace = 120s}; }

// How a rank ended.
struct Outcome {
  std::string error;       // empty: well
  bool own = false;        // it was this rank that failed
  std::string next_error;  // of the next call after one that failed
};

class Ranks {
 public:
  explicit Ranks(int world_size, NcclTimeouts timeouts = patient()) : world_size_(world_size) {
    for (int rank = 0; rank < world_size; ++rank) {
      streams_.push_back(std::make_unique<FakeStream>(static_cast<std::uint64_t>(rank) + 1, kMostDelay));
    }
    group_ = std::make_unique<NcclGroup>(FakeNccl::api(), world_size, timeouts);
  }
  // First the group: an abort is what frees a stream.
  ~Ranks() { group_.reset(); }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  using Task = std::function<void(NcclCommunicator&, FakeStream&)>;
  // On ranks [0, came), each on a thread.
  std::vector<Outcome> run(const Task& task, int came) {
    std::vector<Outcome> outcomes(static_cast<std::size_t>(came));
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < came; ++rank) {
      threads.emplace_back([&, rank] { outcomes[static_cast<std::size_t>(rank)] = run_one(rank, task); });
    }
    threads.clear();
    return outcomes;
  }
  std::vector<Outcome> run(const Task& task) { return run(task, world_size_); }
  NcclGroup& group() { return *group_; }

 private:
  Outcome run_one(int rank, const Task& task) {
    Outcome outcome;
    std::unique_ptr<NcclCommunicator> communicator;
    try {
      communicator = group_->communicator(LocalRank{rank});
      FakeStream& stream = *streams_[static_cast<std::size_t>(rank)];
      task(*communicator, stream);
      communicator->watched("the end", [&] { stream.synchronize(); });
    } catch (const CollectiveAborted& aborted) {
      outcome.error = aborted.what();
    } catch (const std::exception& error) {
      outcome.error = error.what();
      outcome.own = true;
    }
    if (outcome.error.empty() || communicator == nullptr) return outcome;
    try {
      communicator->all_reduce_sum(nullptr, 0, nullptr);
    } catch (const CollectiveAborted& aborted) {
      outcome.next_error = aborted.what();
    }
    return outcome;
  }

  const int world_size_;
  std::vector<std::unique_ptr<FakeStream>> streams_;
  std::unique_ptr<NcclGroup> group_;
};

void reduce_one(NcclCommunicator& communicator, FakeStream& stream, double& value) {
  communicator.all_reduce_sum(&value, 1, &stream);
}

// Each rank ended, by the same cause, and said so again at its next call; nothing of NCCL was left open.
void verify_all_ended(const std::vector<Outcome>& outcomes, const FakeNccl& fake) {
  for (const Outcome& outcome : outcomes) {
    QVERIFY(!outcome.error.empty());
    QCOMPARE(outcome.error, outcomes[0].error);
    if (!outcome.next_error.empty()) QCOMPARE(outcome.next_error, outcome.error);
  }
  const FakeNccl::Counts counts = fake.counts();
  QCOMPARE(counts.open_comms, 0);
  QCOMPARE(counts.destroyed, 0);
  QCOMPARE(counts.open_groups, 0);
  QCOMPARE(counts.misuses, 0);
}

}  // namespace

Q_DECLARE_METATYPE(atl::test::NcclFault)
Q_DECLARE_METATYPE(atl::CollectiveCall)

class NcclCommunicatorTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void collectives_bring_each_rank_the_data_of_all_data();
  void collectives_bring_each_rank_the_data_of_all();
  void collectives_of_a_group_bring_what_each_alone_brings();
  void a_group_is_closed_when_something_is_thrown_inside();
  void a_fault_on_one_rank_ends_all_with_its_cause_data();
  void a_fault_on_one_rank_ends_all_with_its_cause();
  void only_the_rank_whose_call_failed_says_that_it_was_itself();
  void a_rank_that_does_not_come_is_named();
  void a_rank_that_never_connects_is_named();
  void ranks_that_issue_different_collectives_are_named_data();
  void ranks_that_issue_different_collectives_are_named();
  void an_abort_from_another_thread_frees_who_waits();
  void an_abort_frees_ranks_that_connect();
  void a_wait_that_fails_of_itself_says_so();
  void a_launch_that_blocks_behind_a_collective_is_ended();
  void a_rank_that_fails_inside_of_what_is_watched_says_that_it_was_itself();
  void a_new_group_works_after_an_abort();
};

void NcclCommunicatorTest::collectives_bring_each_rank_the_data_of_all_data() {
  QTest::addColumn<int>("world_size");
  for (const int world_size : {1, 2, 3, 8}) QTest::addRow("%d", world_size) << world_size;
}

void NcclCommunicatorTest::collectives_bring_each_rank_the_data_of_all() {
  QFETCH(int, world_size);
  constexpr std::size_t kRounds = 20, kShard = 5;
  const auto n = static_cast<std::size_t>(world_size);
  FakeNccl fake(7);
  std::atomic<int> right = 0;

  // Whole numbers below 2^24: their sums are exact in every order.
  std::vector<Outcome> outcomes = Ranks(world_size).run([&](NcclCommunicator& communicator, FakeStream& stream) {
    const auto rank = static_cast<std::size_t>(communicator.rank().value);
    struct Round {
      std::vector<float> full = {}, sum = std::vector<float>(kShard);
      std::vector<std::uint16_t> halves = {};
      std::vector<double> doubles = {};
    };
    std::vector<Round> rounds(kRounds);
    for (std::size_t r = 0; r < kRounds; ++r) {
      Round& round = rounds[r];
      round.full.resize(n * kShard);
      round.halves.assign(n, static_cast<std::uint16_t>(0));
      round.halves[rank] = static_cast<std::uint16_t>(100 * r + rank);
      for (std::size_t i = 0; i < round.full.size(); ++i) {
        round.full[i] = static_cast<float>(1000 * r + 100 * rank + i);
      }
      round.doubles = {static_cast<double>(r), static_cast<double>(rank)};
      communicator.all_gather(DType::kBfloat16, &round.halves[rank], round.halves.data(), 1, &stream);  // in place
      communicator.reduce_scatter(round.full.data(), round.sum.data(), kShard, &stream);
      communicator.all_gather(DType::kFloat32, round.sum.data(), round.full.data(), kShard, &stream);
      communicator.all_reduce_sum(round.doubles.data(), 2, &stream);
    }
    communicator.watched("the rounds", [&] { stream.synchronize(); });
    for (std::size_t r = 0; r < kRounds; ++r) {
      bool ok = rounds[r].doubles == std::vector<double>{double(r * n), double(n * (n - 1)) / 2};
      for (std::size_t i = 0; i < n; ++i) ok = ok && rounds[r].halves[i] == 100 * r + i;
      for (std::size_t i = 0; i < n * kShard; ++i) {
        ok = ok && rounds[r].full[i] == static_cast<float>(n * (1000 * r + i) + 100 * (n * (n - 1) / 2));
      }
      if (ok) ++right;
    }
  });

  for (const Outcome& outcome : outcomes) QCOMPARE(outcome.error, std::string());
  QCOMPARE(right.load(), static_cast<int>(kRounds) * world_size);
  const FakeNccl::Counts counts = fake.counts();
  QCOMPARE(counts.destroyed, world_size);
  QCOMPARE(counts.aborted, 0);
  QCOMPARE(counts.open_comms, 0);
  QCOMPARE(counts.misuses, 0);
}

void NcclCommunicatorTest::collectives_of_a_group_bring_what_each_alone_brings() {
  FakeNccl fake(8);
  std::atomic<int> right = 0;

  const auto outcomes = Ranks(3).run([&](NcclCommunicator& communicator, FakeStream& stream) {
    const auto rank = static_cast<float>(communicator.rank().value);
    std::vector<float> first(3), second(3);
    const float one = rank, other = 10 + rank;
    communicator.together([&] {
      communicator.all_gather(DType::kFloat32, &one, first.data(), 1, &stream);
      communicator.all_gather(DType::kFloat32, &other, second.data(), 1, &stream);
    });
    communicator.watched("the group", [&] { stream.synchronize(); });
    if (first == std::vector<float>{0, 1, 2} && second == std::vector<float>{10, 11, 12}) ++right;
  });

  for (const Outcome& outcome : outcomes) QCOMPARE(outcome.error, std::string());
  QCOMPARE(right.load(), 3);
  QCOMPARE(fake.counts().groups, 3);
  QCOMPARE(fake.counts().open_groups, 0);
  QCOMPARE(fake.counts().misuses, 0);
}

void NcclCommunicatorTest::a_group_is_closed_when_something_is_thrown_inside() {
  FakeNccl fake(9);
  std::atomic<int> right = 0;

  const auto outcomes = Ranks(2).run([&](NcclCommunicator& communicator, FakeStream& stream) {
    std::vector<double> values{1, 1};
    try {
      communicator.together([&] {
        reduce_one(communicator, stream, values[0]);
        throw std::range_error("a batch that does not fit");
      });
    } catch (const std::range_error&) {
      ++right;
    }
    reduce_one(communicator, stream, values[1]);
    communicator.watched("the second", [&] { stream.synchronize(); });
    if (values == std::vector<double>{2, 2}) ++right;
  });

  for (const Outcome& outcome : outcomes) QCOMPARE(outcome.error, std::string());
  QCOMPARE(right.load(), 4);
  QCOMPARE(fake.counts().groups, 2);
  QCOMPARE(fake.counts().open_groups, 0);
  QCOMPARE(fake.counts().misuses, 0);
}

void NcclCommunicatorTest::a_fault_on_one_rank_ends_all_with_its_cause_data() {
  QTest::addColumn<NcclFault>("fault");
  QTest::addColumn<bool>("in_group");
  QTest::addColumn<QString>("cause");
  const QString stuck = "local rank 1 has not come back from enqueuing ";
  for (const bool in_group : {false, true}) {
    const char* how = in_group ? "in a group" : "alone";
    const QString what = in_group ? "a group of collectives" : "all_reduce of 1 fp64";
    QTest::addRow("a kernel hangs, %s", how)
        << NcclFault::kCollectiveHangs << in_group << "all local ranks have come to collective 3, so a GPU or a link";
    QTest::addRow("an asynchronous error, %s", how)
        << NcclFault::kAsynchronousError << in_group << "NCCL: remote process exited or there was a network error";
    QTest::addRow("a call fails, %s", how)
        << NcclFault::kCallFails << in_group
        << "local rank 1: " + what + ": NCCL: unhandled error (the fake was told to)";
    QTest::addRow("a call blocks, %s", how) << NcclFault::kCallBlocks << in_group << stuck + what;
    QTest::addRow("a call stays in progress, %s", how) << NcclFault::kCallNeverCompletes << in_group << stuck + what;
  }
  QTest::addRow("its start hangs") << NcclFault::kInitNeverCompletes << false
                                   << "NCCL has not connected the local ranks within 0.5 s";
}

void NcclCommunicatorTest::a_fault_on_one_rank_ends_all_with_its_cause() {
  QFETCH(NcclFault, fault);
  QFETCH(bool, in_group);
  QFETCH(QString, cause);
  FakeNccl fake(10);
  fake.break_rank(1, fault, 3);
  if (fault == NcclFault::kInitNeverCompletes) fake.break_rank(1, fault);
  NcclTimeouts timeouts = patient();
  timeouts.grace = 50ms;
  const bool in_call = fault == NcclFault::kCallBlocks || fault == NcclFault::kCallNeverCompletes;
  (fault == NcclFault::kInitNeverCompletes ? timeouts.init : in_call ? timeouts.call : timeouts.wait) = 500ms;

  std::vector<double> values(3, 0);
  // Who waits for the deadline does so when all have come to the last collective.
  std::latch enqueued(3);
  const auto outcomes = Ranks(3, timeouts).run([&](NcclCommunicator& communicator, FakeStream& stream) {
    double& value = values[static_cast<std::size_t>(communicator.rank().value)];
    for (int i = 1; i <= 3; ++i) {
      if (in_group) {
        communicator.together([&] { reduce_one(communicator, stream, value); });
      } else {
        reduce_one(communicator, stream, value);
      }
    }
    if (fault == NcclFault::kCollectiveHangs) enqueued.arrive_and_wait();
  });

  verify_all_ended(outcomes, fake);
  QVERIFY2(QString::fromStdString(outcomes[0].error).contains(cause), outcomes[0].error.c_str());
  const bool named = fault != NcclFault::kCollectiveHangs && fault != NcclFault::kInitNeverCompletes;
  if (named) QVERIFY2(outcomes[0].error.starts_with("local rank 1"), outcomes[0].error.c_str());
  QCOMPARE(fake.counts().aborted, 3);
}

void NcclCommunicatorTest::only_the_rank_whose_call_failed_says_that_it_was_itself() {
  FakeNccl fake(11);
  fake.break_rank(2, NcclFault::kCallFails);
  std::vector<double> values(3, 0);

  const auto outcomes = Ranks(3).run([&](NcclCommunicator& communicator, FakeStream& stream) {
    reduce_one(communicator, stream, values[static_cast<std::size_t>(communicator.rank().value)]);
  });

  verify_all_ended(outcomes, fake);
  QVERIFY(!outcomes[0].own && !outcomes[1].own && outcomes[2].own);
}

void NcclCommunicatorTest::a_rank_that_does_not_come_is_named() {
  FakeNccl fake(12);
  NcclTimeouts timeouts = patient();
  timeouts.wait = 300ms;
  std::vector<float> full(12);
  std::latch enqueued(3), freed(2);

  const auto outcomes = Ranks(3, timeouts).run([&](NcclCommunicator& communicator, FakeStream& stream) {
    const float* shard = &full[4 * static_cast<std::size_t>(communicator.rank().value)];
    communicator.all_gather(DType::kFloat32, shard, full.data(), 4, &stream);
    const bool comes = communicator.rank().value != 2;
    if (comes) communicator.all_gather(DType::kFloat32, shard, full.data(), 4, &stream);
    enqueued.arrive_and_wait();
    if (!comes) {
      freed.wait();
      communicator.throw_if_aborted();
      return;
    }
    try {
      communicator.watched("the second", [&] { stream.synchronize(); });
    } catch (...) {
      freed.count_down();
      throw;
    }
    freed.count_down();
  });

  verify_all_ended(outcomes, fake);
  const QString error = QString::fromStdString(outcomes[0].error);
  QVERIFY2(
      error.contains("waited 0.3 s for the second: local rank 2 did not come to collective 2, all_gather of 4 fp32"),
      outcomes[0].error.c_str());
}

void NcclCommunicatorTest::a_rank_that_never_connects_is_named() {
  FakeNccl fake(13);
  NcclTimeouts timeouts = patient();
  timeouts.init = 300ms;

  const auto outcomes = Ranks(2, timeouts).run([](NcclCommunicator&, FakeStream&) {}, /*came=*/1);

  verify_all_ended(outcomes, fake);
  QCOMPARE(outcomes[0].error, std::string("NCCL has not connected the local ranks within 0.3 s: rank 1 never came"));
}

void NcclCommunicatorTest::ranks_that_issue_different_collectives_are_named_data() {
  QTest::addColumn<CollectiveCall>("other");
  QTest::addColumn<QString>("words");
  QTest::addRow("another collective") << CollectiveCall{CollectiveKind::kReduceScatter, DType::kFloat32, 4}
                                      << "reduce_scatter of 4 fp32 on rank 1";
  QTest::addRow("another size") << CollectiveCall{CollectiveKind::kAllGather, DType::kFloat32, 3}
                                << "all_gather of 3 fp32 on rank 1";
  QTest::addRow("another type") << CollectiveCall{CollectiveKind::kAllGather, DType::kBfloat16, 4}
                                << "all_gather of 4 bf16 on rank 1";
}

void NcclCommunicatorTest::ranks_that_issue_different_collectives_are_named() {
  QFETCH(CollectiveCall, other);
  QFETCH(QString, words);
  FakeNccl fake(14);
  std::vector<std::vector<float>> shards(3, std::vector<float>(12)), fulls(3, std::vector<float>(12));

  const auto outcomes = Ranks(3).run([&](NcclCommunicator& communicator, FakeStream& stream) {
    const auto rank = static_cast<std::size_t>(communicator.rank().value);
    float* shard = shards[rank].data();
    float* full = fulls[rank].data();
    for (int i = 1; i <= 6; ++i) {
      if (rank == 1 && i == 3 && other.kind == CollectiveKind::kReduceScatter) {
        communicator.reduce_scatter(full, shard, other.elements, &stream);
      } else if (rank == 1 && i == 3) {
        communicator.all_gather(other.dtype, shard, full, other.elements, &stream);
      } else {
        communicator.all_gather(DType::kFloat32, shard, full, 4, &stream);
      }
    }
  });

  verify_all_ended(outcomes, fake);
  const QString error = QString::fromStdString(outcomes[0].error);
  QVERIFY2(error.contains("disagree on collective 3: "), outcomes[0].error.c_str());
  QVERIFY2(error.contains("all_gather of 4 fp32 on rank "), outcomes[0].error.c_str());
  QVERIFY2(error.contains(words), outcomes[0].error.c_str());
  QCOMPARE(outcomes[0].own + outcomes[1].own + outcomes[2].own, 1);  // whichever came second
}

void NcclCommunicatorTest::an_abort_from_another_thread_frees_who_waits() {
  FakeNccl fake(15);
  double value = 1;

  const auto outcomes = Ranks(2).run([&](NcclCommunicator& communicator, FakeStream& stream) {
    if (communicator.rank().value == 0) return reduce_one(communicator, stream, value);
    communicator.abort("out of memory");
  });

  verify_all_ended(outcomes, fake);
  QCOMPARE(outcomes[0].error, std::string("out of memory"));
  QCOMPARE(value, 1.0);
}

void NcclCommunicatorTest::an_abort_frees_ranks_that_connect() {
  FakeNccl fake(20);
  std::vector<Outcome> outcomes;
  {
    Ranks ranks(3);
    std::jthread aborting([&] {
      while (fake.counts().open_comms < 2) std::this_thread::yield();
      ranks.group().abort("out of memory");
    });

    outcomes = ranks.run([](NcclCommunicator&, FakeStream&) {}, /*came=*/2);
  }

  verify_all_ended(outcomes, fake);
  QCOMPARE(outcomes[0].error, std::string("out of memory"));
  QCOMPARE(fake.counts().aborted, 2);
}

void NcclCommunicatorTest::a_wait_that_fails_of_itself_says_so() {
  FakeNccl fake(16);

  const auto outcomes = Ranks(1).run([&](NcclCommunicator& communicator, FakeStream&) {
    QVERIFY_THROWS_EXCEPTION(std::domain_error,
                             communicator.watched("a mark", [] { throw std::domain_error("an illegal address"); }));
    // After an abort a GPU's errors are only what the abort did to it.
    communicator.watched("a mark", [&] {
      communicator.abort("the user's wish");
      throw std::domain_error("an illegal address");
    });
  });

  verify_all_ended(outcomes, fake);
  QCOMPARE(outcomes[0].error, std::string("the user's wish"));
}

// With the GPU's queue full, what blocks is no wait of the program's.
void NcclCommunicatorTest::a_launch_that_blocks_behind_a_collective_is_ended() {
  FakeNccl fake(18);
  fake.break_rank(1, NcclFault::kCollectiveHangs, 2);
  NcclTimeouts timeouts = patient();
  timeouts.wait = 500ms;
  std::vector<double> values(2, 1);

  const auto outcomes = Ranks(2, timeouts).run([&](NcclCommunicator& communicator, FakeStream& stream) {
    communicator.watched("the step", [&] {
      for (int i = 0; i < 3; ++i) {
        reduce_one(communicator, stream, values[static_cast<std::size_t>(communicator.rank().value)]);
        stream.synchronize();
      }
    });
  });

  verify_all_ended(outcomes, fake);
  const QString error = QString::fromStdString(outcomes[0].error);
  QVERIFY2(error.contains("waited 0.5 s for the step: "), outcomes[0].error.c_str());
}

void NcclCommunicatorTest::a_rank_that_fails_inside_of_what_is_watched_says_that_it_was_itself() {
  FakeNccl fake(19);
  fake.break_rank(0, NcclFault::kCallFails);
  std::vector<double> values(2, 1);

  const auto outcomes = Ranks(2).run([&](NcclCommunicator& communicator, FakeStream& stream) {
    double& value = values[static_cast<std::size_t>(communicator.rank().value)];
    communicator.watched("the step", [&] { reduce_one(communicator, stream, value); });
  });

  verify_all_ended(outcomes, fake);
  QVERIFY(outcomes[0].own && !outcomes[1].own);
}

void NcclCommunicatorTest::a_new_group_works_after_an_abort() {
  FakeNccl fake(17);
  (void)Ranks(2).run([](NcclCommunicator& communicator, FakeStream&) { communicator.abort("once"); });
  std::vector<double> values{1, 2};

  const auto outcomes = Ranks(2).run([&](NcclCommunicator& communicator, FakeStream& stream) {
    reduce_one(communicator, stream, values[static_cast<std::size_t>(communicator.rank().value)]);
  });

  for (const Outcome& outcome : outcomes) QCOMPARE(outcome.error, std::string());
  QCOMPARE(values, (std::vector<double>{3, 3}));
  QCOMPARE(fake.counts().open_comms, 0);
  QCOMPARE(fake.counts().misuses, 0);
}

QTEST_GUILESS_MAIN(NcclCommunicatorTest)
#include "nccl_communicator_test.moc"
