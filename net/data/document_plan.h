// What becomes of each document: trained on, held out, or left out as a duplicate. Decided from the hashes of all of
// them, which lie in a file, 24 bytes a document; the plan takes 2 bits a document. Finding duplicates takes 24 bytes
// of memory a document, in as many passes over the file as the memory that may be used asks for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "net/base/bytes.h"
#include "net/base/result.h"
#include "net/data/documents.h"

namespace atl {

// As it lies in the file, little-endian.
struct DocumentRecord {
  DocumentHash hash;
  std::uint32_t text_bytes = 0;
  std::uint32_t piece = 0;  // 1: of a longer text, never a duplicate
};
static_assert(sizeof(DocumentRecord) == 24);

enum class DocumentFate : std::uint8_t { kTrain, kValidation, kDuplicate };

class DocumentPlan {
 public:
  DocumentPlan() = default;
  explicit DocumentPlan(std::string packed) : packed_(std::move(packed)) {}

  DocumentFate at(std::uint64_t document) const {
    return static_cast<DocumentFate>((static_cast<unsigned char>(packed_[document / 4]) >> (2 * (document % 4))) & 3);
  }
  void set(std::uint64_t document, DocumentFate fate) {  // once
    packed_[document / 4] =
        static_cast<char>(packed_[document / 4] | (static_cast<unsigned>(fate) << (2 * (document % 4))));
  }
  const std::string& packed() const { return packed_; }

 private:
  std::string packed_;
};

struct PlanOptions {
  double validation_share = 0.005;
  std::uint64_t seed = 1;
  bool keep_duplicates = false;
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
};

// `records`: all DocumentRecords in order. Of equal texts the first stays. A document is held out when its hash, with
// the seed, is among the lowest: so many as the share says, and of a short text so many more that they hold a fiftieth
// of it. `progress`: bytes of records looked at, and of how many. kInvalidArgument when nothing would be left to train
// on.
Result<DocumentPlan> plan_documents(ByteView records, const PlanOptions& options,
                                    const std::function<void(std::uint64_t, std::uint64_t)>& progress);

}  // namespace atl
