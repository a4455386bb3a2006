// Part of every test program that is not there for a GPU: what it starts computes on the processor, whatever the
// machine has, for tests compare with numbers to the last bit, and several run at once. Who names GPUs in the
// environment tries them.
#include <cstdlib>

namespace {

[[maybe_unused]] const int pinned = ::setenv("CUDA_VISIBLE_DEVICES", "", /*overwrite=*/0);  // before there are threads

}  // namespace
