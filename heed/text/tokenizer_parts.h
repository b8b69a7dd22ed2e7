// The components of a tokenizer, and the scratch memory of encode.
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

// Cache of words and their tokens: a lookup costs a tenth of running the model.
class WordCache {
 public:
  // The tokens of a word. Valid until the next call.
  std::span<const TokenSpan> tokens(const Model& model, std::string_view word);

 private:
  static constexpr size_t kLongestWord = 64, kMaxWords = size_t{1} << 16;  // bytes; about 4 MB in total

  StringTable table_;
  std::vector<Span> ranges_;  // into tokens_
  TokenSpans tokens_, uncached_;
};

struct Workspace {
  std::vector<Word> raw;
  Words words;
  WordCache cache;
};

// Idle workspaces, with warm caches.
struct WorkspacePool {
  std::mutex mutex;
  std::vector<std::unique_ptr<Workspace>> idle;
};

// A workspace that returns to the pool.
class BorrowedWorkspace {
 public:
  explicit BorrowedWorkspace(WorkspacePool& pool) : pool_(pool) {
    const std::lock_guard lock(pool.mutex);
    if (!pool.idle.empty()) {
      workspace_ = std::move(pool.idle.back());
      pool.idle.pop_back();
    }
  }
  ~BorrowedWorkspace() {
    constexpr size_t max_bytes = size_t{1} << 20;  // do not retain the memory of one huge text
    if (!workspace_ || workspace_->words.text.text.capacity() > max_bytes) return;
    try {
      const std::lock_guard lock(pool_.mutex);
      pool_.idle.push_back(std::move(workspace_));
    } catch (const std::bad_alloc&) {
      // Out of memory for the list: the workspace is freed instead.
    }
  }
  BorrowedWorkspace(const BorrowedWorkspace&) = delete;
  BorrowedWorkspace& operator=(const BorrowedWorkspace&) = delete;
  Workspace& operator*() {
    if (!workspace_) workspace_ = std::make_unique<Workspace>();
    return *workspace_;
  }

 private:
  WorkspacePool& pool_;
  std::unique_ptr<Workspace> workspace_;
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

  // `pair` may be null.
  Encoding encode(std::string_view text, const std::string_view* pair, const EncodeOptions& options, Workspace& workspace) const;
  // Appends ids and offsets of a text, without special tokens.
  void append_tokens(std::string_view text, Workspace& workspace, Encoding& out) const;

  std::unique_ptr<WorkspacePool> pool = std::make_unique<WorkspacePool>();
};

// tokenizer_config.json of a folder, or an empty object.
Json read_tokenizer_config(const Path& folder);
// A special token of it: a string, or an object with "content".
std::string special_token(const JsonReader& config, const std::string& key, const std::string& fallback);
// model_type of config.json; empty if there is none.
std::string read_model_type(const Path& folder);

TokenizerParts read_tokenizer_json(const Json& json, const std::string& source);
TokenizerParts read_bert_folder(const Path& folder);
TokenizerParts read_marian_folder(const Path& folder, bool target);
TokenizerParts read_gpt2_folder(const Path& folder, const Path& vocabulary, const Path& merges);
TokenizerParts read_sentencepiece_folder(const Path& folder, const Path& model);  // of T5, XLM-R, Llama and Mistral

}  // namespace heed::text
