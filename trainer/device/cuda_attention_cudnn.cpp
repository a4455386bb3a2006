// cuDNN's fused attention by its front end, the only source that sees those headers. It writes into the memory that it
// is given, with the strides of qkv as it is: nothing is copied. (FlashAttention-2, arXiv:2307.08691; the backward pass
// adds up the queries' gradient in an order that is not the same each time: it is reproducible to rounding, not to the
// bit.)
#include "trainer/device/cuda_attention.h"

#ifdef ATOLL_CUDNN_FRONTEND

#include <dlfcn.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <list>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

#include "trainer/device/cuda_check.h"

// The front end opens a CUDA runtime of its own by name, the first that the system has. It gets the one that this
// program is linked with: all functions that it could ask for but those of graphs, in which attention is not run
// (tests/rules/cudnn_functions_test.py).
namespace atl::cudnn_loading {
namespace {

struct Function {
  const char* name;
  void* address;
};
template <class Address>
Function function(const char* name, Address* address) {
  return {name, reinterpret_cast<void*>(address)};
}
const Function kFunctions[] = {
    function("cudaRuntimeGetVersion", cudaRuntimeGetVersion),
    function("cudaGetLastError", cudaGetLastError),
    function("cudaGetErrorString", cudaGetErrorString),
    function("cudaGetDevice", cudaGetDevice),
    function("cudaDeviceGetAttribute", cudaDeviceGetAttribute),
    function("cudaMemcpyAsync", cudaMemcpyAsync),
    function("cudaMemsetAsync", cudaMemsetAsync),
    function("cudaStreamIsCapturing", cudaStreamIsCapturing),
    function("cudaPointerGetAttributes", cudaPointerGetAttributes),
    function("cudaStreamSynchronize", cudaStreamSynchronize),
    function("cudaDeviceSynchronize", cudaDeviceSynchronize),
    function("cudaEventDestroy", cudaEventDestroy),
    function("cudaEventRecord", cudaEventRecord),
    function("cudaEventSynchronize", cudaEventSynchronize),
    function("cudaEventElapsedTime", cudaEventElapsedTime),
    function("cudaThreadExchangeStreamCaptureMode", cudaThreadExchangeStreamCaptureMode),
    function("cudaStreamDestroy", cudaStreamDestroy),
    function("cudaFree", cudaFree),
    function("cudaGetDriverEntryPointByVersion", cudaGetDriverEntryPointByVersion),
    function<cudaError_t(void**, std::size_t)>("cudaMalloc", cudaMalloc),
    function<cudaError_t(cudaStream_t*)>("cudaStreamCreate", cudaStreamCreate),
    function<cudaError_t(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*, cudaGraph_t*,
                         const cudaGraphNode_t**, const cudaGraphEdgeData**, std::size_t*)>("cudaStreamGetCaptureInfo",
                                                                                            cudaStreamGetCaptureInfo),
    function<cudaError_t(cudaEvent_t*)>("cudaEventCreate", cudaEventCreate),
    function<cudaError_t(cudaDeviceProp*, int)>("cudaGetDeviceProperties", cudaGetDeviceProperties),
};
int own_runtime = 0;  // its address stands for the runtime

void* open(const char* name, int flags) {
  return std::strstr(name, "libcudart.so.13") != nullptr ? &own_runtime
         : std::strstr(name, "libcudart") != nullptr     ? nullptr
                                                         : ::dlopen(name, flags);
}

void* find(void* library, const char* name) {
  if (library != &own_runtime) return ::dlsym(library, name);
  const auto* found =
      std::ranges::find_if(kFunctions, [&](const Function& one) { return std::strcmp(one.name, name) == 0; });
  return found != std::end(kFunctions) ? found->address : nullptr;
}

int close(void* library) { return library == &own_runtime ? 0 : ::dlclose(library); }

}  // namespace
}  // namespace atl::cudnn_loading

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB  // graphs are not written out
#define dlopen atl::cudnn_loading::open
#define dlsym atl::cudnn_loading::find
#define dlclose atl::cudnn_loading::close
#include <cudnn_frontend.h>
#undef dlopen
#undef dlsym
#undef dlclose

void* cudnn_frontend::cudnn_dlhandle = nullptr;

namespace atl {
namespace {

namespace fe = cudnn_frontend;

constexpr std::size_t kMostShapes = 16;
constexpr std::int64_t kLargestHead = 128;

// Names of a graph's tensors.
enum Uid : std::int64_t {
  kQuery = 1,
  kKey,
  kValue,
  kOut,
  kStats,
  kOutGradient,
  kQueryGradient,
  kKeyGradient,
  kValueGradient
};

// Of one shape and its strides, forward and backward.
struct Key {
  AttentionShape shape;
  std::int64_t qkv_stride = 0, out_stride = 0, dout_stride = 0, dqkv_stride = 0;

