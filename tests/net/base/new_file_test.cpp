#include "net/base/new_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QTemporaryDir>
#include <QtTest>
#include <algorithm>
#include <csignal>
#include <fstream>
#include <set>
#include <vector>

using namespace atl;

namespace {

std::vector<std::string> on_disk;  // what was asked of the disk: "flush PATH", "rename TO"

std::string path_of(int fd) { return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd)).string(); }

}  // namespace

// In the place of the C library's.
extern "C" int fsync(int fd) {
  on_disk.push_back("flush " + path_of(fd));
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  on_disk.push_back("rename " + std::string(to));
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

namespace {

class Place {
 public:
  std::filesystem::path operator/(const std::string& name) const {
    return std::filesystem::path(directory_.path().toStdString()) / name;
  }
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path().toStdString())) {
      found.insert(entry.path().filename().string());
    }
    return found;
  }

 private:
  QTemporaryDir directory_;
};

mode_t mode_of(const std::filesystem::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 07777u : 0;
}

}  // namespace

class NewFileTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_file_is_written_whole();
  void a_planted_link_is_not_followed();
  void what_is_written_has_a_name_that_nobody_knows();
  void a_write_that_fails_leaves_the_old_file_and_nothing_else();
  void what_a_killed_writer_left_is_removed_and_what_is_being_written_is_not();
  void what_killed_writers_left_in_a_directory_is_removed_and_nothing_else();
  void a_directory_takes_its_place_whole();
  void after_each_rename_its_directories_are_flushed();
  void a_directory_that_is_made_is_flushed_into_its_parent();
};

void NewFileTest::a_file_is_written_whole() {
  const Place place;
  QVERIFY(write_file_atomically(place / "a", "old", FileMode::kPublic).ok());

  QVERIFY(write_file_atomically(place / "a", "new", FileMode::kPrivate).ok());

  QCOMPARE(read_file(place / "a").value(), std::string("new"));
  QCOMPARE(mode_of(place / "a"), mode_t{0600});
  QCOMPARE(place.names(), (std::set<std::string>{"a"}));
}

// In a directory that others may write to, every name that could be guessed is a link to a file of the victim's.
void NewFileTest::a_planted_link_is_not_followed() {
  const Place place;
  std::ofstream(place / "victim") << "precious";
  for (const std::string& guess : {"a.new." + std::to_string(::getpid()), std::string("a.new")}) {
    std::filesystem::create_symlink(place / "victim", place / guess);
  }

  const Status written = write_file_atomically(place / "a", "content", FileMode::kPublic);

  QVERIFY2(written.ok(), written.ok() ? "" : written.error().message.c_str());
  QCOMPARE(read_file(place / "victim").value(), std::string("precious"));
  QCOMPARE(read_file(place / "a").value(), std::string("content"));
  QVERIFY(!std::filesystem::is_symlink(place / "a"));
}

void NewFileTest::what_is_written_has_a_name_that_nobody_knows() {
  const Place place;
  std::set<std::string> names;
  for (int i = 0; i < 3; ++i) {
    const auto file = NewFile::create(place / "a", FileMode::kPrivate);
    QVERIFY(file.ok());
    for (const std::string& name : place.names()) names.insert(name);
  }

  QCOMPARE(names.size(), std::size_t{3});
  QVERIFY(std::ranges::all_of(names, [](const std::string& name) { return name.size() >= 6 + 24; }));
  QVERIFY(place.names().empty());  // gone with their owners
}

void NewFileTest::a_write_that_fails_leaves_the_old_file_and_nothing_else() {
  const Place place;
  QVERIFY(write_file_atomically(place / "a", "old", FileMode::kPublic).ok());
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  QCOMPARE(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{16, before.rlim_max};
  QCOMPARE(::setrlimit(RLIMIT_FSIZE, &small), 0);

  const Status written = write_file_atomically(place / "a", std::string(1000, 'x'), FileMode::kPublic);

  QCOMPARE(::setrlimit(RLIMIT_FSIZE, &before), 0);
  QVERIFY(!written.ok());
  QCOMPARE(read_file(place / "a").value(), std::string("old"));
  QCOMPARE(place.names(), (std::set<std::string>{"a"}));
}

// A process begins to write these, and is killed.
void leave_behind(const Place& place, const std::vector<const char*>& names) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<Result<NewFile>> files;
    for (const char* name : names) files.push_back(NewFile::create(place / name, FileMode::kPrivate));
    ::_exit(std::ranges::all_of(files, [](const auto& file) { return file.ok(); }) ? 0 : 1);  // nobody cleans up
  }
  int status = 0;
  QCOMPARE(::waitpid(child, &status, 0), child);
  QCOMPARE(status, 0);
  QCOMPARE(place.names().size(), names.size());
}

