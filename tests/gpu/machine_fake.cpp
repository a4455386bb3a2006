#include "tests/fakes/fake_cublas_lt.h"
#include "tests/fakes/fake_cuda_runtime.h"
#include "tests/fakes/fake_nccl.h"
#include "tests/gpu/machine.h"

namespace atl::gpu {
namespace {

struct Machine {
  test::FakeCuda cuda{{.gpu_bytes = std::size_t{1} << 30, .most_delay = std::chrono::microseconds(0)}};
  test::FakeCublasLt cublas;
  test::FakeNccl nccl{1};
};
Machine machine;  // before main, and after all of it

}  // namespace

CudaLibraries libraries(const CudaDevices&) {
  CudaLibraries libraries;
  libraries.cublas = test::FakeCublasLt::api();
  libraries.nccl = test::FakeNccl::api();
  return libraries;
}

std::uint64_t used_bytes() {
  std::size_t unused = 0, total = 0;
  (void)cudaMemGetInfo(&unused, &total);
  return total - unused;
}

bool fake() { return true; }

}  // namespace atl::gpu
