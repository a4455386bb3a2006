// Both ends of a connection over loopback, on one thread.
#include "net/mesh/tls_stream.h"

#include <QtTest>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <numeric>
#include <optional>

#include "net/tls/context.h"
#include "tests/fakes/test_run.h"

namespace atl {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using Sizes = QList<int>;

namespace {

constexpr auto kValues = asio::as_tuple(asio::use_awaitable);
constexpr int kRecord = 16 * 1024;

std::string some_text(std::size_t size) {
  std::string text(size, 'x');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i * i % 26);
  return text;
}

}  // namespace

class TlsStreamTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void cleanup();
  void several_buffers_arrive_as_one_text_data();
  void several_buffers_arrive_as_one_text();
  void a_shutdown_is_heard_by_the_other_end();
  void a_read_can_be_cancelled();
  void a_handler_that_is_never_called_is_gone_with_its_loop();

 private:
  TestRun run_;
  std::unique_ptr<asio::io_context> io_;
  std::optional<asio::ssl::context> server_tls_, client_tls_;
  std::optional<TlsStream> server_, client_;
};

void TlsStreamTest::init() {
  io_ = std::make_unique<asio::io_context>();
  server_tls_ = share_context(TlsContext::island_server(run_.island(1)).value());
  client_tls_ = share_context(TlsContext::client(run_.island(2), kAlpnHttp).value());
  tcp::acceptor acceptor(*io_, {asio::ip::address_v4::loopback(), 0});
  tcp::socket there(*io_);
  there.connect(acceptor.local_endpoint());
  server_.emplace(boost::beast::tcp_stream(acceptor.accept()), *server_tls_);
  client_.emplace(boost::beast::tcp_stream(std::move(there)), *client_tls_);
  int shaken = 0;
  const auto count = [&](boost::system::error_code error) { shaken += error ? 0 : 1; };
  server_->async_handshake(asio::ssl::stream_base::server, count);
  client_->async_handshake(asio::ssl::stream_base::client, count);
  io_->run();
  QCOMPARE(shaken, 2);
  io_->restart();
}

void TlsStreamTest::cleanup() {
  client_.reset();
  server_.reset();
  io_.reset();
}

void TlsStreamTest::several_buffers_arrive_as_one_text_data() {
  QTest::addColumn<Sizes>("sizes");
  QTest::newRow("one") << Sizes{10};
  QTest::newRow("a header and what it heads") << Sizes{6, 100'000};
  QTest::newRow("empty ones between") << Sizes{0, 5, 0, 7, 0};
  QTest::newRow("a record") << Sizes{1, kRecord - 1};
  QTest::newRow("one byte more") << Sizes{1, kRecord};
  QTest::newRow("large ones") << Sizes{kRecord, kRecord + 1, 3 * kRecord, 1'000'000, 1};
}

void TlsStreamTest::several_buffers_arrive_as_one_text() {
  QFETCH(Sizes, sizes);
  const std::string text = some_text(static_cast<std::size_t>(std::accumulate(sizes.begin(), sizes.end(), 0)));
  std::vector<asio::const_buffer> buffers;
  std::size_t at = 0;
  for (const int size : sizes) {
    buffers.push_back(asio::buffer(text.data() + at, static_cast<std::size_t>(size)));
    at += static_cast<std::size_t>(size);
  }
  std::string came(text.size(), '\0'), came_back(text.size(), '\0');

  const auto talk = [&](TlsStream& stream, bool first, std::string& into) -> asio::awaitable<void> {
    if (first) co_await asio::async_write(stream, buffers, kValues);
    co_await asio::async_read(stream, asio::buffer(into), kValues);
    if (!first) co_await asio::async_write(stream, buffers, kValues);
  };
  asio::co_spawn(*io_, talk(*client_, true, came_back), asio::detached);
  asio::co_spawn(*io_, talk(*server_, false, came), asio::detached);
  io_->run();

  QVERIFY(came == text);
  QVERIFY(came_back == text);
}

void TlsStreamTest::a_shutdown_is_heard_by_the_other_end() {
  boost::system::error_code heard, answered;
  char byte = 0;
  server_->async_read_some(asio::buffer(&byte, 1), [&](boost::system::error_code error, std::size_t) {
    heard = error;
    server_->async_shutdown([](boost::system::error_code) {});
  });
  client_->async_shutdown([&](boost::system::error_code error) { answered = error; });
  io_->run();

  QCOMPARE(heard, boost::system::error_code(asio::error::eof));
  QVERIFY2(!answered, answered.message().c_str());
}

void TlsStreamTest::a_read_can_be_cancelled() {
  asio::cancellation_signal signal;
  boost::system::error_code ended;
  char byte = 0;
  server_->async_read_some(asio::buffer(&byte, 1),
                           asio::bind_cancellation_slot(
                               signal.slot(), [&](boost::system::error_code error, std::size_t) { ended = error; }));
  io_->poll();
  QVERIFY(!ended);

  signal.emit(asio::cancellation_type::terminal);
  io_->run();

  QCOMPARE(ended, boost::system::error_code(asio::error::operation_aborted));
}

void TlsStreamTest::a_handler_that_is_never_called_is_gone_with_its_loop() {
  auto owned = std::make_shared<int>(7);
  const std::weak_ptr<int> seen = owned;
  char byte = 0;
  server_->async_read_some(asio::buffer(&byte, 1),
                           [owned = std::move(owned)](boost::system::error_code, std::size_t) {});
  io_->poll();
  QVERIFY(!seen.expired());

  cleanup();

  QVERIFY(seen.expired());
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::TlsStreamTest)
#include "tls_stream_test.moc"
