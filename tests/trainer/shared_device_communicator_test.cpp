// Ranks that share one device get the sums that ranks on main memory get, to the last bit, however late and out of step
// the device works, and one that gives up frees the others. The device is host memory behind streams of threads.
#include <QtTest>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/fakes/fake_stream.h"
#include "trainer/fsdp/communicator.h"
#include "trainer/fsdp/shared_device_communicator.h"

namespace {

using namespace atl;
using namespace atl::test;
using namespace std::chrono_literals;

constexpr auto kMostDelay = 300us;
constexpr auto kPatient = 120s;

FakeStream& stream_of(void* stream) { return *static_cast<FakeStream*>(stream); }

class HostEvent final : public DeviceEvent {
 public:
  void record(void* stream) override { event_.record(stream_of(stream)); }
  void hold_back(void* stream) override { event_.hold_back(stream_of(stream)); }

 private:
  FakeEvent event_;
};

class HostDevice final : public SharedDevice {
 public:
  std::unique_ptr<DeviceEvent> make_event() override { return std::make_unique<HostEvent>(); }
  void copy(void* to, const void* from, std::size_t bytes, void* stream) override {
    if (++copies_ == failing_copy_) throw std::runtime_error("copy on the device: an illegal address");
    stream_of(stream).enqueue([=] { std::memmove(to, from, bytes); });
  }
  void add(float* sum, const float* values, std::size_t count, void* stream) override {
    enqueue_add(sum, values, count, stream);
  }
  void add(double* sum, const double* values, std::size_t count, void* stream) override {
    enqueue_add(sum, values, count, stream);
  }
  void fail_copy(int copy) { failing_copy_ = copy; }

 private:
  template <class T>
  static void enqueue_add(T* sum, const T* values, std::size_t count, void* stream) {
    stream_of(stream).enqueue([=] {
      for (std::size_t i = 0; i < count; ++i) sum[i] += values[i];
    });
  }

  std::atomic<int> copies_ = 0;
  int failing_copy_ = 0;
};

struct Outcome {
  std::string error;  // empty: well
  bool own = false;   // it was this rank that failed
};

// Ranks [0, came) of `world_size`. Every rank's buffers, which its task holds, stay until all streams are done.
class Ranks {
 public:
  // `slow_rank`: works late, and the others at once; none: all late, by chance.
  explicit Ranks(int world_size, std::chrono::nanoseconds timeout = kPatient, int slow_rank = -1)
      : group_(device_, world_size, timeout) {
    for (int rank = 0; rank < world_size; ++rank) {
      const auto delay = slow_rank < 0 ? kMostDelay : rank == slow_rank ? 5 * kMostDelay : 0us;
      streams_.push_back(std::make_unique<FakeStream>(static_cast<std::uint64_t>(rank) + 1, delay));
    }
  }

  using Task = std::function<void(SharedDeviceCommunicator&, FakeStream&)>;
  std::vector<Outcome> run(const Task& task, int came) {
    std::vector<Outcome> outcomes(static_cast<std::size_t>(came));
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < came; ++rank) {
      threads.emplace_back([&, rank] { outcomes[static_cast<std::size_t>(rank)] = run_one(rank, task); });
    }
    threads.clear();
    for (const auto& stream : streams_) stream->synchronize();
    return outcomes;
  }
  std::vector<Outcome> run(const Task& task) { return run(task, group_.world_size()); }
  HostDevice& device() { return device_; }

 private:
  Outcome run_one(int rank, const Task& task) {
    const auto communicator = group_.communicator(LocalRank{rank});
    try {
      task(*communicator, *streams_[static_cast<std::size_t>(rank)]);
    } catch (const CollectiveAborted& aborted) {
      return {aborted.what(), false};
    } catch (const std::exception& error) {
      communicator->abort(error.what());  // as the rank threads do
      return {error.what(), true};
    }
    return {};
  }

  HostDevice device_;
  SharedDeviceGroup group_;
  std::vector<std::unique_ptr<FakeStream>> streams_;
};

using Values = std::vector<std::vector<float>>;

// Of very different sizes, so that a sum depends on its order.
Values values_of(std::size_t ranks, std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Values values(ranks, std::vector<float>(count));
  for (auto& of_rank : values) {
    for (float& value : of_rank) value = std::ldexp(normal(random), static_cast<int>(random() % 24));
  }
  return values;
}

template <class T>
std::vector<T> sum_in_rank_order(std::vector<T> sum, const std::vector<std::vector<T>>& parts, std::size_t first) {
  for (const auto& part : parts) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[first + i];
  }
  return sum;
}

}  // namespace

class SharedDeviceCommunicatorTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void shards_are_joined_in_rank_order_data() { world_sizes(); }
  void shards_are_joined_in_rank_order();
  void sums_are_those_in_rank_order_to_the_last_bit_data() { world_sizes(); }
  void sums_are_those_in_rank_order_to_the_last_bit();
  void all_reduce_is_the_sum_in_rank_order_on_every_rank_data() { world_sizes(); }
  void all_reduce_is_the_sum_in_rank_order_on_every_rank();
  void a_buffer_may_be_overwritten_by_what_follows_on_the_stream_data();
  void a_buffer_may_be_overwritten_by_what_follows_on_the_stream();
  void a_rank_that_does_not_come_is_named();
  void ranks_that_issue_different_collectives_are_named();
  void a_device_that_fails_on_one_rank_frees_the_others();
  void an_abort_from_another_thread_frees_who_waits();
  void a_shard_inside_what_is_reduced_is_refused();

 private:
  static void world_sizes() {
    QTest::addColumn<int>("world_size");
    for (const int world_size : {1, 2, 3, 8}) QTest::addRow("%d", world_size) << world_size;
  }
};

void SharedDeviceCommunicatorTest::shards_are_joined_in_rank_order() {
  QFETCH(int, world_size);
  constexpr std::size_t kShard = 3;
  const auto n = static_cast<std::size_t>(world_size);
  // bf16, in their own places of what is gathered.
  std::vector<std::vector<std::uint16_t>> fulls(n, std::vector<std::uint16_t>(n * kShard, 0));
  std::vector<std::uint16_t> expected(n * kShard);
  for (std::size_t i = 0; i < n * kShard; ++i) {
    expected[i] = static_cast<std::uint16_t>(1000 + i);
    fulls[i / kShard][i] = expected[i];
  }

  const auto outcomes = Ranks(world_size).run([&](SharedDeviceCommunicator& communicator, FakeStream& stream) {
    const auto rank = static_cast<std::size_t>(communicator.rank().value);
    communicator.all_gather(DType::kBfloat16, &fulls[rank][rank * kShard], fulls[rank].data(), kShard, &stream);
  });

  for (const Outcome& outcome : outcomes) QCOMPARE(outcome.error, std::string());
  for (const auto& full : fulls) QCOMPARE(full, expected);
}

void SharedDeviceCommunicatorTest::sums_are_those_in_rank_order_to_the_last_bit() {
  QFETCH(int, world_size);
  constexpr std::size_t kShard = 40;
  const auto n = static_cast<std::size_t>(world_size);
  const Values fulls = values_of(n, n * kShard, 1);
  const Values held = values_of(n, kShard, 2);
  Values set = held, added = held;

  const auto outcomes = Ranks(world_size).run([&](SharedDeviceCommunicator& communicator, FakeStream& stream) {
    const auto rank = static_cast<std::size_t>(communicator.rank().value);
    communicator.reduce_scatter(fulls[rank].data(), set[rank].data(), kShard, /*accumulate=*/false, &stream);
    communicator.reduce_scatter(fulls[rank].data(), added[rank].data(), kShard, /*accumulate=*/true, &stream);
  });

  for (const Outcome& outcome : outcomes) QCOMPARE(outcome.error, std::string());
  for (std::size_t rank = 0; rank < n; ++rank) {
    QCOMPARE(set[rank], sum_in_rank_order(std::vector<float>(kShard), fulls, rank * kShard));
    QCOMPARE(added[rank], sum_in_rank_order(held[rank], fulls, rank * kShard));
  }
}

void SharedDeviceCommunicatorTest::all_reduce_is_the_sum_in_rank_order_on_every_rank() {
  QFETCH(int, world_size);
  std::vector<std::vector<double>> values;
  for (int rank = 0; rank < world_size; ++rank)
    values.push_back({0.1 * (rank + 1), 1.0 / (rank + 3), 1e17 / (rank + 1)});
  const std::vector<double> expected = sum_in_rank_order(std::vector<double>(3), values, 0);

  const auto outcomes = Ranks(world_size).run([&](SharedDeviceCommunicator& communicator, FakeStream& stream) {
    communicator.all_reduce_sum(values[static_cast<std::size_t>(communicator.rank().value)].data(), 3, &stream);
  });

  for (const Outcome& outcome : outcomes) QCOMPARE(outcome.error, std::string());
  for (const auto& of_rank : values) QCOMPARE(of_rank, expected);
}

void SharedDeviceCommunicatorTest::a_buffer_may_be_overwritten_by_what_follows_on_the_stream_data() {
  QTest::addColumn<int>("slow_rank");
  QTest::addRow("all late by chance") << -1;
  for (const int slow_rank : {0, 1, 2}) QTest::addRow("rank %d late", slow_rank) << slow_rank;
}

