#include <fmt/format.h>
#include <algorithm>

#include "net/check/figures.h"
#include "net/check/judge_rows.h"
#include "net/check/run_needs.h"

namespace atl {

CheckRow judge_cpu(const NodeFacts& facts, const CheckPolicy& policy) {
  const HostFacts& host = facts.host;
  const std::string machine = fmt::format("{} cores, {}", host.cores, host.instructions);
  if (computes_on_gpus(facts, policy)) return skipped(machine + "; the GPUs compute");
  const char* alone = facts.gpu.devices.empty() ? "no GPU" : "GPUs idle";
  if (!facts.run) {
    const double fits =
        static_cast<double>(host.ram_bytes) / policy.thresholds.ram.pass / static_cast<double>(kBytesPerParameter);
    return judged(Verdict::kPass, host.cores, "count",
                  fmt::format("{}, {}: can train models of up to {} parameters", machine, alone,
                              figures::count(std::min(fits, policy.thresholds.cpu_parameters.pass))),
                  "");
  }
  const auto parameters = static_cast<double>(facts.run->parameters);
  return judged(at_most(parameters, policy.thresholds.cpu_parameters), host.cores, "count",
                fmt::format("{}, {}, for a model of {} parameters", machine, alone, figures::count(parameters)),
                "this model wants a GPU that computes: join a run with a smaller one, or use another machine");
}

namespace {

std::string at_once(const RunNeeds& run, const MicroBatch& choice) {
  return fmt::format(
      "with {} of {} tokens computed at once",
      choice.sequences == 1 ? std::string("one sequence") : fmt::format("{} sequences", choice.sequences),
      run.sequence_length);
}

std::string fix_for_memory(const RunNeeds& run, const MicroBatch& choice) {
  if (run.micro_batch_is_chosen && choice.sequences > 1) {
    return "leave the choice to the trainer: atoll config set island.micro_batch 0, then atoll join";
  }
  return "add memory, use a machine that has more, or join a run with a smaller model or shorter sequences";
}

// Where the CPU computes: the most sequences at once that fit, or those that the owner chose.
CheckRow judge_ram_of_cpu(const HostFacts& host, const RunNeeds& run, Limit limit) {
  const auto bytes = static_cast<double>(host.ram_bytes);
  const std::uint64_t unused = host.ram_available_bytes.value_or(host.ram_bytes);
  const MicroBatch choice = choose_micro_batch(run.micro_batches, unused);
  const auto needs = static_cast<double>(choice.bytes);
  const Verdict verdict = at_least(bytes, {limit.pass * needs, limit.warn * needs});
  const std::string how = at_once(run, choice);
  if (verdict == Verdict::kPass && choice.bytes > unused) {
    return judged(Verdict::kWarn, bytes, "B",
                  fmt::format("{} of {} are free now < {} for this run {}", figures::bytes(static_cast<double>(unused)),
                              figures::bytes(bytes), figures::bytes(needs), how),
                  "end other programs before it trains");
  }
  const double wanted = (verdict == Verdict::kFail ? limit.warn : limit.pass) * needs;
  return judged(verdict, bytes, "B",
                fmt::format("{} {} {} for this run {}", figures::bytes(bytes), verdict == Verdict::kPass ? ">=" : "<",
                            figures::bytes(wanted), how),
                fix_for_memory(run, choice));
}

}  // namespace

CheckRow judge_ram(const NodeFacts& facts, const CheckPolicy& policy) {
  const auto bytes = static_cast<double>(facts.host.ram_bytes);
  if (!facts.run) return skipped(fmt::format("{}; which run is it for?", figures::bytes(bytes)));
  const Limit limit = policy.thresholds.ram;
  if (!computes_on_gpus(facts, policy) && !facts.run->micro_batches.empty()) {
    return judge_ram_of_cpu(facts.host, *facts.run, limit);
  }
  const auto needs = static_cast<double>(facts.run->bytes_beside_gpus);
  const Verdict verdict = at_least(bytes, {limit.pass * needs, limit.warn * needs});
  const double wanted = (verdict == Verdict::kFail ? limit.warn : limit.pass) * needs;
  return judged(verdict, bytes, "B",
                fmt::format("{} {} {} for this run ({:.1f} bytes a parameter)", figures::bytes(bytes),
                            verdict == Verdict::kPass ? ">=" : "<", figures::bytes(wanted),
                            needs / static_cast<double>(std::max<std::uint64_t>(1, facts.run->parameters))),
                "add memory, or use a machine that has more");
}

CheckRow judge_shm(const NodeFacts& facts, const CheckPolicy& policy) {
  const auto bytes = static_cast<double>(facts.host.shm_bytes);
  if (facts.gpu.devices.size() < 2 || !computes_on_gpus(facts, policy)) {
    return skipped("only several GPUs that compute use it");
  }
  return judged(at_least(bytes, policy.thresholds.shm), bytes, "B",
                fmt::format("/dev/shm holds {}", figures::bytes(bytes)),
                "in a container: --shm-size=8g; else: mount -o remount,size=8G /dev/shm");
}

CheckRow judge_nofile(const NodeFacts& facts, const CheckPolicy& policy) {
  const auto files = static_cast<double>(facts.host.nofile);
  const Limit limit = policy.thresholds.nofile;
  const Verdict verdict = at_least(files, limit);
  return judged(verdict, files, "count",
                verdict == Verdict::kPass ? fmt::format("{:.0f} open files", files)
                                          : fmt::format("{:.0f} < {:.0f} open files", files, limit.pass),
                fmt::format("as a service: LimitNOFILE={0:.0f}; in a shell: ulimit -n {0:.0f}", limit.pass));
}

CheckRow judge_memlock(const NodeFacts& facts, const CheckPolicy& policy) {
  if (!computes_on_gpus(facts, policy)) return skipped("only GPUs that compute want locked memory");
  if (!facts.host.memlock_bytes) return {.verdict = Verdict::kPass, .text = "unlimited"};
  const auto bytes = static_cast<double>(*facts.host.memlock_bytes);
  return judged(Verdict::kWarn, bytes, "B", fmt::format("{}, not unlimited", figures::bytes(bytes)),
                "as a service: LimitMEMLOCK=infinity; in a shell: ulimit -l unlimited");
}

CheckRow judge_net_cc(const NodeFacts& facts, const CheckPolicy&) {
  const std::string& now = facts.host.congestion_control;
  if (facts.host.bbr_usable)
    return {.verdict = Verdict::kPass, .text = fmt::format("bbr usable (the system's: {})", now)};
  return {.verdict = Verdict::kWarn,
          .text = fmt::format("bbr may not be used here (the system's: {}); long links will be slower", now),
          .fix = "modprobe tcp_bbr; sysctl -w net.ipv4.tcp_allowed_congestion_control='reno cubic bbr'"};
}

CheckRow judge_disk_free(const NodeFacts& facts, const CheckPolicy& policy) {
  const DiskFacts& disk = facts.disk;
  if (!disk.problem.empty()) {
    return failed(disk.problem, "choose another directory with --home DIR, or set its owner: chown");
  }
  const auto free = static_cast<double>(disk.free_bytes);
  if (!facts.run) return skipped(fmt::format("{} free in {}; which run is it for?", figures::bytes(free), disk.path));
  const Limit limit = policy.thresholds.disk_free;
  const auto lacking = [&](double checkpoints) {
    return std::max(0.0, disk_bytes(*facts.run, checkpoints) - static_cast<double>(disk.held_bytes));
  };
  const double pass = lacking(limit.pass), warn = lacking(limit.warn);
  const Verdict verdict = at_least(free, {pass, warn});
  return judged(verdict, free, "B",
                verdict == Verdict::kPass ? fmt::format("{} free", figures::bytes(free))
                                          : fmt::format("{} < {} for this run", figures::bytes(free),
                                                        figures::bytes(verdict == Verdict::kWarn ? pass : warn)),
                "free some space, or choose another directory with --home DIR");
}

CheckRow judge_disk_write(const NodeFacts& facts, const CheckPolicy& policy) {
  const DiskFacts& disk = facts.disk;
  if (!disk.problem.empty()) {
    return failed(disk.problem, "choose another directory with --home DIR, or set its owner: chown");
  }
  if (!disk.write_bytes_per_second) return skipped("it was not measured");
  const double rate = *disk.write_bytes_per_second;
  if (!facts.run) return skipped(fmt::format("{}; which run is it for?", figures::bytes_per_second(rate)));
  const double seconds = checkpoint_bytes(*facts.run) / rate;
  return judged(at_most(seconds, policy.thresholds.disk_write), seconds, "s",
                fmt::format("a checkpoint in {} at {}", figures::seconds(seconds), figures::bytes_per_second(rate)),
                "choose a directory on a faster disk with --home DIR");
}

}  // namespace atl
