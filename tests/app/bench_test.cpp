#include <QtTest>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/cli/bench/bench_figures.h"
#include "app/cli/bench/link_bench.h"
#include "tests/app/cli_run.h"

namespace atl::test {

class BenchTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void sizes_are_read_as_people_write_them();
  void all_reduce_verifies_and_prints_its_figures_as_json_data();
  void all_reduce_verifies_and_prints_its_figures_as_json();
  void quantise_prints_both_kernels_beside_memcpy();
  void an_unknown_format_is_a_usage_error_that_names_those_there_are();
  void a_link_is_measured_in_both_directions_with_and_without_tls();
  void a_listener_waits_no_longer_than_its_deadline();
  void link_without_an_end_says_what_to_do();
};

void BenchTest::sizes_are_read_as_people_write_them() {
  QCOMPARE(parse_size("256MiB").value(), std::uint64_t{256} << 20);
  QCOMPARE(parse_size("64 KiB").value(), std::uint64_t{64} << 10);
  QCOMPARE(parse_size("1000").value(), std::uint64_t{1000});
  for (const char* wrong : {"", "0", "-1", "1 mile", "99999999GiB", "MiB"}) QVERIFY2(!parse_size(wrong).ok(), wrong);
}

void BenchTest::all_reduce_verifies_and_prints_its_figures_as_json_data() {
  QTest::addColumn<QString>("islands");
  QTest::addColumn<QString>("wire");
  QTest::addColumn<QString>("schedule");
  const auto row = [](const char* name, const char* islands, const char* wire, const char* schedule) {
    QTest::newRow(name) << islands << wire << schedule;
  };
  row("two, int8", "2", "int8-block", "ring");
  row("three, fp32", "3", "fp32", "ring");
  row("three, directly", "3", "int8-block", "direct");
  row("one", "1", "int8-block", "ring");
}

void BenchTest::all_reduce_verifies_and_prints_its_figures_as_json() {
  QFETCH(QString, islands);
  QFETCH(QString, wire);
  QFETCH(QString, schedule);
  CliRun atoll;

  const CliOutcome outcome = atoll({"bench", "all-reduce", "--islands", islands.toStdString(), "--payload", "1MiB",
                                    "--wire", wire.toStdString(), "--schedule", schedule.toStdString(), "--connections",
                                    "2", "--repeat", "2", "--json"});

  QVERIFY2(outcome.exit_code == 0, outcome.err.c_str());
  const auto json = nlohmann::json::parse(outcome.out);
  QCOMPARE(json.at("seconds").size(), std::size_t{2});
  QVERIFY(json.at("median_seconds").get<double>() > 0);
  QVERIFY(json.at("relative_error").get<double>() < 0.02);
  QCOMPARE(json.at("schedule").get<std::string>(), schedule.toStdString());
}

void BenchTest::quantise_prints_both_kernels_beside_memcpy() {
  CliRun atoll;

  const CliOutcome outcome = atoll({"bench", "quantise", "--payload", "1MiB", "--threads", "2", "--repeat", "2"});

  QVERIFY2(outcome.exit_code == 0, outcome.err.c_str());
  const QString text = QString::fromStdString(outcome.out);
  QVERIFY2(text.contains("dequantise-and-add") && text.contains("% of memcpy"), outcome.out.c_str());
}

void BenchTest::an_unknown_format_is_a_usage_error_that_names_those_there_are() {
  CliRun atoll;

  const CliOutcome outcome = atoll({"bench", "quantise", "--wire", "int3"});

  QCOMPARE(outcome.exit_code, int{kExitUsage});
  QVERIFY(QString::fromStdString(outcome.err).contains("int8-block"));
}

void BenchTest::a_link_is_measured_in_both_directions_with_and_without_tls() {
  const AbortSignal never;
  std::promise<std::uint16_t> port;
  Status served;
  std::jthread listener([&] {
    served = serve_link_bench({"127.0.0.1", 0}, Deadline::after(std::chrono::seconds(30)), never,
                              [&](std::uint16_t at) { port.set_value(at); });
  });
  CliRun atoll;

  const CliOutcome outcome =
      atoll({"bench", "link", "127.0.0.1:" + std::to_string(port.get_future().get()), "--seconds", "0.5", "--json"});
  listener.join();

  QVERIFY2(outcome.exit_code == 0, outcome.err.c_str());
  QVERIFY2(served.ok(), served.ok() ? "" : served.error().message.c_str());
  const auto json = nlohmann::json::parse(outcome.out);
  QCOMPARE(json.at("transfers").size(), std::size_t{4});
  for (const auto& transfer : json.at("transfers")) {
    QVERIFY(transfer.at("bytes_per_second").get<double>() > 0);
    QVERIFY(!transfer.at("congestion_control").get<std::string>().empty());
  }
  QVERIFY(json.at("rtt_seconds").get<double>() > 0);
}

void BenchTest::a_listener_waits_no_longer_than_its_deadline() {
  const AbortSignal never;

  const Status served =
      serve_link_bench({"127.0.0.1", 0}, Deadline::after(std::chrono::milliseconds(50)), never, [](std::uint16_t) {});

  QVERIFY(!served.ok());
  QCOMPARE(served.error().code, ErrorCode::kTimeout);
}

void BenchTest::link_without_an_end_says_what_to_do() {
  CliRun atoll;

  const CliOutcome outcome = atoll({"bench", "link"});

  QCOMPARE(outcome.exit_code, int{kExitUsage});
  QVERIFY(QString::fromStdString(outcome.err).contains("--listen"));
}

}  // namespace atl::test

QTEST_GUILESS_MAIN(atl::test::BenchTest)
#include "bench_test.moc"
