// An island that trains, as far as its disk sees it, and what tests of that disk share.
#pragma once

#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <filesystem>
#include <fstream>
#include <future>
#include <random>
#include <thread>

#include "net/base/encoding.h"
#include "net/collective/canonical_digest.h"
#include "net/disk/checkpoint_directory.h"
#include "net/model/fragments.h"
#include "tests/trainer/island/round_loop_fixture.h"
#include "trainer/island/island_disk.h"

namespace atl::test {

inline ModelConfig two_blocks() {
  ModelConfig config = tiny_model();
  config.num_hidden_layers = 2;
  return config;
}

// Of three chunks, the last one short; with two fragments each chunk is of one of them, or of both.
inline ModelConfig of_three_chunks() {
  ModelConfig config = two_blocks();
  config.vocab_size = 70'000;
  config.hidden_size = 32;
  return config;
}

// The island's disk, with something that happens after each chunk that is written.
class EventfulDisk final : public SnapshotDisk {
 public:
  EventfulDisk(IslandDisk& disk, std::function<void(std::uint64_t)> after) : disk_(disk), after_(std::move(after)) {}
  Status begin(std::uint64_t numel) override { return disk_.begin(numel); }
  Status put(std::uint64_t index, const StoredChunk& chunk, ByteView bytes) override {
    ATOLL_RETURN_IF_ERROR(disk_.put(index, chunk, bytes));
    after_(index);
    return ok_status();
  }
  Status flush() override { return disk_.flush(); }
  bool rounds_lead_to(OuterStep from, const HeldState& state) override { return disk_.rounds_lead_to(from, state); }
  Status finish(const HeldState& state) override { return disk_.finish(state); }
  void give_up() override {}  // as if the process had died
  bool has_snapshot_of(const HeldState& state) const override { return disk_.has_snapshot_of(state); }
  bool leads_to(const HeldState& state) const override { return disk_.leads_to(state); }
  bool asks_for_snapshot() const override { return disk_.asks_for_snapshot(); }

 private:
  IslandDisk& disk_;
  const std::function<void(std::uint64_t)> after_;
};

using States = std::map<OuterStep, std::pair<std::string, std::vector<float>>>;  // hash and parameters

// An island that trains, as far as its disk sees it. Averages are fp32, 4 bytes a parameter of the fragment.
class TrainingIsland {
 public:
  TrainingIsland(std::filesystem::path directory, std::uint32_t fragments = 1, std::uint32_t keep_states = 3,
                 ModelConfig model = two_blocks())
      : directory_(std::move(directory)),
        model_(std::move(model)),
        fragments_(*fragments_of(canonical_layout(model_), fragments)),
        outer_(canonical_layout(model_).numel),
        disk_(directory_) {
    disk_.of_run(model_, fragments, {.keep = keep_states, .rounds = {}});
    std::vector<float> parameters(static_cast<std::size_t>(numel()));
    for (float& value : parameters) value = uniform_(random_);
    outer_.initialise(std::move(parameters));
    remember();
  }

  std::int64_t numel() const { return canonical_layout(model_).numel; }
  const ModelConfig& model() const { return model_; }
  IslandDisk& disk() { return disk_; }
  OuterStateStore& outer() { return outer_; }
  const States& states() const { return states_; }
  HeldState held(std::uint32_t step) const { return {OuterStep{step}, states_.at(OuterStep{step}).first}; }

