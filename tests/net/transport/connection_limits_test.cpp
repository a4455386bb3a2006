#include "net/transport/connection_limits.h"

#include <QtTest>
#include <random>
#include <set>

using namespace atl;
using namespace std::chrono_literals;

namespace {

NetworkAddress at(const std::string& host) { return NetworkAddress::parse(host).value(); }

NetworkAddress random_v4(std::mt19937& random) {
  const auto byte = [&] { return std::to_string(1 + random() % 250); };
  return at(byte() + "." + byte() + "." + byte() + "." + byte());
}

constexpr Clock::time_point kNow{};

}  // namespace

class ConnectionLimitsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void addresses_are_taken_for_machines_and_networks_data();
  void addresses_are_taken_for_machines_and_networks();
  void a_newcomer_is_let_in_and_the_oldest_silent_one_goes();
  void one_that_spoke_stays_while_silent_ones_flood();
  void a_flood_that_speaks_pushes_itself_out_and_not_who_is_about_to_speak();
  void one_network_does_not_fill_the_places_of_strangers();
  void strangers_do_not_take_the_places_of_known_addresses();
  void a_verified_connection_counts_against_its_member_alone();
  void a_member_that_is_greedy_loses_its_own_idle_connections();
  void a_member_whose_connections_are_all_busy_gets_no_more();
  void when_all_places_of_members_are_taken_whoever_has_most_gives_one();
  void one_who_comes_from_everywhere_makes_no_other_member_forgotten();
  void few_descriptors_make_all_limits_smaller();
  void whatever_floods_a_member_gets_in_data();
  void whatever_floods_a_member_gets_in();
  void random_events_keep_every_bound();
};

void ConnectionLimitsTest::addresses_are_taken_for_machines_and_networks_data() {
  QTest::addColumn<QString>("one");
  QTest::addColumn<QString>("other");
  QTest::addColumn<bool>("same_machine");
  QTest::addColumn<bool>("same_network");
  QTest::newRow("itself") << "203.0.113.7"
                          << "203.0.113.7" << true << true;
  QTest::newRow("its neighbour") << "203.0.113.7"
                                 << "203.0.113.8" << false << true;
  QTest::newRow("another /24") << "203.0.113.7"
                               << "203.0.114.7" << false << false;
  QTest::newRow("written for IPv6") << "203.0.113.7"
                                    << "::ffff:203.0.113.7" << true << true;
  QTest::newRow("one /64") << "2001:db8:1:2::3"
                           << "2001:db8:1:2:ffff::1" << true << true;
  QTest::newRow("one /48") << "2001:db8:1:2::3"
                           << "2001:db8:1:3::3" << false << true;
  QTest::newRow("another /48") << "2001:db8:1:2::3"
                               << "2001:db8:2:2::3" << false << false;
  QTest::newRow("with a zone") << "fe80::1%eth0"
                               << "fe80::1" << true << true;
}

void ConnectionLimitsTest::addresses_are_taken_for_machines_and_networks() {
  QFETCH(QString, one);
  QFETCH(QString, other);
  const NetworkAddress a = at(one.toStdString()), b = at(other.toStdString());

  QTEST(a.machine() == b.machine(), "same_machine");
  QTEST(a.network() == b.network(), "same_network");
  QVERIFY(!NetworkAddress::parse("hub.example.org"));
}

void ConnectionLimitsTest::a_newcomer_is_let_in_and_the_oldest_silent_one_goes() {
  ConnectionLimits limits({.of_address = 4});
  std::vector<ConnectionId> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(limits.admit(at("192.0.2.1")).id);
  limits.spoke(ids[0]);

  const auto admitted = limits.admit(at("192.0.2.1"));

  QCOMPARE(admitted.dropped, std::vector{ids[1]});
  QVERIFY(limits.holds(admitted.id) && limits.holds(ids[0]) && !limits.holds(ids[1]));
  QCOMPARE(limits.size(), std::size_t{4});
}

