// Which addresses are on the internet, and which of a network of somebody's own.
#include "net/base/network_address.h"

#include <QtTest/QTest>

using namespace atl;

class NetworkAddressTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_address_is_public_or_not_data();
  void an_address_is_public_or_not();
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

QTEST_GUILESS_MAIN(NetworkAddressTest)
#include "network_address_test.moc"
