#include "tests/cuda_on_cpu/emulator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "cuda_runtime_api.h"
#include "tests/cuda_on_cpu/block.h"
#include "tests/cuda_on_cpu/memory.h"
#include "tests/cuda_on_cpu/runtime_state.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace atl::cuda_on_cpu {

Launch launch_now;
thread_local bool in_kernel = false;
std::uintptr_t stack_now = 0;

namespace {

Stacks stacks;
std::uint64_t seed_set = 1;
std::uint64_t random_state = 1;
bool catching = false;
std::string caught;

// splitmix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
std::uint64_t draw() {
  std::uint64_t z = random_state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Often all at random; often in order, forwards or backwards, in which a missing barrier shows at its farthest.
void shuffle(std::vector<unsigned>& order) {
  const std::uint64_t kind = draw() % 4;
  if (kind == 0) std::sort(order.begin(), order.end());
  if (kind == 1) std::sort(order.begin(), order.end(), std::greater<>());
  if (kind >= 2) {
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[draw() % i]);
  }
}

void report(const std::string& where, const std::string& what) {
  const Launch& l = launch_now;
  const std::string all = std::string("CUDA on the CPU: kernel ") + l.site->kernel + ", launched at " +
                          name_of(l.site->at) + ", block " + name_of(l.block_index) + where + ", seed " +
                          std::to_string(seed_set) + ": " + what;
  launch_now.failed = true;
  if (!catching) {
    std::fprintf(stderr, "%s\n", all.c_str());
    std::abort();
  }
  if (caught.empty()) caught = all;
}

void leave_thread() {
  in_kernel = false;
  switch_context(&launch_now.threads[launch_now.now].context, launch_now.scheduler);
}

void thread_entry() {
  launch_now.body(launch_now.arguments);
  CudaThread& thread = launch_now.threads[launch_now.now];
  thread.state = CudaThread::State::kReturned;
  ++launch_now.returned;
  leave_thread();
  std::abort();  // nobody goes back to a thread that has returned
}

void begin_thread(unsigned i) {
  CudaThread& thread = launch_now.threads[i];
  thread.state = CudaThread::State::kReady;
  thread.clock.fill(0);
  thread.clock[i % kLanes] = 1;
  thread.stack = stacks.lowest_byte_of(i);
  // Tops at different distances from the page, else all of them would share a few lines of the cache.
  thread.context = new_context(thread.stack, Stacks::kBytes - i % 32 * 256, thread_entry);
  const dim3 block = launch_now.configuration->block;
  thread.index = {i % block.x, i / block.x % block.y, i / block.x / block.y};
}

// Until it returns, waits or fails.
void run_thread(unsigned i) {
  CudaThread& thread = launch_now.threads[i];
  launch_now.now = i;
  threadIdx = thread.index;
  stack_now = reinterpret_cast<std::uintptr_t>(thread.stack);
  in_kernel = true;
  switch_context(&launch_now.scheduler, thread.context);
}

std::string waits_at(const CudaThread& thread) {
  switch (thread.state) {
    case CudaThread::State::kInBlockMeeting: return "a barrier at " + name_of(thread.site);
    case CudaThread::State::kInWarpMeeting: {
      char mask[16];
      std::snprintf(mask, sizeof mask, "0x%08x", thread.mask);
      return "a warp's function of mask " + std::string(mask) + " at " + name_of(thread.site);
    }
    case CudaThread::State::kReturned: return "its end";
    case CudaThread::State::kReady: break;
  }
  return "nothing";
}

// Of threads that all wait: one of each place.
void report_deadlock() {
  std::string all;
  std::vector<std::string> places;
  for (unsigned i = 0; i < launch_now.count; ++i) {
    const std::string place = waits_at(launch_now.threads[i]);
    if (std::find(places.begin(), places.end(), place) != places.end()) continue;
    places.push_back(place);
    all += (all.empty() ? "thread " : "; thread ") + name_of(launch_now.threads[i].index) + " is at " + place;
  }
  fail_in_block("threads wait for one another for ever: " + all);
}

void release_block() {
  Launch& l = launch_now;
  unsigned holding = 0;
  for (unsigned i = 0; i < l.count; ++i) {
    const CudaThread& first = l.threads[0];
    const CudaThread& thread = l.threads[i];
    if (thread.block_meeting != first.block_meeting || thread.site.line != first.site.line ||
        std::string_view(thread.site.file) != first.site.file) {
      return fail_in_block("a divergent barrier: thread " + name_of(first.index) + " is at " + waits_at(first) +
                           ", thread " + name_of(thread.index) + " at " + waits_at(thread));
    }
    holding += thread.value != 0;
  }
  for (unsigned i = 0; i < l.count; ++i) {
    CudaThread& thread = l.threads[i];
    const BlockMeeting kind = thread.block_meeting;
    thread.result = kind == BlockMeeting::kCount ? holding
                    : kind == BlockMeeting::kAnd ? holding == l.count
                                                 : holding != 0;
    thread.state = CudaThread::State::kReady;
    l.ready.push_back(i);
  }
  l.in_block_meeting = 0;
  ++l.era;
}

void run_block() {
  Launch& l = launch_now;
  begin_shared(l.configuration->shared_bytes);
  l.first_era_of_block = ++l.era;
  l.in_block_meeting = l.returned = 0;
  l.ready.resize(l.count);
  std::iota(l.ready.begin(), l.ready.end(), 0u);
  for (unsigned i = 0; i < l.count; ++i) begin_thread(i);
  std::vector<unsigned> round;
  while (l.returned < l.count) {
    round.swap(l.ready);
    l.ready.clear();
    if (round.empty()) return report_deadlock();
    shuffle(round);
    for (const unsigned i : round) {
      run_thread(i);
      if (l.failed) return;
    }
    if (const char* where = shared_overrun()) return fail_in_block(std::string("wrote beside shared memory: ") + where);
    if (l.in_block_meeting == l.count) release_block();
    if (l.failed) return;
  }
}

bool can_be_launched(const Configuration& c) {
  const auto threads = std::uint64_t{c.block.x} * c.block.y * c.block.z;
  return threads >= 1 && threads <= 1024 && c.block.z <= 64 && c.grid.x >= 1 && c.grid.x <= 0x7fffffffu &&
         c.grid.y >= 1 && c.grid.y <= 65535 && c.grid.z >= 1 && c.grid.z <= 65535 &&
         c.shared_bytes <= dynamic_shared_limit();
}

}  // namespace

