#include "net/data/document_plan.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <vector>

namespace atl {
namespace {

constexpr std::uint64_t kEnoughHeldOutBytes = 64 * 1024;  // where a fiftieth of the text is more
constexpr std::uint64_t kLeastShare = 50;
constexpr std::size_t kMostCandidates = 1u << 16;

std::uint64_t mix_bits(std::uint64_t x) {  // the finalizer of SplitMix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class Records {
 public:
  explicit Records(ByteView bytes) : bytes_(bytes) {}
  std::uint64_t count() const { return bytes_.size() / sizeof(DocumentRecord); }
  DocumentRecord operator[](std::uint64_t i) const {
    DocumentRecord record;
    std::memcpy(static_cast<void*>(&record), bytes_.data() + i * sizeof(record), sizeof(record));
    return record;
  }

 private:
  ByteView bytes_;
};

struct Seen {
  DocumentHash hash;
  std::uint64_t document = 0;
  auto operator<=>(const Seen&) const = default;
};
static_assert(sizeof(Seen) == 24);

// Documents fall into ranges of hashes, so that one range fits into memory.
void mark_duplicates(const Records& records, std::uint64_t passes, DocumentPlan& plan,
                     const std::function<void(std::uint64_t)>& progress) {
  std::vector<Seen> seen;
  for (std::uint64_t pass = 0; pass < passes; ++pass) {
    seen.clear();
    for (std::uint64_t i = 0; i < records.count(); ++i) {
      const DocumentRecord record = records[i];
      if (record.piece == 0 && record.hash.high % passes == pass) seen.push_back({record.hash, i});
    }
    std::sort(seen.begin(), seen.end());
    for (std::size_t i = 1; i < seen.size(); ++i) {
      if (seen[i].hash == seen[i - 1].hash) plan.set(seen[i].document, DocumentFate::kDuplicate);
    }
    progress((pass + 1) * records.count() * sizeof(DocumentRecord));
  }
}

// Chooses up to which value documents are held out.
class HeldOut {
 public:
  explicit HeldOut(const PlanOptions& options)
      : seed_(mix_bits(options.seed + 0x9e3779b97f4a7c15u)),
        limit_(static_cast<std::uint64_t>(std::ldexp(options.validation_share, 64))) {}

  std::uint64_t value_of(const DocumentHash& hash) const { return mix_bits(hash.low ^ seed_); }

  void count(const DocumentRecord& record) {
    text_bytes_ += record.text_bytes;
    const std::uint64_t value = value_of(record.hash);
    if (value < limit_) {
      held_out_bytes_ += record.text_bytes;
      return;
    }
    candidates_.push({value, record.text_bytes});
    if (candidates_.size() > kMostCandidates) candidates_.pop();
  }

  // Of all that were counted; exclusive.
  std::uint64_t limit() {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> next;
    for (; !candidates_.empty(); candidates_.pop()) next.push_back(candidates_.top());
    std::uint64_t limit = limit_, bytes = held_out_bytes_;
    const std::uint64_t enough = std::min(kEnoughHeldOutBytes, text_bytes_ / kLeastShare);
    for (auto one = next.rbegin(); one != next.rend() && bytes < enough; ++one) {
      limit = one->first + 1;
      bytes += one->second;
    }
    return limit;
  }

 private:
  const std::uint64_t seed_;
  const std::uint64_t limit_;
  std::uint64_t text_bytes_ = 0, held_out_bytes_ = 0;
  // The lowest above the limit, the greatest of them on top.
  std::priority_queue<std::pair<std::uint64_t, std::uint64_t>> candidates_;
};

}  // namespace

Result<DocumentPlan> plan_documents(ByteView bytes, const PlanOptions& options,
                                    const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const Records records(bytes);
  DocumentPlan plan(std::string(records.count() / 4 + 1, '\0'));
  const std::uint64_t memory = std::max<std::uint64_t>(options.memory_bytes, 1u << 20);
  const std::uint64_t passes = options.keep_duplicates ? 0 : 1 + records.count() * sizeof(Seen) / memory;
  const std::uint64_t total = (passes + 2) * bytes.size();
  mark_duplicates(records, passes, plan, [&](std::uint64_t done) { progress(done, total); });
  HeldOut held_out(options);
  for (std::uint64_t i = 0; i < records.count(); ++i) {
    if (plan.at(i) != DocumentFate::kDuplicate) held_out.count(records[i]);
  }
  const std::uint64_t limit = held_out.limit();
  std::uint64_t training = 0;
  for (std::uint64_t i = 0; i < records.count(); ++i) {
    if (plan.at(i) == DocumentFate::kDuplicate) continue;
    if (held_out.value_of(records[i].hash) < limit) {
      plan.set(i, DocumentFate::kValidation);
    } else {
      ++training;
    }
  }
  progress(total, total);
  if (training == 0) {
    return Error{
        ErrorCode::kInvalidArgument,
        "there are too few documents to train on some and hold others out; add more text, or, if it is one long "
        "text, leave out --whole-files"};
  }
  return plan;
}

}  // namespace atl
