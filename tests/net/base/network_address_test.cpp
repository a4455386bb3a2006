// Which addresses are on the internet, and which of a network of somebody's own.
#include "net/base/network_address.h"

#include <QtTest/QTest>

using namespace atl;

class NetworkAddressTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_address_is_public_or_not_data();
  void an_address_is_public_or_not();
  void who_comes_from_afar_names_nothing_near_data();
  void who_comes_from_afar_names_nothing_near();
  void a_range_holds_what_begins_alike();
};

void NetworkAddressTest::an_address_is_public_or_not_data() {
  QTest::addColumn<bool>("is_public");
  for (const char* host :
       {"1.1.1.1", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.1", "126.1.1.1", "169.253.1.1",
        "172.15.0.1", "172.32.0.1", "192.0.1.1", "192.167.1.1", "198.17.0.1", "198.20.0.1", "223.255.255.255",
        "2606:4700::1111", "2001:4860:4860::8888", "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::808:808"}) {
    QTest::newRow(host) << true;
  }
  for (const char* host : {"0.0.0.0",
                           "0.1.2.3",
                           "10.0.0.1",
                           "10.255.255.255",
                           "100.64.0.1",
                           "100.127.255.255",
                           "127.0.0.1",
                           "127.255.0.1",
                           "169.254.169.254",
                           "172.16.0.1",
                           "172.31.255.255",
                           "192.0.0.1",
                           "192.0.2.7",
                           "192.168.1.1",
                           "198.18.0.1",
                           "198.19.255.255",
                           "198.51.100.1",
                           "203.0.113.9",
                           "224.0.0.1",
                           "240.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::1",
                           "fc00::1",
                           "fd12::1",
                           "fe80::1",
                           "fe80::1%eth0",
                           "ff02::1",
                           "2001:db8::1",
                           "2001::1",
                           "2002:a00:1::1",
                           "3fff::1",
                           "::ffff:10.0.0.1",
                           "::ffff:127.0.0.1",
                           "64:ff9b::a00:1",
                           "64:ff9b:1::1"}) {
    QTest::newRow(host) << false;
  }
}

void NetworkAddressTest::an_address_is_public_or_not() {
  QFETCH(const bool, is_public);
  const auto address = NetworkAddress::parse(QTest::currentDataTag());
  QVERIFY(address.has_value());
  QCOMPARE(address->is_public(), is_public);
}

void NetworkAddressTest::who_comes_from_afar_names_nothing_near_data() {
  QTest::addColumn<QString>("to");
  QTest::addColumn<bool>("from_internet");
  QTest::addColumn<bool>("from_own_network");
  QTest::addColumn<bool>("from_this_machine");
  const auto row = [](const char* to, bool internet, bool own, bool machine) {
    QTest::newRow(to) << QString(to) << internet << own << machine;
  };
  for (const char* to : {"9.9.9.9", "2606:4700::1111", "::ffff:9.9.9.9", "64:ff9b::909:909"}) row(to, true, true, true);
  for (const char* to :
       {"10.0.0.9", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd12::1", "::ffff:10.0.0.1", "64:ff9b::a00:1"}) {
    row(to, false, true, true);
  }
  for (const char* to : {"169.254.169.254", "fe80::1", "127.0.0.1", "127.255.0.1", "::1", "::", "0.0.0.0",
                         "::ffff:127.0.0.1", "64:ff9b::7f00:1"}) {
    row(to, false, false, true);
  }
  for (const char* to : {"224.0.0.1", "255.255.255.255", "203.0.113.9", "240.0.0.1", "ff02::1", "2001:db8::1",
                         "2002:7f00:1::1", "::127.0.0.1"}) {
    row(to, false, false, false);
  }
}

void NetworkAddressTest::who_comes_from_afar_names_nothing_near() {
  QFETCH(const QString, to);
  QFETCH(const bool, from_internet);
  QFETCH(const bool, from_own_network);
  QFETCH(const bool, from_this_machine);
  const NetworkAddress named = NetworkAddress::parse(to.toStdString()).value();
  const auto may = [&](const char* from) { return NetworkAddress::parse(from)->may_name(named); };

  for (const char* from : {"8.8.8.8", "2a00:1450::1"}) QCOMPARE(may(from), from_internet);
  for (const char* from : {"10.1.2.3", "100.64.7.7", "fd00::2"}) QCOMPARE(may(from), from_own_network);
  for (const char* from : {"127.0.0.1", "::1"}) QCOMPARE(may(from), from_this_machine);
  QVERIFY(named.may_name(named));
}

void NetworkAddressTest::a_range_holds_what_begins_alike() {
  const auto holds = [](const char* range, const char* address) {
    return NetworkRange::parse(range).value().contains(NetworkAddress::parse(address).value());
  };

  QVERIFY(holds("10.0.0.5", "10.0.0.5") && holds("10.0.0.5", "::ffff:10.0.0.5") && !holds("10.0.0.5", "10.0.0.4"));
  QVERIFY(holds("10.0.0.0/23", "10.0.1.255") && !holds("10.0.0.0/23", "10.0.2.0"));
  QVERIFY(holds("10.0.0.77/31", "10.0.0.76") && !holds("10.0.0.77/31", "10.0.0.78"));
  QVERIFY(holds("fd00:1::/31", "fd00:0::7") && !holds("fd00:1::/31", "fd00:2::7"));
  QVERIFY(!holds("0.0.0.0/1", "fd00::1"));
  for (const char* none : {"", "hub.example", "10.0.0.0/0", "::/0", "10.0.0.0/33", "::1/129", "10.0.0.0/",
                           "10.0.0.0/-1", "10.0.0.0/8x", "10.0.0/8"}) {
    QVERIFY2(!NetworkRange::parse(none), none);
  }
}

QTEST_GUILESS_MAIN(NetworkAddressTest)
#include "network_address_test.moc"
