// Where CUDA's libraries are found: in a tree as wheels unpack it, and by the system's loader.
#include "net/base/gpu_libraries.h"

#include <dlfcn.h>

#include <QTemporaryDir>
#include <QtTest>
#include <algorithm>
#include <filesystem>
#include <fstream>

using namespace atl;
namespace fs = std::filesystem;

class GpuLibrariesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void wheels_beside_libtorch_come_first();
  void the_environment_names_the_tree();
  void what_is_in_no_wheel_is_asked_of_the_systems_loader();
  void a_wheel_that_does_not_load_is_not_passed_over();
  void what_a_library_opens_by_name_is_there_before_it();
  void what_is_nowhere_is_told_with_the_place_and_the_fix();
  void all_that_do_not_open_are_named();

 private:
  // Where the wheel of `library` has it.
  fs::path place(GpuLibrary library, const std::string& wheel) const {
    const fs::path directory = fs::path(directory_.path().toStdString()) / "nvidia" / wheel / "lib";
    fs::create_directories(directory);
    return directory / file_of(library);
  }
  fs::path tree() const { return directory_.path().toStdString(); }

  QTemporaryDir directory_;
};

void GpuLibrariesTest::wheels_beside_libtorch_come_first() {
  const fs::path file = place(GpuLibrary::kNccl, "nccl");
  fs::copy_file(FAKE_GPU_LIBRARY, file);

  const auto opened = open_gpu_library(GpuLibrary::kNccl, tree());

  QVERIFY2(opened.ok(), opened.ok() ? "" : opened.error().message.c_str());
  QCOMPARE(opened->path(), file.string());
  QCOMPARE(opened->function<int()>("atoll_fake_gpu_library")(), 42);
  QVERIFY(opened->function<int()>("ncclGetVersion") == nullptr);
}

void GpuLibrariesTest::the_environment_names_the_tree() {
  qputenv("ATOLL_LIBTORCH", directory_.path().toUtf8());
  QCOMPARE(libtorch_directory(), tree());

  qunsetenv("ATOLL_LIBTORCH");

  QVERIFY(libtorch_directory() != tree());
}

void GpuLibrariesTest::what_is_in_no_wheel_is_asked_of_the_systems_loader() {
  // Its soname is NCCL's: from now on the loader has one.
  void* loaded = ::dlopen(FAKE_GPU_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  QVERIFY(loaded != nullptr);

  const auto opened = open_gpu_library(GpuLibrary::kNccl, "/nowhere");

  QVERIFY2(opened.ok(), opened.ok() ? "" : opened.error().message.c_str());
  QCOMPARE(opened->path(), std::string(file_of(GpuLibrary::kNccl)));
  QCOMPARE(opened->function<int()>("atoll_fake_gpu_library")(), 42);
  ::dlclose(loaded);
}

void GpuLibrariesTest::a_wheel_that_does_not_load_is_not_passed_over() {
  std::ofstream(place(GpuLibrary::kCudnn, "cudnn")) << "half of a download";

  const auto opened = open_gpu_library(GpuLibrary::kCudnn, tree());

  QVERIFY(!opened.ok());
  QCOMPARE(opened.error().code, ErrorCode::kInternal);
  QVERIFY2(opened.error().message.starts_with("cuDNN does not load"), opened.error().message.c_str());
}

void GpuLibrariesTest::what_a_library_opens_by_name_is_there_before_it() {
  const fs::path compiler = place(GpuLibrary::kNvrtc, "cu13");
  const fs::path builtins = compiler.parent_path() / "libnvrtc-builtins.so.13.0";
  fs::copy_file(FAKE_GPU_LIBRARY, compiler);

  const auto alone = open_gpu_library(GpuLibrary::kNvrtc, tree());
  fs::copy_file(FAKE_GPU_LIBRARY, builtins);
  const auto both = open_gpu_library(GpuLibrary::kNvrtc, tree());

  QVERIFY(!alone.ok());
  QVERIFY2(alone.error().message.find(builtins.string()) != std::string::npos, alone.error().message.c_str());
  QVERIFY2(both.ok(), both.ok() ? "" : both.error().message.c_str());
  QCOMPARE(both->path(), compiler.string());
  QVERIFY(::dlopen(builtins.c_str(), RTLD_NOW | RTLD_NOLOAD) != nullptr);
}

void GpuLibrariesTest::what_is_nowhere_is_told_with_the_place_and_the_fix() {
  const auto opened = open_gpu_library(GpuLibrary::kCudnn, "/nowhere");
  if (opened.ok()) QSKIP("this machine has cuDNN; ctest hides it");

  QCOMPARE(opened.error().code, ErrorCode::kNotFound);
  for (const char* part : {"/nowhere/nvidia/cudnn/lib", "libcudnn.so.9", "installer/gpu_libraries.sh"}) {
    QVERIFY2(opened.error().message.find(part) != std::string::npos, opened.error().message.c_str());
  }
}

void GpuLibrariesTest::all_that_do_not_open_are_named() {
  // Every one is there, and none loads.
  for (const GpuLibrary library : gpu_libraries()) {
    for (const char* wheel : {"cu13", "cudnn", "nccl"}) {
      std::ofstream(place(library, wheel), std::ios::trunc) << "nothing";
    }
  }

  const auto missing = missing_gpu_libraries(tree());

  QCOMPARE(missing.size(), gpu_libraries().size());
  QVERIFY(std::ranges::equal(missing, gpu_libraries(), {}, &MissingLibrary::library));
}

QTEST_APPLESS_MAIN(GpuLibrariesTest)
#include "gpu_libraries_test.moc"