// The hosts run ahead: all rounds are enqueued before the first is done.
void SharedDeviceCommunicatorTest::a_buffer_may_be_overwritten_by_what_follows_on_the_stream() {
  QFETCH(int, slow_rank);
  constexpr std::size_t kRanks = 3, kRounds = 10;
  struct Buffers {
    float shard = 0, sum = 0;
    double value = 0;
    std::vector<float> gathered = std::vector<float>(kRanks), full = std::vector<float>(kRanks);
    int right = 0;
  };
  std::vector<Buffers> all(kRanks);

  const auto outcomes =
      Ranks(kRanks, kPatient, slow_rank).run([&](SharedDeviceCommunicator& communicator, FakeStream& stream) {
        const auto rank = static_cast<std::size_t>(communicator.rank().value);
        Buffers& own = all[rank];
        for (std::size_t round = 0; round < kRounds; ++round) {
          const auto mine = static_cast<float>(10 * round + rank), first = static_cast<float>(10 * round);
          stream.enqueue([&own, mine] { own.shard = mine; });
          communicator.all_gather(DType::kFloat32, &own.shard, own.gathered.data(), 1, &stream);
          stream.enqueue([&own, mine] {
            own.shard = -1;
            own.full.assign(kRanks, mine);
          });
          communicator.reduce_scatter(own.full.data(), &own.sum, 1, /*accumulate=*/false, &stream);
          stream.enqueue([&own, mine] {
            own.full.assign(kRanks, -1);
            own.value = mine;
          });
          communicator.all_reduce_sum(&own.value, 1, &stream);
          stream.enqueue([&own, first] {
            const bool gathered = own.gathered == std::vector<float>{first, first + 1, first + 2};
            if (gathered && own.sum == 3 * first + 3 && own.value == 3 * first + 3) ++own.right;
            own.value = -1;
          });
        }
      });

  for (const Outcome& outcome : outcomes) QCOMPARE(outcome.error, std::string());
  for (const Buffers& own : all) QCOMPARE(own.right, static_cast<int>(kRounds));
}

void SharedDeviceCommunicatorTest::a_rank_that_does_not_come_is_named() {
  std::vector<double> values(2, 1);

  const auto outcomes = Ranks(2, 50ms).run(
      [&](SharedDeviceCommunicator& communicator, FakeStream& stream) {
        communicator.all_reduce_sum(&values[static_cast<std::size_t>(communicator.rank().value)], 1, &stream);
      },
      /*came=*/1);

  QCOMPARE(outcomes[0].error, std::string("local rank 1 did not come to all_reduce of 1 fp64 within 0.05 s"));
  QVERIFY(!outcomes[0].own);
}

void SharedDeviceCommunicatorTest::ranks_that_issue_different_collectives_are_named() {
  std::vector<std::vector<float>> fulls(2, std::vector<float>(8));
  std::vector<float> shards(8);

  const auto outcomes = Ranks(2).run([&](SharedDeviceCommunicator& communicator, FakeStream& stream) {
    const std::size_t rank = communicator.rank().value == 0 ? 0 : 1;
    if (rank == 0) communicator.all_gather(DType::kFloat32, shards.data(), fulls[0].data(), 4, &stream);
    if (rank == 1) communicator.reduce_scatter(fulls[1].data(), &shards[4], 4, false, &stream);
  });

  QVERIFY(outcomes[0].own != outcomes[1].own);  // whichever saw it first
  QCOMPARE(outcomes[0].error, outcomes[1].error);
  const QString error = QString::fromStdString(outcomes[0].error);
  QVERIFY2(error.contains("disagree on a collective: "), outcomes[0].error.c_str());
  QVERIFY2(error.contains("all_gather of 4 fp32 on rank 0"), outcomes[0].error.c_str());
  QVERIFY2(error.contains("reduce_scatter of 4 fp32 on rank 1"), outcomes[0].error.c_str());
}

void SharedDeviceCommunicatorTest::a_device_that_fails_on_one_rank_frees_the_others() {
  std::vector<std::vector<float>> fulls(3, std::vector<float>(3));
  std::vector<float> shards(3);
  Ranks ranks(3);
  ranks.device().fail_copy(5);

  const auto outcomes = ranks.run([&](SharedDeviceCommunicator& communicator, FakeStream& stream) {
    const auto rank = static_cast<std::size_t>(communicator.rank().value);
    communicator.all_gather(DType::kFloat32, &shards[rank], fulls[rank].data(), 1, &stream);
  });

  for (const Outcome& outcome : outcomes) {
    QCOMPARE(outcome.error, std::string("copy on the device: an illegal address"));
  }
  QCOMPARE(outcomes[0].own + outcomes[1].own + outcomes[2].own, 1);
}

void SharedDeviceCommunicatorTest::an_abort_from_another_thread_frees_who_waits() {
  double value = 1;

  const auto outcomes = Ranks(2).run([&](SharedDeviceCommunicator& communicator, FakeStream& stream) {
    if (communicator.rank().value == 0) communicator.abort("out of memory");
    if (communicator.rank().value == 1) communicator.all_reduce_sum(&value, 1, &stream);
  });

  QCOMPARE(outcomes[0].error, std::string());
  QCOMPARE(outcomes[1].error, std::string("out of memory"));
}

void SharedDeviceCommunicatorTest::a_shard_inside_what_is_reduced_is_refused() {
  std::vector<float> full(4);

  const auto outcomes = Ranks(1).run([&](SharedDeviceCommunicator& communicator, FakeStream& stream) {
    communicator.reduce_scatter(full.data(), full.data(), 4, false, &stream);
  });

  QVERIFY2(outcomes[0].error.ends_with("the shard lies in what is reduced"), outcomes[0].error.c_str());
}

QTEST_GUILESS_MAIN(SharedDeviceCommunicatorTest)
#include "shared_device_communicator_test.moc"
