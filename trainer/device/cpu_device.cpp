#include "trainer/device/cpu_device.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernels/model/attention.h"
#include "kernels/model/cached_attention.h"
#include "kernels/model/gemm.h"
#include "kernels/model/model_kernels.h"
#include "net/base/deadline.h"
#include "trainer/device/cpu_library.h"

namespace atl {
namespace {

// Rows that a thread computes at once; fixed, so that nothing depends on the number of threads.
constexpr std::int64_t kRowsPerTask = 64;
constexpr std::int64_t kValuesPerTask = 65536;
static_assert(kRowsPerTask == kNormPartRows && kValuesPerTask == kSquarePart);

// Runs operations whose tensors are in this device's arenas.
class CpuRunner {
 public:
  CpuRunner(const CpuDevice& device, Communicator& communicator, int threads)
      : device_(device), communicator_(communicator), threads_(threads) {}

  void operator()(const Fill& o) const {
    auto* x = device_.at(o.x);
    if (o.value == 0) {
      std::memset(x, 0, static_cast<std::size_t>(o.x.extent_bytes()));
    } else {
      std::fill_n(reinterpret_cast<float*>(x), o.x.numel(), o.value);
    }
  }

  void operator()(const Convert& o) const {
    const float* from = at<float>(o.from);
    Bf16* to = at<Bf16>(o.to);
    values(o.from.numel(), [&](std::int64_t begin, std::int64_t count) {
      value_kernels().round_to_bf16(from + begin, count, to + begin);
    });
  }

  void operator()(const Embed& o) const {
    typed(o.x, [&]<class T>(T) {
      rows(o.x.rows, [&](std::int64_t begin, std::int64_t count) {
        model_kernels<T>().embed(at<T>(o.table), at<std::int32_t>(o.tokens) + begin, count, o.x.columns,
                                 at<T>(o.x) + begin * o.x.stride);
      });
    });
  }

  void operator()(const EmbedBackward& o) const {
    typed(o.dx, [&]<class T>(T) {
      model_kernels<T>().embed_backward(at<T>(o.dx), at<std::int32_t>(o.tokens), o.dx.rows, o.dx.columns,
                                        at<float>(o.gradient));
    });
  }

  void operator()(const RmsNorm& o) const {
    typed(o.x, [&]<class T>(T) {
      rows(o.x.rows, [&](std::int64_t begin, std::int64_t count) {
        const std::int64_t first = begin * o.x.columns;
        model_kernels<T>().rms_norm(at<T>(o.x) + first, at<T>(o.weight), o.epsilon, count, o.x.columns,
                                    at<T>(o.y) + first, at<float>(o.inverse_rms) + begin);
      });
    });
  }

  void operator()(const RmsNormBackward& o) const {
    const std::int64_t hidden = o.x.columns;
    float* partial = at<float>(o.partial);
    typed(o.x, [&]<class T>(T) {
      rows(o.x.rows, [&](std::int64_t begin, std::int64_t count) {
        const std::int64_t first = begin * hidden;
        model_kernels<T>().rms_norm_backward(at<T>(o.dy) + first, at<T>(o.x) + first, at<T>(o.weight),
                                             at<float>(o.inverse_rms) + begin,
                                             o.residual ? at<T>(*o.residual) + first : nullptr, count, hidden,
                                             at<T>(o.dx) + first, partial + begin / kNormPartRows * hidden);
      });
    });
    float* sum = at<float>(o.dweight);
    if (!o.accumulate) std::memset(sum, 0, static_cast<std::size_t>(o.dweight.extent_bytes()));
    for (std::int64_t part = 0; part < norm_parts(o.x.rows); ++part) {
      value_kernels().add(sum, partial + part * hidden, hidden);
    }
  }

  void operator()(const MatMul& o) const {
    if (o.a.dtype == DType::kFloat32) {
      multiply(gemm_of<float, float>(o), library_sgemm);
      return;
    }
    // Whole rows of tasks: a product's sums do not depend on how the rows of its result are divided.
    const std::int64_t most = (o.out.rows + threads_ - 1) / threads_;
    cpu_parallel(threads_ == 1 ? 1 : threads_, [&](std::int64_t task) {
      const std::int64_t first = task * most;
      const std::int64_t count = std::min(most, o.out.rows - first);
      if (count <= 0) return;
      const auto part = [&](auto gemm) {
        gemm.m = count;
        gemm.a += gemm.transpose_a ? first : first * gemm.lda;
        gemm.c += first * gemm.ldc;
        if (gemm.add != nullptr) gemm.add += first * gemm.ld_add;
        multiply(gemm);
      };
      o.out.dtype == DType::kFloat32 ? part(gemm_of<Bf16, float>(o)) : part(gemm_of<Bf16, Bf16>(o));
    });
  }