void run_grid(const LaunchSite& site, const Configuration& configuration, void (*body)(const void*),
              const void* arguments) {
  if (in_kernel) fail_in_thread("a kernel launches another");
  if (!can_be_launched(configuration)) return set_last_error(cudaErrorInvalidConfiguration);
  const MutexLock lock(launch_lock());
  Launch& l = launch_now;
  l.site = &site;
  l.configuration = &configuration;
  l.body = body;
  l.arguments = arguments;
  l.count = configuration.block.x * configuration.block.y * configuration.block.z;
  if (l.threads.size() < l.count) l.threads.resize(l.count);
  l.failed = l.fenced = false;
  l.first_era_of_launch = l.era + 1;
  blockDim = configuration.block;
  gridDim = configuration.grid;
  begin_launch_memory();
  const dim3 grid = configuration.grid;
  std::vector<unsigned> order(std::size_t{grid.x} * grid.y * grid.z);
  std::iota(order.begin(), order.end(), 0u);
  shuffle(order);
  for (const unsigned i : order) {
    blockIdx = l.block_index = {i % grid.x, i / grid.x % grid.y, i / grid.x / grid.y};
    run_block();
    if (l.failed) return set_last_error(cudaErrorLaunchFailure);
  }
}

int meet_block(BlockMeeting kind, int predicate, CallSite site) {
  if (!in_kernel) std::abort();
  CudaThread& thread = launch_now.threads[launch_now.now];
  thread.block_meeting = kind;
  thread.value = predicate != 0;
  thread.site = site;
  thread.state = CudaThread::State::kInBlockMeeting;
  ++launch_now.in_block_meeting;
  leave_thread();
  return static_cast<int>(thread.result);
}

void fence() { launch_now.fenced = true; }
void trap(const char* why) { fail_in_thread(why); }

void fail_in_thread(const std::string& what) {
  const bool inside = in_kernel;
  in_kernel = false;
  report(", thread " + name_of(launch_now.threads[launch_now.now].index), what);
  if (inside) leave_thread();
  std::abort();  // a thread that has failed does not go on
}

void fail_in_block(const std::string& what) { report("", what); }

std::string name_of(uint3 index) {
  return "(" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " + std::to_string(index.z) + ")";
}

std::string name_of(CallSite site) { return std::string(site.file) + ":" + std::to_string(site.line); }

void set_seed(std::uint64_t seed) { seed_set = random_state = seed; }

FailureCatcher::FailureCatcher() {
  catching = true;
  caught.clear();
}
FailureCatcher::~FailureCatcher() {
  catching = false;
  (void)cudaGetLastError();
}
std::string FailureCatcher::message() const { return caught; }

}  // namespace atl::cuda_on_cpu