  bool operator==(const Key& other) const {
    const auto all = [](const Key& key) {
      return std::array{key.shape.sequences, key.shape.length, key.shape.heads, key.shape.key_value_heads,
                        key.shape.head_dim,  key.qkv_stride,   key.out_stride,  key.dout_stride,
                        key.dqkv_stride};
    };
    return all(*this) == all(other);
  }
};

using Graph = fe::graph::Graph;
using Sizes = std::vector<std::int64_t>;

std::shared_ptr<fe::graph::Tensor_attributes> add_tensor(Graph& graph, Uid uid, const Sizes& dim, const Sizes& stride) {
  return graph.tensor(
      fe::graph::Tensor_attributes().set_name(std::to_string(uid)).set_uid(uid).set_dim(dim).set_stride(stride));
}

// `heads` neighbouring heads of rows of `row` elements: [sequences, heads, length, head_dim].
struct Heads {
  Sizes dim, stride;
  Heads(const AttentionShape& shape, std::int64_t heads, std::int64_t row)
      : dim{shape.sequences, heads, shape.length, shape.head_dim}, stride{shape.length * row, shape.head_dim, row, 1} {}
};

std::shared_ptr<Graph> new_graph() {
  auto graph = std::make_shared<Graph>();
  graph->set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  return graph;
}

float scale_of(const AttentionShape& shape) {
  return static_cast<float>(1 / std::sqrt(static_cast<double>(shape.head_dim)));
}

Sizes stats_dim(const AttentionShape& shape) { return {shape.sequences, shape.heads, shape.length, 1}; }
Sizes stats_stride(const AttentionShape& shape) { return {shape.heads * shape.length, shape.length, 1, 1}; }

std::shared_ptr<Graph> forward_graph(const Key& key) {
  const AttentionShape& shape = key.shape;
  auto graph = new_graph();
  const Heads queries(shape, shape.heads, key.qkv_stride), keys(shape, shape.key_value_heads, key.qkv_stride);
  const Heads outs(shape, shape.heads, key.out_stride);
  auto [out, stats] =
      graph->sdpa(add_tensor(*graph, kQuery, queries.dim, queries.stride),
                  add_tensor(*graph, kKey, keys.dim, keys.stride), add_tensor(*graph, kValue, keys.dim, keys.stride),
                  fe::graph::SDPA_attributes()
                      .set_name("attention")
                      .set_generate_stats(true)
                      .set_causal_mask(true)
                      .set_attn_scale(scale_of(shape)));
  out->set_output(true).set_uid(kOut).set_dim(outs.dim).set_stride(outs.stride);
  stats->set_output(true)
      .set_uid(kStats)
      .set_data_type(fe::DataType_t::FLOAT)
      .set_dim(stats_dim(shape))
      .set_stride(stats_stride(shape));
  return graph;
}

std::shared_ptr<Graph> backward_graph(const Key& key) {
  const AttentionShape& shape = key.shape;
  auto graph = new_graph();
  const Heads queries(shape, shape.heads, key.qkv_stride), keys(shape, shape.key_value_heads, key.qkv_stride);
  const Heads outs(shape, shape.heads, key.out_stride), douts(shape, shape.heads, key.dout_stride);
  auto stats = add_tensor(*graph, kStats, stats_dim(shape), stats_stride(shape));
  stats->set_data_type(fe::DataType_t::FLOAT);
  auto [dquery, dkey, dvalue] = graph->sdpa_backward(
      add_tensor(*graph, kQuery, queries.dim, queries.stride), add_tensor(*graph, kKey, keys.dim, keys.stride),
      add_tensor(*graph, kValue, keys.dim, keys.stride), add_tensor(*graph, kOut, outs.dim, outs.stride),
      add_tensor(*graph, kOutGradient, douts.dim, douts.stride), stats,
      fe::graph::SDPA_backward_attributes()
          .set_name("attention backward")
          .set_causal_mask(true)
          .set_attn_scale(scale_of(shape)));
  const Heads dqueries(shape, shape.heads, key.dqkv_stride), dkeys(shape, shape.key_value_heads, key.dqkv_stride);
  dquery->set_output(true).set_uid(kQueryGradient).set_dim(dqueries.dim).set_stride(dqueries.stride);
  dkey->set_output(true).set_uid(kKeyGradient).set_dim(dkeys.dim).set_stride(dkeys.stride);
  dvalue->set_output(true).set_uid(kValueGradient).set_dim(dkeys.dim).set_stride(dkeys.stride);
  return graph;
}

void check(fe::error_t error, const char* what) {
  if (error.is_bad()) throw std::runtime_error(fmt::format("{}: cuDNN: {}", what, error.get_message()));
}

class CudnnAttention final : public CudaAttention {
 public:
  explicit CudnnAttention(std::unique_ptr<CudaAttention> otherwise) : otherwise_(std::move(otherwise)) {
    if (fe::detail::create_handle(&handle_) != CUDNN_STATUS_SUCCESS) throw std::runtime_error("cuDNN does not start");
  }
  ~CudnnAttention() override { (void)fe::detail::destroy_handle(handle_); }