  void operator()(const Rope& o) const {
    const std::int64_t half = o.head_dim / 2;
    const std::int32_t* const starts = starts_of(o);
    typed(o.x, [&]<class T>(T) {
      rows(o.x.rows, [&](std::int64_t begin, std::int64_t count) {
        for (std::int64_t row = begin; row < begin + count; ++row) {
          const std::int64_t angle = (row % o.length - (starts == nullptr ? 0 : starts[row])) * half;
          model_kernels<T>().rope_row(at<T>(o.x) + row * o.x.stride, at<float>(o.cosines) + angle,
                                      at<float>(o.sines) + angle, o.heads, o.head_dim, o.direction);
        }
      });
    });
  }

  void operator()(const Attention& o) const {
    typed(o.qkv, [&]<class T>(T) {
      const AttentionPass<T> pass{sizes_of(o.shape), at<T>(o.qkv), at<T>(o.out), at<float>(o.logsumexp), starts_of(o)};
      with_scratch(o.scratch, o.shape.sequences * o.shape.heads, [&](std::int64_t task, std::byte* scratch) {
        attention_head<T>(pass, task / o.shape.heads, task % o.shape.heads, scratch, library_sgemm);
      });
    });
  }

  void operator()(const AttentionBackward& o) const {
    typed(o.qkv, [&]<class T>(T) {
      const AttentionBackwardPass<T> pass{sizes_of(o.shape),      at<T>(o.dout), at<T>(o.qkv), at<T>(o.out),
                                          at<float>(o.logsumexp), at<T>(o.dqkv), starts_of(o)};
      const std::int64_t groups = o.shape.key_value_heads;
      with_scratch(o.scratch, o.shape.sequences * groups, [&](std::int64_t task, std::byte* scratch) {
        attention_backward_group<T>(pass, task / groups, task % groups, scratch, library_sgemm);
      });
    });
  }

  void operator()(const CachedAttention& o) const {
    const auto* const slots = at<std::int32_t>(o.slots);
    const auto* const positions = at<std::int32_t>(o.positions);
    std::vector<CachedRun> runs;
    for (std::int64_t row = 0; row < o.qkv.rows; ++row) {
      const CachedRun one{row, 1, slots[row], positions[row]};
      const bool goes_on = !runs.empty() && runs.back().slot == one.slot && runs.back().count < kAttentionQueries &&
                           runs.back().position + runs.back().count == one.position;
      goes_on ? void(++runs.back().count) : runs.push_back(one);
    }
    typed(o.qkv, [&]<class T>(T) {
      write_cache<T>(o, runs);
      const CachedAttentionPass<T> pass{{o.heads, o.key_value_heads, o.head_dim, o.capacity},
                                        at<T>(o.qkv),
                                        at<T>(o.keys),
                                        at<T>(o.values),
                                        at<T>(o.out)};
      const auto tasks = static_cast<std::int64_t>(runs.size()) * o.key_value_heads;
      with_scratch(o.scratch, tasks, [&](std::int64_t task, std::byte* scratch) {
        const CachedRun& run = runs[static_cast<std::size_t>(task / o.key_value_heads)];
        if (run.slot < 0) return;
        cached_attention_group<T>(pass, run, task % o.key_value_heads, scratch, library_sgemm);
      });
    });
  }

  void operator()(const LogProbability& o) const {
    const std::int64_t vocab = o.logits.columns;
    typed(o.logits, [&]<class T>(T) {
      pieces(o.logits.rows, 1, [&](std::int64_t row, std::int64_t) {
        T* const logits = at<T>(o.logits) + row * vocab;
        const std::int32_t label = at<std::int32_t>(o.labels)[row];
        const LossSums sums =
            model_kernels<T>().cross_entropy(logits, &label, 1, vocab, 1.0f, 0.0f, /*gradient=*/false);
        at<float>(o.log_probabilities)[row] = static_cast<float>(-sums.cross_entropy);
        at<std::int32_t>(o.greedy)[row] = is_first_of_largest(logits, vocab, label) ? 1 : 0;
      });
    });
  }

