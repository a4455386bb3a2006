#include "net/mesh/spawn.h"

#include <QtTest>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <new>

namespace atl {

namespace asio = boost::asio;

class SpawnTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void what_a_coroutine_throws_is_told_data();
  void what_a_coroutine_throws_is_told();
  void one_that_ends_well_is_not_heard_of();
};

namespace {

asio::awaitable<void> throw_later(int kind, std::shared_ptr<bool> owned) {
  co_await asio::post(asio::use_awaitable);
  if (kind == 0) throw std::bad_alloc();
  if (kind == 1) throw std::runtime_error("reef");
  if (kind == 2) throw 7;
  *owned = true;
}

}  // namespace

void SpawnTest::what_a_coroutine_throws_is_told_data() {
  QTest::addColumn<int>("kind");
  QTest::addColumn<QString>("says");
  QTest::newRow("no memory") << 0 << "bad_alloc";
  QTest::newRow("an error") << 1 << "reef";
  QTest::newRow("something else") << 2 << "another kind";
}

void SpawnTest::what_a_coroutine_throws_is_told() {
  QFETCH(int, kind);
  QFETCH(QString, says);
  asio::io_context io;
  auto owned = std::make_shared<bool>(false);
  const std::weak_ptr<bool> seen = owned;
  std::string what;

  spawn(io, throw_later(kind, std::move(owned)), [&](const std::string& told) {
    what = told;
    QVERIFY(seen.expired());  // what it owned is closed by then
  });
  io.run();

  QVERIFY2(QString::fromStdString(what).contains(says), what.c_str());
}

void SpawnTest::one_that_ends_well_is_not_heard_of() {
  asio::io_context io;
  const auto owned = std::make_shared<bool>(false);
  bool failed = false;

  spawn(io, throw_later(3, owned), [&](const std::string&) { failed = true; });
  io.run();

  QVERIFY(*owned && !failed);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::SpawnTest)
#include "spawn_test.moc"
