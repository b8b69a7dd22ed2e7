// What a tokenizer is made of, and what an encoding works with.
#pragma once

#include <mutex>
#include <new>

#include "heed/text/added_tokens.h"
#include "heed/text/decoder.h"
#include "heed/text/model.h"
#include "heed/text/normalizer.h"
#include "heed/text/post_processor.h"
#include "heed/text/pre_tokenizer.h"
#include "heed/text/tokenizer.h"

namespace heed::text {

// Words that were met before and their pieces. Text repeats its words, and looking one up costs a tenth of cutting it.
class WordCache {
 public:
  // The pieces of a word, from the model where the word is new. They are good until the next call.
  std::span<const Piece> pieces(const Model& model, std::string_view word);

 private:
  static constexpr size_t kLongestWord = 64, kMostWords = size_t{1} << 16;  // bytes; some 4 MB in all

  StringTable table_;
  std::vector<Span> ranges_;  // in pieces_
  Pieces pieces_, rare_;
};

struct Workspace {
  std::vector<Word> raw;
  Words words;
  WordCache cache;
};

// Workspaces that no encoding uses just now: their caches stay warm.
struct WorkspacePool {
  std::mutex mutex;
  std::vector<std::unique_ptr<Workspace>> idle;
};

// A workspace that goes back to the pool.
class BorrowedWorkspace {
 public:
  explicit BorrowedWorkspace(WorkspacePool& pool) : pool_(pool) {
    const std::lock_guard lock(pool.mutex);
    if (!pool.idle.empty()) {
      held_ = std::move(pool.idle.back());
      pool.idle.pop_back();
    }
  }
  ~BorrowedWorkspace() {
    constexpr size_t most_bytes = size_t{1} << 20;  // one huge text must not cost memory for ever
    if (!held_ || held_->words.text.text.capacity() > most_bytes) return;
    try {
      const std::lock_guard lock(pool_.mutex);
      pool_.idle.push_back(std::move(held_));
    } catch (const std::bad_alloc&) {
      // Without memory for the list, the workspace is freed like any other object.
    }
  }
  BorrowedWorkspace(const BorrowedWorkspace&) = delete;
  BorrowedWorkspace& operator=(const BorrowedWorkspace&) = delete;
  Workspace& operator*() {
    if (!held_) held_ = std::make_unique<Workspace>();
    return *held_;
  }

 private:
  WorkspacePool& pool_;
  std::unique_ptr<Workspace> held_;
};

struct TokenizerParts {
  Normalizer normalizer;  // may be empty
  PreTokenizer pre_tokenizer;
  ModelPointer model;
  AddedTokens added;
  PostProcessor post_processor;
  Decoder decoder;
  std::optional<int32_t> padding_id;
  std::optional<EncodeOptions> truncation;
  std::optional<Padding> padding;

  // One text, or two unless `pair` is null.
  Encoding encode(std::string_view text, const std::string_view* pair, const EncodeOptions& options, Workspace& workspace) const;
  // Appends the tokens of a text without special ones: ids and offsets.
  void append_tokens(std::string_view text, Workspace& workspace, Encoding& out) const;

  std::unique_ptr<WorkspacePool> pool = std::make_unique<WorkspacePool>();
};

TokenizerParts read_tokenizer_json(const Json& json, const std::string& source);
TokenizerParts read_bert_folder(const Path& folder);
TokenizerParts read_marian_folder(const Path& folder, bool target);
TokenizerParts read_gpt2_folder(const Path& folder, const Path& vocabulary, const Path& merges);

}  // namespace heed::text
