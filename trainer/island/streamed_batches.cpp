#include "trainer/island/streamed_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "net/data/tree_builder.h"

namespace atl {
namespace {

// Of a lease; what lies behind is fetched when it is used.
constexpr std::uint64_t kMostPlanned = std::uint64_t{1} << 22;

bool has_validation(const RunSource& source) { return source.validation.tokens > 0; }

SourceShape shape_of(const ChunkTreeIndex& index, std::uint32_t sequence_length) {
  return {index.tokens, index.chunk_tokens(), sequence_length};
}

}  // namespace

std::vector<TreeFile> trees_of(const RunDataset& dataset) {
  std::vector<TreeFile> trees;
  for (const Split split : {Split::kTrain, Split::kValidation}) {
    for (const RunSource& source : dataset.sources) {
      const TreeRoot& root = split == Split::kTrain ? source.train : source.validation;
      if (root.tokens > 0) trees.push_back({source.name, tree_file(split), root.index_bytes, root.sha256});
    }
  }
  return trees;
}

StreamedBatches::StreamedBatches(const RunDataset& dataset, std::shared_ptr<ChunkStore> store,
                                 const DatasetBatchShape& shape)
    : store_(std::move(store)),
      shape_(shape),
      begin_{0, dataset.weights()},
      rows_(shape.sequences_per_step, shape.sequence_length, shape.attention, dataset.end_of_text) {}

Result<std::unique_ptr<BatchSource>> StreamedBatches::create(const RunDataset& dataset,
                                                             std::shared_ptr<ChunkStore> store,
                                                             const DatasetBatchShape& shape) {
  std::unique_ptr<StreamedBatches> batches(new StreamedBatches(dataset, std::move(store), shape));
  for (std::uint32_t i = 0; i < dataset.sources.size(); ++i) {
    const ChunkTreeIndex& index = batches->store_->index(i);
    const SequenceMap& map = batches->maps_.emplace_back(shape.seed, i, shape_of(index, shape.sequence_length));
    if (index.vocab_size != dataset.vocab_size || index.tokens != dataset.sources[i].train.tokens) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("the hash tree of the data's source {} is of other data", dataset.sources[i].name)};
    }
    if (map.sequences() > 0) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the run's source {} has {} tokens in chunks of {}, too few for one sequence of {}: its "
                             "operator has to prepare more text, or larger chunks",
                             dataset.sources[i].name, index.tokens, index.chunk_tokens(), shape.sequence_length)};
  }
  batches->hold_out(dataset);
  return std::unique_ptr<BatchSource>(std::move(batches));
}

// The same in every round: in the sources' first shares, evenly spaced over each.
void StreamedBatches::hold_out(const RunDataset& dataset) {
  const auto mixture = Mixture::create({begin_});
  if (!mixture.ok()) return;
  const std::vector<std::uint64_t> counts = mixture->counts_before(shape_.validation_sequences);
  auto tree = static_cast<std::uint32_t>(dataset.sources.size());
  for (std::uint32_t i = 0; i < dataset.sources.size(); ++i) {
    if (!has_validation(dataset.sources[i])) continue;
    const SequenceMap map(shape_.seed, i, shape_of(store_->index(tree), shape_.sequence_length));
    const std::uint64_t count = std::min(counts[i], map.sequences());
    for (std::uint64_t k = 0; k < count; ++k) {
      const SequencePlace place = map.in_file_order(k * map.sequences() / count);
      held_out_.push_back({{tree, place.chunk}, place.sequence});
    }
    ++tree;
  }
}

StreamedBatches::Place StreamedBatches::place_of(std::uint64_t position) const {
  const Mixture::Place at = mixture_->at(position);
  const SequencePlace place = maps_[at.source].at(at.index);
  return {{at.source, place.chunk}, place.sequence};
}

Status StreamedBatches::plan(const Lease& lease) {
  if (planned_ && planned_->first == lease.first_sequence && planned_->sequences == lease.sequences &&
      std::ranges::equal(planned_->eras, lease.mixture)) {
    return ok_status();
  }
  std::vector<MixtureEra> eras{begin_};
  eras.insert(eras.end(), lease.mixture.begin(), lease.mixture.end());
  ATOLL_ASSIGN_OR_RETURN(mixture_, Mixture::create(eras));
  std::vector<ChunkId> chunks;
  std::set<ChunkId> seen;
  const auto add = [&](std::uint64_t first) {
    for (std::uint64_t i = 0; i < std::min(lease.sequences, kMostPlanned); ++i) {
      const ChunkId id = place_of(first + i).chunk;
      if (seen.insert(id).second) chunks.push_back(id);
    }
  };
  add(lease.first_sequence);
  const std::size_t needed = chunks.size();
  if (lease.expected_sequence && *lease.expected_sequence <= INT64_MAX) add(*lease.expected_sequence);
  store_->plan(std::move(chunks), needed);
  planned_ = Planned{lease.first_sequence, lease.sequences, {lease.mixture.begin(), lease.mixture.end()}};
  return ok_status();
}

Status StreamedBatches::read(const Place& place, std::uint32_t row) {
  ATOLL_ASSIGN_OR_RETURN(const std::shared_ptr<const Chunk> chunk, store_->get(place.chunk));
  chunk->read(std::uint64_t{place.sequence} * shape_.sequence_length, rows_.row(row));
  return ok_status();
}

Result<TokenBatch> StreamedBatches::train_batch(OuterStep round, std::uint32_t step, const Lease& lease) {
  const std::uint64_t offset = std::uint64_t{step} * shape_.sequences_per_step;
  if (lease.first_sequence > INT64_MAX || offset + shape_.sequences_per_step > lease.sequences) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("the lease of round {} has {} sequences, too few for inner step {} of {} each",
                             round.value, lease.sequences, step, shape_.sequences_per_step)};
  }
  ATOLL_RETURN_IF_ERROR(plan(lease));
  Status fetched = ok_status();
  // What is to come cannot be had: the sooner the lease goes back, the less is trained for nothing.
  if (const auto lost = store_->given_up()) fetched = *lost;
  for (std::uint32_t i = 0; i < shape_.sequences_per_step && fetched.ok(); ++i) {
    fetched = read(place_of(lease.first_sequence + offset + i), i);
  }
  if (fetched.ok()) return rows_.batch(shape_.sequences_per_step);
  planned_.reset();  // should the lease come again, it is tried again
  return fetched.error();
}

std::uint32_t StreamedBatches::validation_batches() const {
  const auto sequences = static_cast<std::uint32_t>(held_out_.size());
  return (sequences + shape_.sequences_per_step - 1) / shape_.sequences_per_step;
}

Result<TokenBatch> StreamedBatches::validation_batch(std::uint32_t index) {
  const std::size_t first = std::size_t{index} * shape_.sequences_per_step;
  const auto count =
      static_cast<std::uint32_t>(std::min<std::size_t>(shape_.sequences_per_step, held_out_.size() - first));
  for (std::uint32_t i = 0; i < count; ++i) ATOLL_RETURN_IF_ERROR(read(held_out_[first + i], i));
  return rows_.batch(count);
}

}  // namespace atl
