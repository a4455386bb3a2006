// What the probes of the node check find on this machine and on ones made of files; and the check's own order.
#include <sys/stat.h>

#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "net/check/node_check.h"
#include "net/check/probe_disk.h"
#include "net/check/probe_host.h"
#include "net/check/report_file.h"

using namespace atl;

namespace {

std::filesystem::path path_of(const QTemporaryDir& directory) { return directory.path().toStdString(); }

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// Recorded in place of measured.
class FixedProbes : public CheckProbes {
 public:
  void learn_run(NodeFacts& facts, CheckPolicy& policy) override {
    facts.run = run;
    if (!own_policy.required.empty()) policy = own_policy;
  }
  void look_at_host(HostFacts& host) override { host.ram_bytes = 64'000'000'000; }
  void measure_disk(DiskFacts& disk) override {
    disk.free_bytes = 1'000'000'000'000;
    disk.write_bytes_per_second = 1e9;
  }
  void list_gpus(GpuFacts&) override {}
  void measure_network(NetFacts& net) override { net.not_measured = "no run"; }
  void measure_gpus(GpuFacts&) override { ++measured; }

  std::optional<RunNeeds> run;
  CheckPolicy own_policy;
  int measured = 0;
};

std::vector<std::string> ids_of(const CheckReport& report) {
  std::vector<std::string> ids;
  for (const CheckRow& row : report.rows) ids.push_back(row.id);
  return ids;
}

}  // namespace

class ProbesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void memory_is_what_the_control_group_allows_data();
  void memory_is_what_the_control_group_allows();
  void this_machine_has_cores_memory_and_files();
  void an_xid_is_read_from_the_kernels_log_data();
  void an_xid_is_read_from_the_kernels_log();
  void a_disk_is_measured_and_left_as_it_was();
  void a_directory_that_is_not_there_yet_is_measured_by_its_parent();
  void a_place_where_nothing_can_be_written_is_named();
  void quick_leaves_the_long_rows_out();
  void a_required_row_is_looked_at_in_a_quick_check_too();
  void a_check_that_is_cut_short_says_so();
  void a_report_is_kept_for_its_owner_alone();
};