  void operator()(const Swiglu& o) const {
    const std::int64_t inner = o.out.columns;
    typed(o.out, [&]<class T>(T) {
      rows(o.out.rows, [&](std::int64_t begin, std::int64_t count) {
        model_kernels<T>().swiglu(at<T>(o.gate_up) + begin * 2 * inner, count, inner, at<T>(o.out) + begin * inner);
      });
    });
  }

  void operator()(const SwigluBackward& o) const {
    const std::int64_t inner = o.dout.columns;
    typed(o.dout, [&]<class T>(T) {
      rows(o.dout.rows, [&](std::int64_t begin, std::int64_t count) {
        const std::int64_t first = begin * 2 * inner;
        model_kernels<T>().swiglu_backward(at<T>(o.dout) + begin * inner, at<T>(o.gate_up) + first, count, inner,
                                           at<T>(o.dgate_up) + first);
      });
    });
  }

  void operator()(const CrossEntropy& o) const {
    const std::int64_t vocab = o.logits.columns;
    const std::int64_t tasks = (o.logits.rows + kRowsPerTask - 1) / kRowsPerTask;
    auto* parts = at<LossSums>(o.row_sums);
    static_assert(sizeof(LossSums) <= 2 * 2 * sizeof(float));  // there are at least two rows of scratch
    typed(o.logits, [&]<class T>(T) {
      rows(o.logits.rows, [&](std::int64_t begin, std::int64_t count) {
        parts[begin / kRowsPerTask] =
            model_kernels<T>().cross_entropy(at<T>(o.logits) + begin * vocab, at<std::int32_t>(o.labels) + begin, count,
                                             vocab, *at<float>(o.scale), o.max_z_loss, o.gradient);
      });
    });
    auto* sums = at<double>(o.sums);
    for (std::int64_t part = 0; part < tasks; ++part) {
      sums[0] += parts[part].cross_entropy;
      sums[1] += parts[part].squared_max_logit;
    }
  }

  void operator()(const SquaredNorm& o) const {
    const float* x = at<float>(o.x);
    auto* parts = at<double>(o.scratch);
    values(o.x.numel(), [&](std::int64_t begin, std::int64_t count) {
      parts[begin / kSquarePart] = value_kernels().sum_of_squares(x + begin, count);
    });
    double sum = 0;
    for (std::int64_t part = 0; part < square_parts(o.x.numel()); ++part) sum += parts[part];
    *at<double>(o.sum) = sum;
  }

  void operator()(const ClipScale& o) const {
    const auto* sums = at<double>(o.sums);
    auto* scalars = at<float>(o.scalars);
    const double norm = std::sqrt(sums[static_cast<int>(StepSum::kGradientSquares)]);
    const bool finite = std::isfinite(sums[0]) && std::isfinite(sums[1]) && std::isfinite(norm);
    const auto clip = static_cast<double>(o.clip_norm);
    const double factor = clip > 0 ? std::min(1.0, clip / (norm + 1e-6)) : 1.0;
    scalars[static_cast<int>(StepScalar::kGradientScale)] = finite ? static_cast<float>(factor) : 0.0f;
    float& stopped = scalars[static_cast<int>(StepScalar::kStopped)];
    scalars[static_cast<int>(StepScalar::kApply)] = finite && stopped == 0 ? 1.0f : 0.0f;
    if (!finite) stopped = 1.0f;
  }

  void operator()(const AdamW& o) const {
    const auto* scalars = at<float>(o.scalars);
    const auto scalar = [&](StepScalar which) { return scalars[static_cast<int>(which)]; };
    if (scalar(StepScalar::kApply) == 0) return;
    const AdamWStep step{.decay = scalar(StepScalar::kDecay),
                         .step_size = scalar(StepScalar::kStepSize),
                         .inverse_correction2 = scalar(StepScalar::kInverseCorrection2),
                         .gradient_scale = scalar(StepScalar::kGradientScale),
                         .beta1 = o.beta1,
                         .beta2 = o.beta2,
                         .epsilon = o.epsilon};
    values(o.parameters.numel(), [&](std::int64_t begin, std::int64_t count) {
      model_kernels<float>().adamw(at<float>(o.parameters) + begin, at<float>(o.gradients) + begin,
                                   at<float>(o.first_moment) + begin, at<float>(o.second_moment) + begin,
                                   o.rounded ? at<Bf16>(*o.rounded) + begin : nullptr, count, step);
    });
  }