void NewFileTest::what_a_killed_writer_left_is_removed_and_what_is_being_written_is_not() {
  const Place place;
  leave_behind(place, {"a"});
  const std::string left = *place.names().begin();

  auto first = NewFile::create(place / "a", FileMode::kPrivate);
  auto second = NewFile::create(place / "a", FileMode::kPrivate);

  QVERIFY(!place.names().contains(left));
  QCOMPARE(place.names().size(), std::size_t{2});
  QVERIFY(first.value().write(as_bytes("one")).ok());
  QVERIFY(first.value().take_place().ok());
  QCOMPARE(read_file(place / "a").value(), std::string("one"));
  QVERIFY(second.value().take_place().ok());
}

// Nobody may ever write those files again.
void NewFileTest::what_killed_writers_left_in_a_directory_is_removed_and_nothing_else() {
  const Place place;
  leave_behind(place, {"round.7.average", "round.7.record"});
  auto written = NewFile::create(place / "round.8.average", FileMode::kPrivate);
  const std::set<std::string> others{"round.6.average", "a.new.", "a.new.0123", "b.new.0123456789abcdef0123456X"};
  for (const std::string& name : others) std::ofstream(place / name) << "x";

  remove_forgotten_files(place / "");
  remove_forgotten_files(place / "not there");

  std::set<std::string> left = place.names();
  for (const std::string& name : others) QCOMPARE(left.erase(name), std::size_t{1});
  QCOMPARE(left.size(), std::size_t{1});
  QVERIFY(written.value().write(as_bytes("one")).ok());
  QVERIFY(written.value().take_place().ok());
  QCOMPARE(read_file(place / "round.8.average").value(), std::string("one"));
}

void NewFileTest::a_directory_takes_its_place_whole() {
  const Place place;
  {
    auto made = NewDirectory::create(place / "d", FileMode::kPrivate);
    QVERIFY(made.ok());
    QCOMPARE(mode_of(made->path()), mode_t{0700});
    std::ofstream(made->path() / "inside") << "x";
    QVERIFY(!std::filesystem::exists(place / "d"));
    QVERIFY(made->take_place().ok());
    const auto dropped = NewDirectory::create(place / "e", FileMode::kPublic);
    QVERIFY(dropped.ok());
  }

  QCOMPARE(place.names(), (std::set<std::string>{"d"}));
  QCOMPARE(read_file(place / "d" / "inside").value(), std::string("x"));
}

void NewFileTest::after_each_rename_its_directories_are_flushed() {
  const Place place;
  const std::filesystem::path top = std::filesystem::canonical(place / ".");
  std::filesystem::create_directory(top / "other");

  on_disk.clear();
  QVERIFY(write_file_atomically(top / "a", "content", FileMode::kPublic).ok());
  QCOMPARE(on_disk.size(), std::size_t{3});
  QVERIFY(on_disk[0].starts_with("flush " + (top / "a.new.").string()));
  QCOMPARE(on_disk[1], "rename " + (top / "a").string());
  QCOMPARE(on_disk[2], "flush " + top.string());

  on_disk.clear();
  QVERIFY(rename_and_flush(top / "a", top / "other/b").ok());
  QCOMPARE(on_disk, (std::vector<std::string>{"rename " + (top / "other/b").string(),
                                              "flush " + (top / "other").string(), "flush " + top.string()}));

  on_disk.clear();
  auto directory = NewDirectory::create(top / "whole", FileMode::kPrivate);
  QVERIFY(directory.ok());
  const std::string before = directory->path().string();
  QVERIFY(directory->take_place().ok());
  QCOMPARE(on_disk, (std::vector<std::string>{"flush " + before, "rename " + (top / "whole").string(),
                                              "flush " + top.string()}));

  QCOMPARE(rename_and_flush(top / "nothing", top / "b").error().code, ErrorCode::kNotFound);
}

void NewFileTest::a_directory_that_is_made_is_flushed_into_its_parent() {
  const Place place;
  const std::filesystem::path top = std::filesystem::canonical(place / ".");

  on_disk.clear();
  QVERIFY(make_directories(top / "a/b").ok());
  QCOMPARE(on_disk, (std::vector<std::string>{"flush " + top.string(), "flush " + (top / "a").string()}));

  on_disk.clear();
  QVERIFY(make_directories(top / "a/b").ok());  // it is there
  QVERIFY(on_disk.empty());
}

QTEST_GUILESS_MAIN(NewFileTest)
#include "new_file_test.moc"