  void forward(const AttentionCall& call, cudaStream_t stream) override {
    if (refused(call)) return otherwise_->forward(call, stream);
    Plan& plan = plan_for(call);
    const bool fitting = plan.forward && fits(plan.forward_bytes, call);
    if (!fitting || !execute(plan, plan.forward, {{kOut, call.out}, {kStats, call.logsumexp}}, call, stream)) {
      otherwise_->forward(call, stream);
    }
  }

  // After either's forward pass: what both leave is the same.
  void backward(const AttentionCall& call, cudaStream_t stream) override {
    if (refused(call)) return otherwise_->backward(call, stream);
    Plan& plan = plan_for(call);
    if (!plan.backward && plan.why.empty()) prepare_backward(plan, call);
    if (!plan.backward || !execute(plan, plan.backward,
                                   {{kOut, call.out},
                                    {kStats, call.logsumexp},
                                    {kOutGradient, const_cast<std::byte*>(call.dout)},
                                    {kQueryGradient, call.dqkv},
                                    {kKeyGradient, keys(call.dqkv, call.shape)},
                                    {kValueGradient, values(call.dqkv, call.shape)}},
                                   call, stream)) {
      otherwise_->backward(call, stream);
    }
  }

 private:
  // Without a graph: the other kernels', and `why`.
  struct Plan {
    Key key;
    std::shared_ptr<Graph> forward, backward;
    std::int64_t forward_bytes = 0, backward_bytes = 0;
    std::string why;
  };
  using Pointers = std::unordered_map<std::int64_t, void*>;

  static constexpr std::int64_t kElement = 2;
  static std::byte* keys(const std::byte* qkv, const AttentionShape& shape) {
    return const_cast<std::byte*>(qkv) + shape.heads * shape.head_dim * kElement;
  }
  static std::byte* values(const std::byte* qkv, const AttentionShape& shape) {
    return keys(qkv, shape) + shape.key_value_heads * shape.head_dim * kElement;
  }
  static bool fits(std::int64_t bytes, const AttentionCall& call) { return bytes <= call.scratch_bytes; }

  // Told once: sampling comes with another length at each token.
  bool refused(const AttentionCall& call) {
    const AttentionShape& shape = call.shape;
    const bool takes = call.starts == nullptr && call.dtype == DType::kBfloat16 && shape.head_dim % 8 == 0 &&
                       shape.head_dim <= kLargestHead && shape.length % kCudnnLengths == 0;
    if (!takes && !std::exchange(told_, true)) {
      spdlog::info("attention by=own length={} head_dim={} dtype={} scope={}: not for cuDNN", shape.length,
                   shape.head_dim, call.dtype == DType::kBfloat16 ? "bf16" : "fp32",
                   call.starts == nullptr ? "packed" : "document");
    }
    return !takes;
  }

  // Strides of the gradients are those of what they are gradients of, until a backward pass says otherwise.
  Plan& plan_for(const AttentionCall& call) {
    const bool forward = call.dqkv == nullptr;
    const auto same = [&](const Plan& plan) {
      return same_forward(plan.key, call) && (forward || !plan.backward || same_backward(plan.key, call));
    };
    if (const auto found = std::ranges::find_if(plans_, same); found != plans_.end()) {
      plans_.splice(plans_.begin(), plans_, found);
      return plans_.front();
    }
    if (plans_.size() == kMostShapes) plans_.pop_back();
    plans_.emplace_front().key = {call.shape, call.qkv_stride, call.out_stride, call.out_stride, call.qkv_stride};
    prepare_forward(plans_.front());
    return plans_.front();
  }
  static bool same_forward(const Key& key, const AttentionCall& call) {
    return key == Key{call.shape, call.qkv_stride, call.out_stride, key.dout_stride, key.dqkv_stride};
  }
  static bool same_backward(const Key& key, const AttentionCall& call) {
    return key.dout_stride == call.dout_stride && key.dqkv_stride == call.dqkv_stride;
  }