  void operator()(const AllGather& o) const {
    communicator_.all_gather({device_.at(o.shard), static_cast<std::size_t>(o.shard.extent_bytes())},
                             {device_.at(o.full), static_cast<std::size_t>(o.full.extent_bytes())});
  }

  void operator()(const ReduceScatter& o) const {
    communicator_.reduce_scatter({at<float>(o.full), static_cast<std::size_t>(o.full.numel())},
                                 {at<float>(o.shard), static_cast<std::size_t>(o.shard.numel())}, o.accumulate);
  }

  void operator()(const AllReduce& o) const {
    communicator_.all_reduce_sum({at<double>(o.values), static_cast<std::size_t>(o.values.numel())});
  }

 private:
  template <class T>
  T* at(const Tensor& tensor) const {
    return reinterpret_cast<T*>(device_.at(tensor));
  }

  const std::int32_t* starts_of(const auto& o) const { return o.starts ? at<std::int32_t>(*o.starts) : nullptr; }

  // The keys and values of the runs' rows, to their places; what is not there gets its zeros.
  template <class T>
  void write_cache(const CachedAttention& o, std::span<const CachedRun> runs) const {
    const auto head_bytes = static_cast<std::size_t>(o.head_dim) * sizeof(T);
    for (const CachedRun& run : runs) {
      if (run.slot < 0) {
        std::memset(static_cast<void*>(at<T>(o.out) + run.row * o.out.columns), 0,
                    static_cast<std::size_t>(run.count * o.out.columns) * sizeof(T));
        continue;
      }
      for (std::int64_t i = 0; i < run.count; ++i) {
        const T* const key = at<T>(o.qkv) + (run.row + i) * o.qkv.columns + o.heads * o.head_dim;
        for (std::int64_t head = 0; head < o.key_value_heads; ++head) {
          const std::int64_t place =
              ((run.slot * o.key_value_heads + head) * o.capacity + run.position + i) * o.head_dim;
          std::memcpy(static_cast<void*>(at<T>(o.keys) + place), key + head * o.head_dim, head_bytes);
          std::memcpy(static_cast<void*>(at<T>(o.values) + place), key + (o.key_value_heads + head) * o.head_dim,
                      head_bytes);
        }
      }
    }
  }

  static float widened(float value) { return value; }
  static float widened(Bf16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }
  template <class T>
  static bool is_first_of_largest(const T* logits, std::int64_t vocab, std::int64_t label) {
    const float most = widened(logits[label]);
    for (std::int64_t i = 0; i < label; ++i) {
      if (!(widened(logits[i]) < most)) return false;
    }
    for (std::int64_t i = label + 1; i < vocab; ++i) {
      if (!(widened(logits[i]) <= most)) return false;
    }
    return true;
  }

  template <class Task>
  static void typed(const Tensor& tensor, Task&& task) {
    tensor.dtype == DType::kBfloat16 ? task(Bf16{}) : task(float{});
  }

  // task(first row, rows), kRowsPerTask at once.
  template <class Task>
  void rows(std::int64_t count, Task&& task) const {
    pieces(count, kRowsPerTask, task);
  }
  template <class Task>
  void values(std::int64_t count, Task&& task) const {
    pieces(count, kValuesPerTask, task);
  }
  template <class Task>
  void pieces(std::int64_t count, std::int64_t piece, Task&& task) const {
    const auto one = [&](std::int64_t index) { task(index * piece, std::min(piece, count - index * piece)); };
    const std::int64_t tasks = (count + piece - 1) / piece;
    if (threads_ == 1) {
      for (std::int64_t index = 0; index < tasks; ++index) one(index);
    } else {
      cpu_parallel(tasks, one);
    }
  }

