// What a proxy says of where a connection comes from: both versions of the PROXY protocol, to the byte.
#include "net/transport/proxy_header.h"

#include <QtTest/QTest>

using namespace atl;
using namespace std::string_literals;

namespace {

const std::string kSignature = "\r\n\r\n\0\r\nQUIT\n"s;
const std::string kV4 = "\xc6\x33\x64\x16\xcb\x00\x71\x07\x8b\x3e\x01\xbb"s;  // 198.51.100.22 to 203.0.113.7
const std::string kV6 =
    "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"s + "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x02"s + "\x8b\x3e\x01\xbb"s;
const std::string kMapped = "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc6\x33\x64\x16"s + kV6.substr(16);

std::string binary(char version_and_command, char kind, const std::string& addresses) {
  return kSignature + version_and_command + kind + static_cast<char>(addresses.size() >> 8) +
         static_cast<char>(addresses.size()) + addresses;
}

QByteArray bytes_of(const std::string& text) { return {text.data(), static_cast<qsizetype>(text.size())}; }

// Reads as a hub does: what the header needs, and no byte of what follows it.
Result<std::string> header_of(const std::string& stream) {
  std::size_t read = 0;
  for (std::size_t needs = kProxyFirstBytes; needs > 0;) {
    if (stream.size() - read < needs) return Error{ErrorCode::kTimeout, "it waits for more"};
    read += needs;
    ATOLL_ASSIGN_OR_RETURN(needs, proxy_header_needs(as_bytes(stream).first(read)));
  }
  return stream.substr(0, read);
}

}  // namespace

class ProxyHeaderTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_header_names_its_source_and_ends_where_it_ends_data();
  void a_header_names_its_source_and_ends_where_it_ends();
  void what_is_no_header_of_tcp_is_refused_data();
  void what_is_no_header_of_tcp_is_refused();
  void a_header_that_is_not_whole_is_waited_for();
};

void ProxyHeaderTest::a_header_names_its_source_and_ends_where_it_ends_data() {
  QTest::addColumn<QByteArray>("header");
  QTest::addColumn<QString>("source");  // empty: the proxy's own
  const auto row = [](const char* name, const std::string& header, const char* source) {
    QTest::newRow(name) << bytes_of(header) << QString(source);
  };
  row("text, IPv4", "PROXY TCP4 198.51.100.22 203.0.113.7 35646 443\r\n", "198.51.100.22");
  row("text, IPv6", "PROXY TCP6 2001:db8::1 2001:db8::2 0 65535\r\n", "2001:db8::1");
  row("text, IPv4 in IPv6", "PROXY TCP6 ::ffff:198.51.100.22 ::1 1 2\r\n", "198.51.100.22");
  row("text, the shortest", "PROXY UNKNOWN\r\n", "");
  row("text, unknown with words", "PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", "");
  row("binary, IPv4", binary(0x21, 0x11, kV4), "198.51.100.22");
  row("binary, IPv6", binary(0x21, 0x21, kV6), "2001:db8::1");
  row("binary, IPv4 in IPv6", binary(0x21, 0x21, kMapped), "198.51.100.22");
  row("binary, with more after the addresses", binary(0x21, 0x11, kV4 + "\x03\0\x04\xde\xad\xbe\xef"s),
      "198.51.100.22");
  row("binary, its own", binary(0x20, 0x00, ""), "");
  row("binary, its own with addresses", binary(0x20, 0x11, kV4), "");
  row("binary, of a kind that it does not say", binary(0x21, 0x00, kV4), "");
}

void ProxyHeaderTest::a_header_names_its_source_and_ends_where_it_ends() {
  QFETCH(const QByteArray, header);
  QFETCH(const QString, source);

  for (const std::string& after : {"\x16\x03\x01"s, "\r\n\r\n"s, std::string(5000, 'x')}) {
    const auto read = header_of(header.toStdString() + after);
    QVERIFY2(read.ok(), read.ok() ? "" : read.error().message.c_str());
    QCOMPARE(bytes_of(*read), header);
  }
  QVERIFY(begins_proxy_header(as_bytes(header.toStdString())));
  const auto found = proxied_source(as_bytes(header.toStdString()));
  QVERIFY2(found.ok(), found.ok() ? "" : found.error().message.c_str());
  QCOMPARE(QString::fromStdString(found->value_or("")), source);
}

void ProxyHeaderTest::what_is_no_header_of_tcp_is_refused_data() {
  QTest::addColumn<QByteArray>("stream");
  const auto row = [](const char* name, const std::string& stream) { QTest::newRow(name) << bytes_of(stream); };
  row("a TLS hello", "\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03xxxxxxxxxxx"s);
  row("a request", "GET / HTTP/1.1\r\nHost: hub\r\n\r\n");
  row("small letters", "proxy tcp4 1.2.3.4 1.2.3.4 1 2\r\n");
  row("text of another protocol", "PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n");
  row("text, a name", "PROXY TCP4 hub.example 1.2.3.4 1 2\r\n");
  row("text, IPv6 said to be IPv4", "PROXY TCP4 ::1 ::1 1 2\r\n");
  row("text, IPv4 said to be IPv6", "PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n");
  row("text, too few words", "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n");
  row("text, too many words", "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n");
  row("text, two spaces", "PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n");
  row("text, a port too great", "PROXY TCP4 1.2.3.4 1.2.3.4 65536 2\r\n");
  row("text, a port that is none", "PROXY TCP4 1.2.3.4 1.2.3.4 1 -2\r\n");
  row("text without end", "PROXY TCP4 " + std::string(200, '1'));
  row("text that ends too late", "PROXY UNKNOWN " + std::string(100, ' ') + "\r\n");
  row("text with a line within", "PROXY \r\nxxxx TCP4 1.2.3.4 1.2.3.4 1 2\r\n");
  row("binary, version 1", binary(0x11, 0x11, kV4));
  row("binary, version 3", binary(0x31, 0x11, kV4));
  row("binary, another command", binary(0x22, 0x11, kV4));
  row("binary, UDP", binary(0x21, 0x12, kV4));
  row("binary, a Unix socket", binary(0x21, 0x31, std::string(216, 'x')));
  row("binary, IPv4 cut short", binary(0x21, 0x11, kV4.substr(0, 11)));
  row("binary, IPv6 cut short", binary(0x21, 0x21, kV6.substr(0, 35)));
  row("binary, too long", binary(0x21, 0x11, kV4 + std::string(4096, 'x')));
}

void ProxyHeaderTest::what_is_no_header_of_tcp_is_refused() {
  QFETCH(const QByteArray, stream);

  const auto header = header_of(stream.toStdString());

  const Error why = header.ok() ? proxied_source(as_bytes(*header)).error() : header.error();
  QCOMPARE(why.code, ErrorCode::kProtocol);
}

void ProxyHeaderTest::a_header_that_is_not_whole_is_waited_for() {
  for (const std::string& header : {"PROXY TCP4 198.51.100.22 203.0.113.7 35646 443\r\n"s, binary(0x21, 0x11, kV4)}) {
    for (std::size_t length = 0; length < header.size(); ++length) {
      const auto read = header_of(header.substr(0, length));
      QVERIFY(!read.ok());
      QCOMPARE(read.error().code, ErrorCode::kTimeout);
      QVERIFY(!proxied_source(as_bytes(header.substr(0, length))).ok());
    }
  }
}

QTEST_APPLESS_MAIN(ProxyHeaderTest)
#include "proxy_header_test.moc"
