// When torch's CUDA half is opened, on fakes of it and of all that it needs.
#include "trainer/device/cuda_libraries.h"

#include <dlfcn.h>

#include <QTemporaryDir>
#include <QtTest>
#include <filesystem>
#include <fstream>

#include "net/base/gpu_libraries.h"

using namespace atl;
namespace fs = std::filesystem;

namespace {

// A tree that has everything, in every wheel.
void fill(const fs::path& tree) {
  for (const char* wheel : {"cu13", "cudnn", "nccl", "nvshmem", "cusparselt"}) {
    const fs::path directory = tree / "nvidia" / wheel / "lib";
    fs::create_directories(directory);
    for (const GpuLibrary library : gpu_libraries()) fs::copy_file(FAKE_GPU_LIBRARY, directory / file_of(library));
  }
  fs::create_directories(tree / "torch" / "lib");
  fs::copy_file(FAKE_GPU_LIBRARY, tree / "torch" / "lib" / "libtorch_cuda.so");
}

bool is_loaded(const fs::path& file) {
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return false;
  ::dlclose(library);
  return true;
}

}  // namespace

class CudaLibrariesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void without_a_driver_nothing_is_opened();
  void what_is_missing_is_told_and_torch_left_alone();
  void with_everything_there_it_stays_loaded();
};

void CudaLibrariesTest::without_a_driver_nothing_is_opened() {
  QTemporaryDir directory;
  const fs::path tree = directory.path().toStdString();
  fill(tree);

  const auto loaded = load_torch_cuda({.driver = "/nowhere/libcuda.so.1", .libtorch = tree});

  QVERIFY(!loaded.ok());
  QCOMPARE(loaded.error().code, ErrorCode::kNotFound);
  QVERIFY2(loaded.error().message.starts_with("no NVIDIA driver"), loaded.error().message.c_str());
  QVERIFY(!is_loaded(tree / "torch" / "lib" / "libtorch_cuda.so"));
}

void CudaLibrariesTest::what_is_missing_is_told_and_torch_left_alone() {
  QTemporaryDir directory;
  const fs::path tree = directory.path().toStdString();
  fill(tree);
  std::ofstream(tree / "nvidia" / "cusparselt" / "lib" / file_of(GpuLibrary::kCusparseLt), std::ios::trunc) << "cut";

  const auto loaded = load_torch_cuda({.driver = FAKE_GPU_LIBRARY, .libtorch = tree});

  QVERIFY(!loaded.ok());
  QVERIFY2(loaded.error().message.starts_with("cuSPARSELt does not load"), loaded.error().message.c_str());
  QVERIFY(!is_loaded(tree / "torch" / "lib" / "libtorch_cuda.so"));
}

void CudaLibrariesTest::with_everything_there_it_stays_loaded() {
  QTemporaryDir directory;
  const fs::path tree = directory.path().toStdString();
  fill(tree);

  const auto loaded = load_torch_cuda({.driver = FAKE_GPU_LIBRARY, .libtorch = tree});

  QVERIFY2(loaded.ok(), loaded.ok() ? "" : loaded.error().message.c_str());
  QVERIFY(is_loaded(tree / "torch" / "lib" / "libtorch_cuda.so"));
  QVERIFY(!is_loaded(tree / "nvidia" / "nccl" / "lib" / file_of(GpuLibrary::kNccl)));  // this torch names none
}

QTEST_APPLESS_MAIN(CudaLibrariesTest)
#include "cuda_libraries_test.moc"