  // task(index, scratch of its own), for all of `count`: each thread takes every threads_-th.
  template <class Task>
  void with_scratch(const Tensor& scratch, std::int64_t count, Task&& task) const {
    const std::int64_t each = scratch.extent_bytes() / threads_ / kArenaAlignment * kArenaAlignment;
    cpu_parallel(threads_, [&](std::int64_t thread) {
      for (std::int64_t index = thread; index < count; index += threads_)
        task(index, device_.at(scratch) + thread * each);
    });
  }

  static AttentionSizes sizes_of(const AttentionShape& shape) {
    return {shape.length, shape.heads, shape.key_value_heads, shape.head_dim};
  }

  template <class T, class Out>
  Gemm<T, Out> gemm_of(const MatMul& o) const {
    return {.transpose_a = o.transpose_a,
            .transpose_b = o.transpose_b,
            .m = o.out.rows,
            .n = o.out.columns,
            .k = o.transpose_a ? o.a.rows : o.a.columns,
            .a = at<T>(o.a),
            .lda = o.a.stride,
            .b = at<T>(o.b),
            .ldb = o.b.stride,
            .c = at<Out>(o.out),
            .ldc = o.out.stride,
            .add = o.add ? at<Out>(*o.add) : nullptr,
            .ld_add = o.add ? o.add->stride : 0,
            .accumulate = o.accumulate};
  }

  const CpuDevice& device_;
  Communicator& communicator_;
  const int threads_;
};

}  // namespace

void CpuDevice::Unmap::operator()(std::byte* memory) const noexcept { (void)::munmap(memory, bytes); }

CpuDevice::CpuDevice(Communicator& communicator, int threads) : communicator_(communicator), threads_(threads) {}

void CpuDevice::take_arena(Arena arena, std::int64_t bytes) {
  auto& memory = arenas_[static_cast<std::size_t>(arena)];
  memory.reset();
  if (bytes == 0) return;
  const auto size = static_cast<std::size_t>(bytes);
  void* mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    throw std::runtime_error(fmt::format(
        "there is no memory for {:.1f} GB of {}: {}", static_cast<double>(bytes) / 1e9,
        arena == Arena::kKept ? "parameters and optimiser state" : "a step's activations", std::strerror(errno)));
  }
  (void)::madvise(mapped, size, MADV_HUGEPAGE);
  memory = {static_cast<std::byte*>(mapped), Unmap{size}};
}

void CpuDevice::rest() {
  const auto& memory = arenas_[static_cast<std::size_t>(Arena::kStep)];
  if (memory) (void)::madvise(memory.get(), memory.get_deleter().bytes, MADV_DONTNEED);
}

void CpuDevice::run(StreamId, const Operation& operation) {
  const CpuRunner runner(*this, communicator_, threads_);
  StepSeconds* const seconds = measured_ < 0 ? nullptr : &*seconds_[static_cast<std::size_t>(measured_)];
  if (seconds == nullptr) return std::visit(runner, operation);
  const auto began = Clock::now();
  std::visit(runner, operation);
  (*seconds)[part_of(operation)] += Seconds(Clock::now() - began).count();
}

void CpuDevice::upload(const Tensor& to, std::span<const std::byte> from) {
  std::memcpy(at(to), from.data(), from.size());
}

void CpuDevice::download(const Tensor& from, std::span<std::byte> to) { std::memcpy(to.data(), at(from), to.size()); }

void CpuDevice::send_result(int slot, std::span<const Tensor> from) {
  auto& result = results_.at(static_cast<std::size_t>(slot));
  result.clear();
  for (const Tensor& tensor : from) result.insert(result.end(), at(tensor), at(tensor) + tensor.extent_bytes());
  measured_ = -1;
}

void CpuDevice::await_result(int slot, std::span<std::byte> to) {
  std::memcpy(to.data(), results_.at(static_cast<std::size_t>(slot)).data(), to.size());
}

void CpuDevice::measure_seconds(int slot) {
  measured_ = slot;
  seconds_.at(static_cast<std::size_t>(slot)).emplace();
}

std::optional<StepSeconds> CpuDevice::take_seconds(int slot) {
  return std::exchange(seconds_.at(static_cast<std::size_t>(slot)), std::nullopt);
}

void CpuDevice::reset() noexcept {
  measured_ = -1;
  seconds_.fill(std::nullopt);
}

}  // namespace atl