void ConnectionLimitsTest::one_that_spoke_stays_while_silent_ones_flood() {
  ConnectionLimits limits(ConnectionSizes{});
  const ConnectionId hand_shaker = limits.admit(at("192.0.2.1")).id;
  limits.spoke(hand_shaker);

  for (int i = 0; i < 10'000; ++i) (void)limits.admit(at("192.0.2.1"));

  QVERIFY(limits.holds(hand_shaker));
}

void ConnectionLimitsTest::a_flood_that_speaks_pushes_itself_out_and_not_who_is_about_to_speak() {
  const ConnectionSizes sizes;
  ConnectionLimits limits(sizes);
  for (std::size_t i = 0; i < sizes.of_address; ++i) limits.spoke(limits.admit(at("192.0.2.1")).id);
  const ConnectionId newcomer = limits.admit(at("192.0.2.1")).id;

  for (std::size_t i = 0; i < sizes.of_address / 2; ++i) limits.spoke(limits.admit(at("192.0.2.1")).id);

  QVERIFY(limits.holds(newcomer));
}

void ConnectionLimitsTest::one_network_does_not_fill_the_places_of_strangers() {
  const ConnectionSizes sizes;
  ConnectionLimits limits(sizes);
  const ConnectionId stranger = limits.admit(at("198.51.100.1")).id;

  for (int i = 0; i < 20'000; ++i) (void)limits.admit(at("192.0.2." + std::to_string(i % 256)));
  for (int i = 0; i < 20'000; ++i) (void)limits.admit(at("2001:db8:0:" + std::to_string(i % 256) + "::1"));

  QVERIFY(limits.holds(stranger));
  QCOMPARE(limits.size(), 1 + 2 * sizes.of_network);
}

void ConnectionLimitsTest::strangers_do_not_take_the_places_of_known_addresses() {
  std::mt19937 random(1);
  ConnectionLimits limits(ConnectionSizes{});
  limits.expect({at("10.0.0.1")});
  const auto before = limits.admit(at("10.0.0.2"));
  (void)limits.verified(before.id, IslandId{"isl-1"}, kNow);
  const ConnectionId expected = limits.admit(at("10.0.0.1")).id, seen = limits.admit(at("10.0.0.2")).id;

  for (int i = 0; i < 20'000; ++i) (void)limits.admit(random_v4(random));

  QVERIFY(!before.known);
  QVERIFY(limits.holds(expected) && limits.holds(seen));
}

void ConnectionLimitsTest::a_verified_connection_counts_against_its_member_alone() {
  ConnectionLimits limits(ConnectionSizes{});
  const ConnectionId member = limits.admit(at("192.0.2.1")).id;
  QVERIFY(limits.verified(member, IslandId{"isl-1"}, kNow).empty());
  limits.set_idle(member, kNow);

  for (int i = 0; i < 10'000; ++i) limits.spoke(limits.admit(at("192.0.2.1")).id);

  QVERIFY(limits.holds(member));
}

void ConnectionLimitsTest::a_member_that_is_greedy_loses_its_own_idle_connections() {
  ConnectionLimits limits({.of_member = 3});
  std::vector<ConnectionId> ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(limits.admit(at("192.0.2.1")).id);
    const auto dropped = limits.verified(ids.back(), IslandId{"isl-1"}, kNow + i * 1s);
    if (i == 0) limits.set_busy(ids[0]);
    QCOMPARE(dropped, i < 3 ? ConnectionLimits::Dropped{} : ConnectionLimits::Dropped{ids[1]});
  }

  const ConnectionId other = limits.admit(at("192.0.2.1")).id;

  QVERIFY(limits.verified(other, IslandId{"isl-2"}, kNow).empty());
}

void ConnectionLimitsTest::a_member_whose_connections_are_all_busy_gets_no_more() {
  ConnectionLimits limits({.of_member = 3});
  for (int i = 0; i < 3; ++i) {
    const ConnectionId id = limits.admit(at("192.0.2.1")).id;
    (void)limits.verified(id, IslandId{"isl-1"}, kNow);
    limits.set_busy(id);
  }

  const ConnectionId newcomer = limits.admit(at("192.0.2.1")).id;

  QCOMPARE(limits.verified(newcomer, IslandId{"isl-1"}, kNow), ConnectionLimits::Dropped{newcomer});
  QVERIFY(!limits.holds(newcomer));
}

void ConnectionLimitsTest::when_all_places_of_members_are_taken_whoever_has_most_gives_one() {
  ConnectionLimits limits({.of_member = 16, .of_members = 8});
  std::vector<ConnectionId> greedy;
  for (int i = 0; i < 8; ++i) {
    greedy.push_back(limits.admit(at("192.0.2.1")).id);
    QVERIFY(limits.verified(greedy.back(), IslandId{"isl-1"}, kNow).empty());
    limits.set_busy(greedy.back());
  }
  const auto of_other = [&] {
    const ConnectionId id = limits.admit(at("192.0.2.2")).id;
    const auto dropped = limits.verified(id, IslandId{"isl-2"}, kNow);
    limits.set_busy(id);
    return std::pair(id, dropped);
  };

  for (int i = 0; i < 4; ++i) QCOMPARE(of_other().second, ConnectionLimits::Dropped{greedy[7 - i]});
  const auto [fifth, dropped] = of_other();

  QCOMPARE(dropped, ConnectionLimits::Dropped{fifth});  // it would have more than the other
}

void ConnectionLimitsTest::one_who_comes_from_everywhere_makes_no_other_member_forgotten() {
  std::mt19937 random(2);
  ConnectionLimits limits(ConnectionSizes{});
  const auto visit = [&](const NetworkAddress& from, const std::string& member) {
    const ConnectionId id = limits.admit(from).id;
    (void)limits.verified(id, IslandId{member}, kNow);
    limits.closed(id);
  };
  visit(at("10.0.0.1"), "isl-steady");

  for (int i = 0; i < 5'000; ++i) visit(random_v4(random), "isl-restless");
  const bool still_known = limits.admit(at("10.0.0.1")).known;
  for (int i = 0; i < 5'000; ++i) visit(random_v4(random), "isl-" + std::to_string(i));

  QVERIFY(still_known);
  QCOMPARE(limits.remembered(), ConnectionLimits::kRememberedMembers);
}

void ConnectionLimitsTest::few_descriptors_make_all_limits_smaller() {
  const ConnectionSizes sizes;

  const ConnectionSizes few = sizes.within(1024), many = sizes.within(1 << 20);

  QVERIFY(few.of_strangers + few.of_known + few.of_members <= 512);
  QVERIFY(few.of_address < few.of_strangers && few.of_address >= 4);
  QCOMPARE(many.of_members, sizes.of_members);
  QVERIFY(sizes.within(0).of_strangers > 0);
}

void ConnectionLimitsTest::whatever_floods_a_member_gets_in_data() {
  QTest::addColumn<bool>("from_its_address");
  QTest::addColumn<int>("of_ten_speak");
  QTest::addColumn<bool>("is_known");
  for (const bool from_its_address : {true, false}) {
    for (const int of_ten_speak : {0, 1, 5, 9, 10}) {
      for (const bool is_known : {true, false}) {
        QTest::addRow("%s, %d of ten speak, %s", from_its_address ? "from behind its router" : "from anywhere",
                      of_ten_speak, is_known ? "a member of before" : "a newcomer")
            << from_its_address << of_ten_speak << is_known;
      }
    }
  }
}

// Ten strangers come between the member's first packet and its next, and twenty more until its handshake is done.
void ConnectionLimitsTest::whatever_floods_a_member_gets_in() {
  QFETCH(bool, from_its_address);
  QFETCH(int, of_ten_speak);
  QFETCH(bool, is_known);
  std::mt19937 random(3);
  ConnectionLimits limits(ConnectionSizes{});
  if (is_known) limits.expect({at("10.0.0.1")});
  const auto flood = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const auto id = limits.admit(from_its_address ? at("10.0.0.1") : random_v4(random)).id;
      if (static_cast<int>(random() % 10) < of_ten_speak) limits.spoke(id);
    }
  };
  flood(3'000);

  for (int i = 0; i < 200; ++i) {
    const ConnectionId member = limits.admit(at("10.0.0.1")).id;
    flood(10);
    QVERIFY(limits.holds(member));
    limits.spoke(member);
    flood(20);
    QVERIFY(limits.holds(member));
    QVERIFY(limits.verified(member, IslandId{"isl-1"}, kNow).empty());
    limits.closed(member);
  }
}

void ConnectionLimitsTest::random_events_keep_every_bound() {
  std::mt19937 random(4);
  const ConnectionSizes sizes{.of_address = 8,
                              .of_network = 16,
                              .of_strangers = 64,
                              .of_known_address = 12,
                              .of_known = 32,
                              .of_member = 4,
                              .of_members = 40};
  ConnectionLimits limits(sizes);
  limits.expect({at("10.0.0.1"), at("10.0.0.2")});
  std::set<ConnectionId> alive;
  const auto drop = [&](const ConnectionLimits::Dropped& dropped) {
    for (const ConnectionId id : dropped) QCOMPARE(alive.erase(id), std::size_t{1});
  };
  for (int i = 0; i < 50'000; ++i) {
    const auto some = alive.empty() ? alive.end() : std::next(alive.begin(), random() % alive.size());
    const ConnectionId id = some == alive.end() ? 0 : *some;
    const auto now = kNow + std::chrono::milliseconds(i);
    switch (random() % 8) {
      case 0: limits.spoke(id); break;
      case 1: drop(limits.verified(id, IslandId{std::to_string(random() % 20)}, now)); break;
      case 2: limits.set_idle(id, now); break;
      case 3: limits.set_busy(id); break;
      case 4:
        limits.closed(id);
        alive.erase(id);
        break;
      default: {
        const auto admitted =
            limits.admit(at("10.0." + std::to_string(random() % 3) + "." + std::to_string(random() % 5)));
        alive.insert(admitted.id);
        drop(admitted.dropped);
        QVERIFY(limits.holds(admitted.id));
      }
    }
    QCOMPARE(limits.size(), alive.size());
    QVERIFY(limits.size() <= sizes.of_strangers + sizes.of_known + sizes.of_members);
  }
  for (const ConnectionId id : alive) limits.closed(id);
  QCOMPARE(limits.size(), std::size_t{0});
}

QTEST_GUILESS_MAIN(ConnectionLimitsTest)
#include "connection_limits_test.moc"
