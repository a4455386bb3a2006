// The schedule of an all-reduce, chosen by the hub of a real run over an emulated internet: a model that is small
// beside the delay of its links is averaged directly once the hub knows the links, and around the ring when a pair of
// islands cannot reach each other.
#include <QtTest>
#include <fstream>

#include "tests/wan/wan_run.h"

namespace atl::wan {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kBound{240};

}  // namespace

class WanDirectTest : public QObject {
  Q_OBJECT

  std::unique_ptr<WanRun> run_;

  std::size_t lines_with(const std::string& text) const {
    std::ifstream log(run_->directory() / "hub.log");
    std::size_t found = 0;
    for (std::string line; std::getline(log, line);) found += line.find(text) != std::string::npos ? 1 : 0;
    return found;
  }
  // So many rounds are committed from now on, each by all islands and with equal hashes.
  bool commits(std::uint32_t rounds) {
    const std::uint32_t next = run_->state().outer_step;
    for (std::uint32_t round = next; round < next + rounds; ++round) {
      const auto record = run_->wait_for_commit(round, kBound);
      if (!record || record->members != 4 || record->outer_hashes_equal != true) return false;
    }
    return true;
  }

 private Q_SLOTS:
  void initTestCase() {
    if (const auto reason = WanBox::unavailable()) QSKIP(reason->c_str());
    // Probes of the links end with the inner phase, and take some seconds each.
    run_ = std::make_unique<WanRun>(WanRunOptions{
        .bits_per_second = 200e6, .delay = milliseconds(150), .dead_after = milliseconds(6'000), .inner_steps = 200});
  }
  void cleanupTestCase() { run_.reset(); }

  void rounds_go_directly_once_the_links_are_known();
  void a_pair_that_is_cut_goes_on_around_the_ring();
};

void WanDirectTest::rounds_go_directly_once_the_links_are_known() {
  QVERIFY(run_->wait_until([&](const HubState&) { return lines_with("\"directly\":true") > 0; }, kBound));

  QVERIFY(commits(2));
  QVERIFY(lines_with("\"directly\":true") >= 2);
}

void WanDirectTest::a_pair_that_is_cut_goes_on_around_the_ring() {
  run_->box().cut(WanRun::host_of_island(0), WanRun::host_of_island(1));

  QVERIFY(run_->wait_until([&](const HubState&) { return lines_with("goes on around the ring") > 0; }, kBound));
  const std::size_t directly = lines_with("\"directly\":true");
  QVERIFY(commits(3));

  QCOMPARE(lines_with("\"directly\":true"), directly);  // nor in the rounds after it
}

}  // namespace atl::wan

QTEST_GUILESS_MAIN(atl::wan::WanDirectTest)
#include "wan_direct_test.moc"
