// Memory that a process may use: the machine's, or what its control groups leave it.
#include <QTemporaryDir>
#include <QtTest>

#include <fstream>
#include <vector>

#include "net/base/memory.h"

using namespace atl;

namespace {

struct File {
  const char* path;
  const char* content;
};
using Files = std::vector<File>;

}  // namespace
Q_DECLARE_METATYPE(Files)

class UsableMemoryTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_narrowest_bound_counts_data();
  void the_narrowest_bound_counts();
  void a_kernel_that_does_not_say_gives_zeros();
  void what_a_process_takes_is_its_own();
};

void UsableMemoryTest::the_narrowest_bound_counts_data() {
  QTest::addColumn<Files>("files");
  QTest::addColumn<quint64>("total");  // KiB
  QTest::addColumn<quint64>("available");
  QTest::newRow("no groups") << Files{} << quint64{16000} << quint64{9000};
  QTest::newRow("no limit") << Files{{"proc/self/cgroup", "0::/a"}, {"sys/fs/cgroup/a/memory.max", "max"}}
                            << quint64{16000} << quint64{9000};
  QTest::newRow("its own group") << Files{{"proc/self/cgroup", "0::/user/a\n"},
                                          {"sys/fs/cgroup/user/a/memory.max", "4096000"},
                                          {"sys/fs/cgroup/user/a/memory.current", "1024000"}}
                                 << quint64{4000} << quint64{3000};
  QTest::newRow("files that nobody maps can go")
      << Files{{"proc/self/cgroup", "0::/a"},
               {"sys/fs/cgroup/a/memory.max", "4096000"},
               {"sys/fs/cgroup/a/memory.current", "3072000"},
               {"sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 2048000\nactive_file 7\n"}}
      << quint64{4000} << quint64{3000};
  QTest::newRow("a group above it") << Files{{"proc/self/cgroup", "0::/user/a\n"},
                                             {"sys/fs/cgroup/user/memory.max", "2048000"},
                                             {"sys/fs/cgroup/user/memory.current", "2048000"},
                                             {"sys/fs/cgroup/user/a/memory.max", "4096000"}}
                                    << quint64{2000} << quint64{0};
  QTest::newRow("more in use than allowed") << Files{{"proc/self/cgroup", "0::/a"},
                                                     {"sys/fs/cgroup/a/memory.max", "1024000"},
                                                     {"sys/fs/cgroup/a/memory.current", "2048000"}}
                                            << quint64{1000} << quint64{0};
  QTest::newRow("a container's top, under a path of the host")
      << Files{{"proc/self/cgroup", "0::/docker/123"}, {"sys/fs/cgroup/memory.max", "4096000"}} << quint64{4000}
      << quint64{4000};
  QTest::newRow("version 1") << Files{{"proc/self/cgroup", "5:cpu,memory:/a\n0::/b\n"},
                                      {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"},
                                      {"sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4096000"},
                                      {"sys/fs/cgroup/memory/a/memory.usage_in_bytes", "3072000"},
                                      {"sys/fs/cgroup/memory/a/memory.stat", "total_inactive_file 1024000"}}
                             << quint64{4000} << quint64{2000};
  QTest::newRow("more allowed than there is")
      << Files{{"proc/self/cgroup", "0::/a"}, {"sys/fs/cgroup/a/memory.max", "99999999999"}} << quint64{16000}
      << quint64{9000};
  QTest::newRow("a path that would climb out")
      << Files{{"proc/self/cgroup", "0::/../../a"}, {"sys/fs/a/memory.max", "1024"}} << quint64{16000} << quint64{9000};
}

void UsableMemoryTest::the_narrowest_bound_counts() {
  QFETCH(Files, files);
  QFETCH(const quint64, total);
  QFETCH(const quint64, available);
  const QTemporaryDir root;
  files.push_back({"proc/meminfo", "MemTotal:       16000 kB\nMemFree:  1 kB\nMemAvailable:    9000 kB\n"});
  for (const File& file : files) {
    const auto path = std::filesystem::path(root.path().toStdString()) / file.path;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << file.content;
  }

  const UsableMemory memory = usable_memory(root.path().toStdString());

  QCOMPARE(quint64{memory.total}, total * 1024);
  QCOMPARE(quint64{memory.available}, available * 1024);
}

void UsableMemoryTest::a_kernel_that_does_not_say_gives_zeros() {
  const QTemporaryDir root;

  QCOMPARE(usable_memory(root.path().toStdString()).total, std::uint64_t{0});
  QCOMPARE(own_memory(root.path().toStdString()), std::uint64_t{0});
}

void UsableMemoryTest::what_a_process_takes_is_its_own() {
  constexpr std::size_t kTaken = 100'000'000;
  const std::uint64_t before = own_memory();
  std::vector<char> taken(kTaken, 'x');

  const std::uint64_t after = own_memory();

  QVERIFY(after > before + kTaken * 9 / 10);
  QCOMPARE(taken[kTaken / 2], 'x');
}

QTEST_APPLESS_MAIN(UsableMemoryTest)
#include "usable_memory_test.moc"
