// The table of NCCL's functions has the types and values of NVIDIA's nccl.h, where there is one, and is filled from
// NCCL alone.
#include "trainer/fsdp/nccl_api.h"

#include <dlfcn.h>

#include <QTemporaryDir>
#include <QtTest>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <type_traits>

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>
#define ATOLL_HAS_NCCL_H
#endif

using namespace atl;

class NcclApiTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void types_and_values_are_those_of_nccl_h();
  void a_library_that_is_not_nccl_is_refused();
};

#ifdef ATOLL_HAS_NCCL_H
namespace {

// A type of nccl.h as the table has it.
template <class T>
struct As {
  using type = T;
};
template <>
struct As<ncclResult_t> {
  using type = NcclResult;
};
template <>
struct As<ncclResult_t*> {
  using type = NcclResult*;
};
template <>
struct As<ncclComm_t> {
  using type = NcclComm;
};
template <>
struct As<ncclComm_t*> {
  using type = NcclComm*;
};
template <>
struct As<ncclUniqueId> {
  using type = NcclUniqueId;
};
template <>
struct As<ncclUniqueId*> {
  using type = NcclUniqueId*;
};
template <>
struct As<ncclConfig_t*> {
  using type = NcclConfig*;
};
template <>
struct As<ncclDataType_t> {
  using type = NcclDataType;
};
template <>
struct As<ncclRedOp_t> {
  using type = NcclRedOp;
};
template <>
struct As<cudaStream_t> {
  using type = GpuStream;
};
template <class Result, class... Arguments>
struct As<Result (*)(Arguments...)> {
  using type = typename As<Result>::type (*)(typename As<Arguments>::type...);
};
template <class Theirs, class Ours>
constexpr bool kSame = std::is_same_v<typename As<Theirs>::type, Ours>;

static_assert(kSame<decltype(&ncclGetVersion), decltype(NcclApi::get_version)>);
static_assert(kSame<decltype(&ncclGetUniqueId), decltype(NcclApi::get_unique_id)>);
static_assert(kSame<decltype(&ncclCommInitRankConfig), decltype(NcclApi::comm_init_rank_config)>);
static_assert(kSame<decltype(&ncclCommGetAsyncError), decltype(NcclApi::comm_get_async_error)>);
static_assert(kSame<decltype(&ncclCommAbort), decltype(NcclApi::comm_abort)>);
static_assert(kSame<decltype(&ncclCommFinalize), decltype(NcclApi::comm_finalize)>);
static_assert(kSame<decltype(&ncclCommDestroy), decltype(NcclApi::comm_destroy)>);
static_assert(kSame<decltype(&ncclGroupStart), decltype(NcclApi::group_start)>);
static_assert(kSame<decltype(&ncclGroupEnd), decltype(NcclApi::group_end)>);
static_assert(kSame<decltype(&ncclAllGather), decltype(NcclApi::all_gather)>);
static_assert(kSame<decltype(&ncclReduceScatter), decltype(NcclApi::reduce_scatter)>);
static_assert(kSame<decltype(&ncclAllReduce), decltype(NcclApi::all_reduce)>);
static_assert(kSame<decltype(&ncclGetErrorString), decltype(NcclApi::get_error_string)>);
static_assert(kSame<decltype(&ncclGetLastError), decltype(NcclApi::get_last_error)>);

static_assert(sizeof(ncclUniqueId) == sizeof(NcclUniqueId) && alignof(ncclUniqueId) == alignof(NcclUniqueId));
static_assert(sizeof(cudaStream_t) == sizeof(GpuStream));

template <class Theirs, class Ours>
constexpr bool same_value(Theirs theirs, Ours ours) {
  return sizeof(Theirs) == sizeof(Ours) && static_cast<long long>(theirs) == static_cast<long long>(ours);
}
static_assert(same_value(ncclSuccess, NcclResult::kSuccess));
static_assert(same_value(ncclUnhandledCudaError, NcclResult::kUnhandledCudaError));
static_assert(same_value(ncclSystemError, NcclResult::kSystemError));
static_assert(same_value(ncclInternalError, NcclResult::kInternalError));
static_assert(same_value(ncclInvalidArgument, NcclResult::kInvalidArgument));
static_assert(same_value(ncclInvalidUsage, NcclResult::kInvalidUsage));
static_assert(same_value(ncclRemoteError, NcclResult::kRemoteError));
static_assert(same_value(ncclInProgress, NcclResult::kInProgress));
static_assert(same_value(ncclInt32, NcclDataType::kInt32));
static_assert(same_value(ncclFloat32, NcclDataType::kFloat32));
static_assert(same_value(ncclFloat64, NcclDataType::kFloat64));
static_assert(same_value(ncclBfloat16, NcclDataType::kBfloat16));
static_assert(same_value(ncclSum, NcclRedOp::kSum));

// A prefix of the present structure.
static_assert(offsetof(ncclConfig_t, size) == offsetof(NcclConfig, size));
static_assert(offsetof(ncclConfig_t, magic) == offsetof(NcclConfig, magic));
static_assert(offsetof(ncclConfig_t, version) == offsetof(NcclConfig, version));
static_assert(offsetof(ncclConfig_t, blocking) == offsetof(NcclConfig, blocking));
static_assert(sizeof(ncclConfig_t) >= sizeof(NcclConfig));

}  // namespace
#endif

// Most of it is checked when this is compiled; what is left is what an initialiser sets.
void NcclApiTest::types_and_values_are_those_of_nccl_h() {
#ifdef ATOLL_HAS_NCCL_H
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const NcclConfig ours;
  QCOMPARE(ours.magic, theirs.magic);
  QVERIFY(ours.version <= theirs.version);
  QVERIFY(ours.size == sizeof(NcclConfig) && theirs.size == sizeof(ncclConfig_t));
  QVERIFY(NCCL_VERSION_CODE >= kOldestNccl);
#else
  QSKIP("no nccl.h here");
#endif
}

void NcclApiTest::a_library_that_is_not_nccl_is_refused() {
  // The C library, in NCCL's place.
  Dl_info libc{};
  QVERIFY(::dladdr(reinterpret_cast<void*>(&std::abort), &libc) != 0);
  const QTemporaryDir directory;
  const std::filesystem::path libtorch = directory.path().toStdString();
  std::filesystem::create_directories(libtorch / "nvidia/nccl/lib");
  std::filesystem::create_symlink(libc.dli_fname, libtorch / "nvidia/nccl/lib/libnccl.so.2");

  const auto api = open_nccl(libtorch);

  QVERIFY(!api.ok());
  QCOMPARE(api.error().code, ErrorCode::kVersionUnsupported);
  const QString message = QString::fromStdString(api.error().message);
  QVERIFY2(message.contains("nvidia/nccl/lib/libnccl.so.2: it lacks ncclGetVersion"), api.error().message.c_str());
}

QTEST_APPLESS_MAIN(NcclApiTest)
#include "nccl_api_test.moc"
