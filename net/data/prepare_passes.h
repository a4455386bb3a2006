// The two passes of prepare_dataset over all text, each going on where the journal says. Within prepare.cpp's call.
#pragma once

#include <filesystem>
#include <vector>

#include "net/base/result.h"
#include "net/data/document_plan.h"
#include "net/data/prepare.h"
#include "net/data/prepare_journal.h"
#include "net/data/text_input.h"

namespace atl {

struct PreparePass {
  const std::vector<TextFile>& files;
  const PrepareOptions& options;  // tokens and threads are set
  const std::filesystem::path& directory;
  PrepareJournal& journal;
  const OnPrepareProgress& progress;
};

inline constexpr char kDocumentsFile[] = "documents";  // DocumentRecords
inline constexpr char kBlocksFile[] = "blocks";        // of each block its file and how many documents, u32 each
inline constexpr char kPlanFile[] = "plan";

// Writes kDocumentsFile and kBlocksFile.
Status read_all_text(const PreparePass& pass);
// Writes the shards; journal.train and journal.validation hold them all.
Status write_all_tokens(const PreparePass& pass, const DocumentPlan& plan);

}  // namespace atl
