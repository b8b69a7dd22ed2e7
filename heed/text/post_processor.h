// Post-processors combine one or two sequences with special tokens: [CLS] A [SEP] B [SEP].
#pragma once

#include <vector>

#include "heed/io/json_reader.h"
#include "heed/text/vocabulary.h"

namespace heed::text {

struct TemplateItem {
  int sequence = -1;         // 0: A, 1: B, -1: special tokens
  std::vector<int32_t> ids;  // of special tokens
  int32_t type_id = 0;
};

struct PostProcessor {
  std::vector<TemplateItem> single = {{0, {}, 0}}, pair = {{0, {}, 0}, {1, {}, 1}};
  bool trim_offsets = false;  // token offsets exclude leading and trailing spaces

  int64_t added(bool is_pair) const;  // number of special tokens
};

// The post-processor of a tokenizer.json. Unknown types are a FileError that names them.
PostProcessor make_post_processor(const JsonReader& json);

PostProcessor bert_post_processor(int32_t cls, int32_t sep);
PostProcessor roberta_post_processor(int32_t cls, int32_t sep);

}  // namespace heed::text