  void prepare_forward(Plan& plan) {
    build(plan, plan.forward, plan.forward_bytes, forward_graph(plan.key));
    say(plan, "forward", plan.forward != nullptr, plan.forward_bytes);
  }
  void prepare_backward(Plan& plan, const AttentionCall& call) {
    plan.key.dout_stride = call.dout_stride;
    plan.key.dqkv_stride = call.dqkv_stride;
    build(plan, plan.backward, plan.backward_bytes, backward_graph(plan.key));
    if (plan.backward && !fits(plan.backward_bytes, call)) {
      plan.why =
          fmt::format("it asks for {} bytes of workspace, and there are {}", plan.backward_bytes, call.scratch_bytes);
      plan.backward.reset();
    }
    say(plan, "backward", plan.backward != nullptr, plan.backward_bytes);
  }

  void build(Plan& plan, std::shared_ptr<Graph>& to, std::int64_t& bytes, std::shared_ptr<Graph> graph) {
    try {
      check(graph->build(handle_, {fe::HeurMode_t::A}), "plan attention");
      check(graph->get_workspace_size(bytes), "plan attention");
      to = std::move(graph);
    } catch (const std::exception& error) {
      plan.why = error.what();
    }
  }

  static void say(const Plan& plan, const char* pass, bool cudnn, std::int64_t bytes) {
    const AttentionShape& shape = plan.key.shape;
    spdlog::info("attention pass={} sequences={} length={} heads={} key_value_heads={} head_dim={} by={}{}", pass,
                 shape.sequences, shape.length, shape.heads, shape.key_value_heads, shape.head_dim,
                 cudnn ? "cudnn" : "own", cudnn ? fmt::format(" workspace_bytes={}", bytes) : " why=" + plan.why);
  }

  // What was planned and does not run is dropped: false, and the other kernels write over what it wrote.
  bool execute(Plan& plan, std::shared_ptr<Graph>& graph, Pointers pointers, const AttentionCall& call,
               cudaStream_t stream) {
    pointers[kQuery] = const_cast<std::byte*>(call.qkv);
    pointers[kKey] = keys(call.qkv, call.shape);
    pointers[kValue] = values(call.qkv, call.shape);
    try {
      if (fe::detail::set_stream(handle_, stream) != CUDNN_STATUS_SUCCESS) throw std::runtime_error("cudnnSetStream");
      check(graph->execute(handle_, pointers, call.scratch), "run attention");
      return true;
    } catch (const std::exception& error) {
      plan.why = error.what();
      graph.reset();
      say(plan, &graph == &plan.forward ? "forward" : "backward", false, 0);
      // Once a process: each shape and rank has its line above, and the cause is the machine's.
      static std::atomic_flag warned;
      if (!warned.test_and_set()) {
        spdlog::warn("attention is computed by Atoll's own kernels, which are slower: cuDNN's do not run here: {}",
                     plan.why);
      }
      return false;
    }
  }

  const std::unique_ptr<CudaAttention> otherwise_;
  cudnnHandle_t handle_ = nullptr;
  std::list<Plan> plans_;  // the one used last comes first
  bool told_ = false;
};

}  // namespace

Status cudnn_attention_loads(const std::filesystem::path& libtorch) {
  // It is what cuDNN compiles kernels with, and looks for by its bare name.
  if (auto compiler = open_gpu_library(GpuLibrary::kNvrtc, libtorch); compiler.ok()) {
    (void)::dlopen(compiler.value().path().c_str(), RTLD_NOW | RTLD_NODELETE);
  }
  ATOLL_ASSIGN_OR_RETURN(const OpenLibrary library, open_gpu_library(GpuLibrary::kCudnn, libtorch));
  // Never unloaded.
  fe::cudnn_dlhandle = ::dlopen(library.path().c_str(), RTLD_NOW | RTLD_NODELETE);
  if (fe::cudnn_dlhandle == nullptr) return Error{ErrorCode::kInternal, "cuDNN does not load"};
  return ok_status();
}

Result<std::unique_ptr<CudaAttention>> make_cudnn_attention(std::unique_ptr<CudaAttention> otherwise,
                                                            const std::filesystem::path& libtorch) {
  if (fe::cudnn_dlhandle == nullptr) ATOLL_RETURN_IF_ERROR(cudnn_attention_loads(libtorch));
  try {
    return std::unique_ptr<CudaAttention>(std::make_unique<CudnnAttention>(std::move(otherwise)));
  } catch (const std::exception& error) {
    return Error{ErrorCode::kInternal, error.what()};
  }
}

}  // namespace atl

#else

namespace atl {

Status cudnn_attention_loads(const std::filesystem::path&) {
  return Error{ErrorCode::kNotFound, "this program was built without the headers of cuDNN's front end"};
}

Result<std::unique_ptr<CudaAttention>> make_cudnn_attention(std::unique_ptr<CudaAttention>,
                                                            const std::filesystem::path&) {
  return cudnn_attention_loads({}).error();
}

}  // namespace atl

#endif