void ProbesTest::memory_is_what_the_control_group_allows_data() {
  QTest::addColumn<QByteArray>("limit");
  QTest::addColumn<quint64>("bytes");
  QTest::newRow("no control group") << QByteArray() << quint64{16'000 * 1024};
  QTest::newRow("unlimited") << QByteArray("max\n") << quint64{16'000 * 1024};
  QTest::newRow("less") << QByteArray("1048576\n") << quint64{1048576};
  QTest::newRow("more than there is") << QByteArray("99999999999\n") << quint64{16'000 * 1024};
  QTest::newRow("damaged") << QByteArray("-\n") << quint64{16'000 * 1024};
}

void ProbesTest::memory_is_what_the_control_group_allows() {
  QFETCH(const QByteArray, limit);
  QFETCH(const quint64, bytes);
  const QTemporaryDir root;
  write(path_of(root) / "proc/meminfo", "MemTotal:       16000 kB\nMemFree:  1 kB\n");
  if (!limit.isEmpty()) write(path_of(root) / "sys/fs/cgroup/memory.max", limit.toStdString());

  QCOMPARE(quint64{probe_host(path_of(root)).ram_bytes}, bytes);
}

void ProbesTest::this_machine_has_cores_memory_and_files() {
  const HostFacts host = probe_host();

  QVERIFY(host.cores >= 1);
  QVERIFY(host.ram_bytes > 100'000'000);
  QVERIFY(host.nofile >= 256);
  QVERIFY(!host.congestion_control.empty());
  QVERIFY(host.tcp_send_bytes && *host.tcp_send_bytes >= 65'536);
  QVERIFY(host.tcp_receive_bytes && *host.tcp_receive_bytes >= 65'536);
}

void ProbesTest::an_xid_is_read_from_the_kernels_log_data() {
  QTest::addColumn<QByteArray>("record");
  QTest::addColumn<int>("code");  // -1: none
  QTest::newRow("79") << QByteArray("3,1201,7000000,-;NVRM: Xid (PCI:0000:4e:00): 79, pid=1, GPU has fallen off\n")
                      << 79;
  QTest::newRow("48") << QByteArray("3,1,7000000,-,caller=T1;NVRM: Xid (PCI:0000:4e:00): 48, Double Bit ECC\n") << 48;
  QTest::newRow("other") << QByteArray("6,1,7000000,-;eth0: link up\n") << -1;
  QTest::newRow("no code") << QByteArray("6,1,7000000,-;NVRM: Xid (PCI:0000:4e:00): x\n") << -1;
  QTest::newRow("cut") << QByteArray("6,1,7000000,-;NVRM: Xid (PCI") << -1;
  QTest::newRow("no time") << QByteArray("NVRM: Xid (PCI:0000:4e:00): 79, x") << -1;
  QTest::newRow("a code beyond belief") << QByteArray("6,1,7,-;NVRM: Xid (PCI:0): 99999999999999999999") << -1;
}

void ProbesTest::an_xid_is_read_from_the_kernels_log() {
  QFETCH(const QByteArray, record);
  QFETCH(const int, code);

  const auto xid = parse_xid(record.toStdString(), 10e6);

  QCOMPARE(xid.has_value(), code >= 0);
  if (!xid) return;
  QCOMPARE(static_cast<int>(xid->code), code);
  QCOMPARE(xid->age_seconds, 3.0);
}

void ProbesTest::a_disk_is_measured_and_left_as_it_was() {
  const QTemporaryDir directory;
  const AbortSignal abort;

  const DiskFacts disk = probe_disk(path_of(directory), {8u << 20, Deadline::after(std::chrono::seconds(10))}, abort);

  QVERIFY2(disk.problem.empty(), disk.problem.c_str());
  QVERIFY(disk.free_bytes > 0);
  QVERIFY(disk.write_bytes_per_second.value_or(0) > 0);
  QVERIFY(std::filesystem::is_empty(path_of(directory)));
}

void ProbesTest::a_directory_that_is_not_there_yet_is_measured_by_its_parent() {
  const QTemporaryDir directory;
  const AbortSignal abort;

  const DiskFacts disk =
      probe_disk(path_of(directory) / "a" / "b", {4u << 20, Deadline::after(std::chrono::seconds(10))}, abort);

  QCOMPARE(disk.path, path_of(directory).string());
  QVERIFY(!std::filesystem::exists(path_of(directory) / "a"));
}

void ProbesTest::a_place_where_nothing_can_be_written_is_named() {
  const AbortSignal abort;

  const DiskFacts disk = probe_disk("/proc/self", {4u << 20, Deadline::after(std::chrono::seconds(10))}, abort);

  QVERIFY2(disk.problem.find("/proc/self") != std::string::npos, disk.problem.c_str());
}

void ProbesTest::quick_leaves_the_long_rows_out() {
  FixedProbes probes;
  const AbortSignal abort;
  std::vector<std::string> streamed;

  const auto quick = check_node(probes, {}, abort, [&](const CheckRow& row) { streamed.push_back(row.id); });
  QCOMPARE(probes.measured, 0);
  CheckPlan plan;
  plan.full = true;
  const auto full = check_node(probes, plan, abort, [](const CheckRow&) {});

  QCOMPARE(ids_of(*quick), streamed);
  QVERIFY(quick->find("disk.write") != nullptr && quick->find("gpu.bf16") == nullptr);
  QVERIFY(full->find("gpu.bf16") != nullptr);
  QCOMPARE(full->rows.size(), check_rules().size());
  QCOMPARE(probes.measured, 1);
}

void ProbesTest::a_required_row_is_looked_at_in_a_quick_check_too() {
  FixedProbes probes;
  probes.own_policy = *parse_check_policy(R"({"require": ["gpu.bf16"]})");
  const AbortSignal abort;

  const auto report = check_node(probes, {}, abort, [](const CheckRow&) {});

  QCOMPARE(probes.measured, 1);
  QVERIFY(report->find("gpu.bf16") != nullptr);
  QCOMPARE(report->find("gpu.bf16")->verdict, Verdict::kFail);
  QVERIFY(report->find("gpu.hbm") == nullptr);
}

void ProbesTest::a_check_that_is_cut_short_says_so() {
  FixedProbes probes;
  AbortSignal abort;

  const auto report = check_node(probes, {}, abort, [&](const CheckRow& row) {
    if (row.id == "ram") abort.raise("interrupted");
  });

  QVERIFY(!report.ok());
  QCOMPARE(report.error().code, ErrorCode::kAborted);
}

void ProbesTest::a_report_is_kept_for_its_owner_alone() {
  const QTemporaryDir home;
  QCOMPARE(load_check(path_of(home)).error().code, ErrorCode::kNotFound);
  CheckReport report{.software = "atoll 0.1.0", .run_id = "0123456789abcdef"};
  report.rows.push_back({.id = "ram", .verdict = Verdict::kWarn, .text = "little", .fix = "add some"});

  QVERIFY(save_check(path_of(home), report).ok());

  struct stat status {};
  QCOMPARE(::stat(check_file(path_of(home)).c_str(), &status), 0);
  QCOMPARE(status.st_mode & 0777, 0600u);
  QCOMPARE(load_check(path_of(home))->find("ram")->fix, std::string("add some"));
}

QTEST_APPLESS_MAIN(ProbesTest)
#include "probes_test.moc"
