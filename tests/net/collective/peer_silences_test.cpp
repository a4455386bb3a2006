// Of whom what is known of its silences is kept, and for how long.
#include "net/collective/peer_silences.h"

#include <QtTest>

using namespace atl;
using namespace std::chrono_literals;

namespace {

const IslandId kSelf{"isl-self"};
const Clock::time_point kStart = Clock::time_point(100h);
constexpr std::chrono::milliseconds kTimeout{6'000};

RingMember member(const std::string& name, const std::string& host = "10.0.0.1") {
  return {.id = IslandId{name}, .address = {host, 47'000}};
}

std::vector<RingMember> with(std::vector<RingMember> others) {
  others.push_back(member(kSelf.value));
  return others;
}

// An attempt in which `peer` never pauses.
void hear(PeerSilences& silences, const std::string& peer) {
  SilenceLimit& sent = silences.at(IslandId{peer}).sent;
  sent.begin(kTimeout, kStart);
  for (auto now = kStart; now < kStart + 1min;) sent.look(now += 50ms, true);
}

// Of a peer of which nothing is known, a second tells too little.
bool is_known(PeerSilences& silences, const std::string& peer) {
  SilenceLimit sent = silences.at(IslandId{peer}).sent;
  sent.begin(kTimeout, kStart);
  for (auto now = kStart; now < kStart + 1s;) sent.look(now += 50ms, true);
  return sent.limit(0ms) < kTimeout;
}

}  // namespace

class PeerSilencesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_peer_that_sits_attempts_out_is_known_when_it_is_back() {
    PeerSilences silences;
    silences.begin_attempt(kSelf, with({member("isl-1"), member("isl-2")}));
    hear(silences, "isl-1");
    for (int i = 0; i < 100; ++i) silences.begin_attempt(kSelf, with({member("isl-2")}));

    silences.begin_attempt(kSelf, with({member("isl-1"), member("isl-2")}));

    QVERIFY(is_known(silences, "isl-1"));
    QVERIFY(!is_known(silences, "isl-2"));
  }

  void of_a_peer_that_is_somewhere_else_nothing_is_known() {
    PeerSilences silences;
    silences.begin_attempt(kSelf, with({member("isl-1", "10.0.0.1")}));
    hear(silences, "isl-1");
    silences.begin_attempt(kSelf, with({member("isl-1", "10.0.0.1")}));
    QVERIFY(is_known(silences, "isl-1"));

    silences.begin_attempt(kSelf, with({member("isl-1", "10.0.0.2")}));

    QVERIFY(!is_known(silences, "isl-1"));
  }

  void nor_of_any_by_an_island_that_is_somewhere_else_itself() {
    PeerSilences silences;
    silences.begin_attempt(kSelf, with({member("isl-1")}));
    hear(silences, "isl-1");

    silences.begin_attempt(kSelf, {member("isl-1"), member(kSelf.value, "10.0.0.9")});

    QVERIFY(!is_known(silences, "isl-1"));
  }

  void of_those_that_are_in_no_attempt_the_last_ones_are_kept() {
    PeerSilences silences;
    silences.begin_attempt(kSelf, with({member("isl-old")}));
    hear(silences, "isl-old");
    silences.begin_attempt(kSelf, with({member("isl-1")}));
    hear(silences, "isl-1");
    for (std::size_t i = 0; i < PeerSilences::kMost - 3; ++i) {
      silences.begin_attempt(kSelf, with({member("isl-made-up-" + std::to_string(i))}));
      QVERIFY(silences.size() <= PeerSilences::kMost);
    }
    QCOMPARE(silences.size(), PeerSilences::kMost);

    silences.begin_attempt(kSelf, with({member("isl-1"), member("isl-2")}));

    QVERIFY(is_known(silences, "isl-1"));
    silences.begin_attempt(kSelf, with({member("isl-old")}));
    QVERIFY(!is_known(silences, "isl-old"));
    QCOMPARE(silences.size(), PeerSilences::kMost);
  }

  void members_are_known_however_many_they_are() {
    PeerSilences silences;
    std::vector<RingMember> members;
    for (std::size_t i = 0; i < 2 * PeerSilences::kMost; ++i) members.push_back(member("isl-" + std::to_string(i)));
    silences.begin_attempt(kSelf, with(members));
    hear(silences, "isl-0");
    hear(silences, "isl-255");

    silences.begin_attempt(kSelf, with(members));

    QVERIFY(is_known(silences, "isl-0") && is_known(silences, "isl-255"));
  }
};

QTEST_APPLESS_MAIN(PeerSilencesTest)
#include "peer_silences_test.moc"