  void snapshot() { QVERIFY(write_snapshot(disk_, outer_).ok()); }
  // One that takes so long that this happens after each of its chunks. The state to which it leads.
  HeldState slow_snapshot(std::function<void(std::uint64_t)> after) {
    EventfulDisk disk(disk_, std::move(after));
    const auto written = write_snapshot(disk, outer_);
    if (!written.ok()) qFatal("%s", written.error().message.c_str());
    return *written;
  }
  // The average of the next round: kept before anybody commits it.
  void average_round() {
    const FragmentId fragment{outer_.version().value % static_cast<std::uint32_t>(fragments_.size())};
    average_.resize(static_cast<std::size_t>(fragments_[fragment.value].numel));
    for (float& value : average_) value = uniform_(random_);
    commit_ = {};
    commit_.round = outer_.version();
    commit_.attempt = Attempt{1};
    commit_.digest = to_hex(canonical_digest(canonical()));
    commit_.outer_learning_rate = 0.7;
    commit_.outer_momentum = 0.9;
    commit_.epoch = epoch;
    commit_.fragment = fragment;
    commit_.signature = "signature " + commit_.digest;
    kept = ok_status();
    if (!disk_.keeps()) return;  // as RoundKeeper does
    auto average = disk_.begin_average(fragment, commit_.round, WireFormat::kFp32, canonical().size());
    kept = average.ok() ? average->write(0, canonical()) : Status(average.error());
    if (kept.ok()) kept = average->finish(commit_.digest);
  }
  // As SyncLane::take_outer_step does it.
  void take_outer_step() {
    apply_round();
    log_round();
  }
  HeldState apply_round() {
    disk_.told(std::make_shared<const SignedCommit>(SignedCommit{commit_, "PEM"}));
    disk_.keep_commit(commit_);
    from_ = outer_.tree_hash();
    made_ = outer_.apply(fragments_[commit_.fragment.value].ranges, WireFormat::kFp32, canonical(), 0.7f, 0.9f);
    remember();
    return made_;
  }
  void log_round() { logged = disk_.keep_round({commit_, "PEM"}, WireFormat::kFp32, canonical(), from_, made_); }
  void train(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      average_round();
      take_outer_step();
    }
  }
  void go_back(std::uint32_t step) {
    auto state = disk_.kept_state(held(step), model_);
    QVERIFY2(state.ok(), state.ok() ? "" : state.error().message.c_str());
    outer_.replace(std::move(*state));
    ++epoch;
    std::erase_if(states_, [&](const auto& entry) { return entry.first.value > step; });
  }

  std::uint64_t epoch = 5;
  Status kept = ok_status(), logged = ok_status();

 private:
  ByteView canonical() const { return std::as_bytes(std::span(average_)); }
  void remember() {
    states_[outer_.version()] = {outer_.tree_hash(), {outer_.parameters().begin(), outer_.parameters().end()}};
  }

  const std::filesystem::path directory_;
  const ModelConfig model_;
  const std::vector<Fragment> fragments_;
  OuterStateStore outer_;
  IslandDisk disk_;
  std::mt19937 random_{7};
  std::uniform_real_distribution<float> uniform_{-1, 1};
  std::vector<float> average_;
  HubCommit commit_;
  std::string from_;
  HeldState made_;
  States states_;
};

// Of a test: a directory for each function, and what became of the disk in it.
class ReplayFixture {
 protected:
  void new_directory() { home_ = std::make_unique<QTemporaryDir>(); }
  std::filesystem::path directory() const { return home_->path().toStdString(); }
  std::filesystem::path average_of(std::uint32_t round) const {
    return directory() / "rounds" / ("round." + std::to_string(round) + ".average");
  }
  // Another process finds the disk as it is, to come back with this state.
  void verify_comes_back(const HeldState& held, const States& states) const {
    IslandDisk again(directory());
    const auto found = again.load();
    QVERIFY2(found.ok(), found.ok() ? "" : found.error().message.c_str());
    QCOMPARE(found->outer->version(), held.outer_step);
    QCOMPARE(found->outer->tree_hash(), held.state_hash);
    QVERIFY(std::ranges::equal(found->outer->parameters(), states.at(held.outer_step).second));
    QCOMPARE(again.durable().front(), held);
  }
  void flip_byte(const std::filesystem::path& path, std::streamoff at) const {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 1));
    QVERIFY(file.good());
  }

 private:
  std::unique_ptr<QTemporaryDir> home_;
};

}  // namespace atl::test
