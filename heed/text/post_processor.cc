#include "heed/text/post_processor.h"

#include "heed/text/json_steps.h"

namespace heed::text {
namespace {

int32_t token_id(const JsonReader& json) {
  const int64_t id = json.whole();
  if (id < 0 || id >= kMaxTokenId) json.refuse("found the id ", id, ", expected one from 0 to ", kMaxTokenId - 1);
  return static_cast<int32_t>(id);
}

// [token, id]
int32_t named_id(const JsonReader& json) { return token_id(json[1]); }

constexpr size_t kMaxSpecialTokens = 1024;  // added by a template; published ones add up to four

std::vector<TemplateItem> read_template(const JsonReader& list, const JsonReader& processor) {
  std::vector<TemplateItem> out;
  size_t special = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonReader item = list[i];
    TemplateItem part;
    const bool sequence = item.has("Sequence");
    const JsonReader body = item[sequence ? "Sequence" : "SpecialToken"];
    const std::string id = body.text("id");
    const int64_t type_id = body.whole_or("type_id", 0);
    if (type_id < 0 || type_id > INT32_MAX) body.refuse("found the type_id ", type_id, ", expected one from 0 to ", INT32_MAX);
    part.type_id = static_cast<int32_t>(type_id);
    if (sequence) {
      if (id != "A" && id != "B") body.refuse("found the sequence ", in_quotes(id), ", expected A or B");
      part.sequence = id == "A" ? 0 : 1;
    } else {
      const JsonReader ids = processor["special_tokens"][id]["ids"];
      special += std::max<size_t>(ids.size(), 1);
      if (special > kMaxSpecialTokens) list.refuse("found more than ", kMaxSpecialTokens, " special tokens, expected at most that many");
      for (size_t k = 0; k < ids.size(); ++k) part.ids.push_back(token_id(ids[k]));
    }
    out.push_back(std::move(part));
  }
  return out;
}

void check_sequences(const std::vector<TemplateItem>& items, bool pair, const JsonReader& json) {
  int found[2] = {};
  for (const TemplateItem& item : items)
    if (item.sequence >= 0) ++found[item.sequence];
  if (found[0] != 1 || found[1] != (pair ? 1 : 0))
    json.refuse("found A ", found[0], " times and B ", found[1], " times, expected ", pair ? "each once" : "A once and no B");
}

}  // namespace

int64_t PostProcessor::added(bool is_pair) const {
  int64_t count = 0;
  for (const TemplateItem& item : is_pair ? pair : single) count += std::ssize(item.ids);
  return count;
}

PostProcessor bert_post_processor(int32_t cls, int32_t sep) {
  return {{{-1, {cls}, 0}, {0, {}, 0}, {-1, {sep}, 0}}, {{-1, {cls}, 0}, {0, {}, 0}, {-1, {sep}, 0}, {1, {}, 1}, {-1, {sep}, 1}}, false};
}

PostProcessor roberta_post_processor(int32_t cls, int32_t sep) {
  return {
      {{-1, {cls}, 0}, {0, {}, 0}, {-1, {sep}, 0}}, {{-1, {cls}, 0}, {0, {}, 0}, {-1, {sep, sep}, 0}, {1, {}, 0}, {-1, {sep}, 0}}, true};
}

PostProcessor make_post_processor(const JsonReader& json) {
  PostProcessor out;
  bool has_template = false;
  for (const JsonReader& step : steps_of(json, "processors")) {
    const std::string type = step.text("type");
    if (type == "ByteLevel") {
      out.trim_offsets = out.trim_offsets || step.flag_or("trim_offsets", true);
      continue;
    }
    if (has_template) step.refuse("found ", in_quotes(type), " after another post-processor that adds tokens, expected one of them");
    has_template = true;
    const bool trim = out.trim_offsets;
    if (type == "BertProcessing") {
      out = bert_post_processor(named_id(step["cls"]), named_id(step["sep"]));
    } else if (type == "RobertaProcessing") {
      out = roberta_post_processor(named_id(step["cls"]), named_id(step["sep"]));
      out.trim_offsets = step.flag_or("trim_offsets", true);
    } else if (type == "TemplateProcessing") {
      out.single = read_template(step["single"], step);
      check_sequences(out.single, false, step["single"]);
      out.pair = read_template(step["pair"], step);
      check_sequences(out.pair, true, step["pair"]);
    } else {
      refuse_type(step, "post-processor", "BertProcessing, RobertaProcessing, TemplateProcessing, ByteLevel, Sequence");
    }
    out.trim_offsets = out.trim_offsets || trim;
  }
  return out;
}

}  // namespace heed::text
