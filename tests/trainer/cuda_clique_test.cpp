// Where the ranks of several GPUs meet, over the fake NCCL: nobody who connects waits for a rank that does not come or
// has failed, and each is told why.
#include <QtTest>

#include <thread>

#include "tests/fakes/fake_nccl.h"
#include "trainer/device/cuda_collectives.h"
#include "trainer/fsdp/communicator.h"

using namespace atl;
using namespace atl::test;
using namespace std::chrono_literals;

namespace {

constexpr int kRanks = 3;

// Of the ranks but the last, which all come and connect: what ended it.
std::vector<std::string> join_all_but_one(CudaClique& clique) {
  std::vector<std::string> causes(kRanks - 1);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kRanks - 1; ++rank) {
    threads.emplace_back([&clique, &cause = causes[static_cast<std::size_t>(rank)], rank] {
      try {
        (void)clique.join(LocalRank{rank});
        cause = "connected";
      } catch (const CollectiveAborted& aborted) {
        cause = aborted.what();
      }
    });
  }
  threads.clear();
  return causes;
}

}  // namespace

class CudaCliqueTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_rank_that_never_comes_ends_those_that_connect_within_the_deadline() {
    FakeNccl nccl(3);
    {
      const auto clique = make_nccl_clique(FakeNccl::api(), kRanks, {.init = 300ms, .call = 120s, .poll = 5ms});

      for (const std::string& cause : join_all_but_one(*clique)) {
        QCOMPARE(cause, std::string("NCCL has not connected the local ranks within 0.3 s: rank 2 never came"));
      }
    }
    QCOMPARE(nccl.counts().open_comms, 0);
    QCOMPARE(nccl.counts().misuses, 0);
  }

  // Before its deadline, which is far away.
  void a_rank_that_fails_ends_those_that_connect_with_its_cause() {
    FakeNccl nccl(4);
    {
      const auto clique = make_nccl_clique(FakeNccl::api(), kRanks, {.init = 600s, .call = 600s, .poll = 5ms});
      const std::jthread fails([&] {
        while (nccl.counts().open_comms < kRanks - 1) std::this_thread::yield();  // they are connecting
        clique->abort("local rank 2: there is no memory");
      });

      for (const std::string& cause : join_all_but_one(*clique)) {
        QCOMPARE(cause, std::string("local rank 2: there is no memory"));
      }
    }
    QCOMPARE(nccl.counts().open_comms, 0);
    QCOMPARE(nccl.counts().misuses, 0);
  }

  void a_rank_that_comes_after_an_abort_is_told_why() {
    FakeNccl nccl(5);
    const auto clique = make_nccl_clique(FakeNccl::api(), kRanks, {.init = 600s, .call = 600s, .poll = 5ms});
    clique->abort("local rank 2: there is no memory");

    for (const std::string& cause : join_all_but_one(*clique)) {
      QCOMPARE(cause, std::string("local rank 2: there is no memory"));
    }
  }
};

QTEST_GUILESS_MAIN(CudaCliqueTest)
#include "cuda_clique_test.moc"
