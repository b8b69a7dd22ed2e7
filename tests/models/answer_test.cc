// Answers to questions: the likeliest parts of the text, by trying all of them.
#include "heed/models/answer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/cli/program.h"
#include "tests/models/text_folder.h"

namespace heed::test {
namespace {

const std::vector<Sentence> kQuestions = {
    {"hello a", "unaffable wanted, running a a a!"}, {"a", "hello"}, {"running a, a a a a", "a hello"}};

// Softmax over the tokens of the second text and token 0; 0 for the others.
std::vector<double> over_text(const std::vector<float>& logits, const Encoding& encoding) {
  std::vector<double> out(logits.size());
  double total = 0;
  for (size_t i = 0; i < logits.size(); ++i)
    if (i == 0 || (encoding.type_ids[i] == 1 && !encoding.special_mask[i])) total += out[i] = std::exp(static_cast<double>(logits[i]));
  for (double& each : out) each /= total;
  out[0] = 0;
  return out;
}

TEST(Answers, are_the_likeliest_parts_of_the_text) {
  for (const char* name : {"bert-answers", "distilbert-answers"}) {
    SCOPED_TRACE(name);
    const TextFolder folder(name);
    const TextModel model = load_text_model(folder.path());
    const std::vector<Encoding> encodings = encode_sentences(model, kQuestions).encodings;
    const auto found = find_answers(model, encodings, 2);
    for (size_t b = 0; b < kQuestions.size(); ++b) {
      std::vector<double> starts, ends;
      const auto all = [](const TextBatch& batch) { return batch.out; };
      each_batch(model, std::span(encodings).subspan(b, 1), all, [&](const TextBatch& batch) {
        starts = over_text(batch.out.at("start_logits").to_vector<float>(), encodings[b]);
        ends = over_text(batch.out.at("end_logits").to_vector<float>(), encodings[b]);
      });
      double best = 0;
      text::Span at{};
      for (size_t i = 0; i < starts.size(); ++i)
        for (size_t j = i; j < ends.size(); ++j)
          if (starts[i] * ends[j] > best) {
            best = starts[i] * ends[j];
            at = {encodings[b].offsets[i].begin, encodings[b].offsets[j].end};
          }
      ASSERT_FALSE(found[b].empty());
      EXPECT_NEAR(static_cast<double>(found[b][0].score), best, 1e-5);
      EXPECT_EQ(found[b][0].at.begin, at.begin);
      EXPECT_EQ(found[b][0].at.end, at.end);
      EXPECT_EQ(found[b].size(), b == 1 ? 1 : 2);  // a text of one token has one part
    }
  }
}

TEST(Answers, of_an_empty_text_are_none) {
  const TextFolder folder("bert-answers");
  const TextModel model = load_text_model(folder.path());
  const std::vector<Sentence> empty = {{"hello", ""}};
  EXPECT_TRUE(find_answers(model, encode_sentences(model, empty).encodings)[0].empty());
}

TEST(Answers, are_printed_by_predict) {
  const TextFolder folder("bert-answers");
  const std::string model = folder.path().string();
  const ProgramResult table = run_heed("predict " + model + " 'hello a' 'unaffable wanted, running'");
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_NE(table.out.find("answer            probability  question\n"), std::string::npos) << table.out;
  const ProgramResult json = run_heed("predict " + model + " --json --top 3 'hello a\twanted, running a!'");
  EXPECT_EQ(json.exit_code, 0) << json.err;
  const Json line = Json::parse(json.out);
  EXPECT_EQ(line["pair"], "wanted, running a!");
  ASSERT_EQ(line["answers"].size(), 3);
  for (const Json& each : line["answers"]) {
    const size_t begin = each["start"], end = each["end"];
    EXPECT_EQ(each["answer"], std::string("wanted, running a!").substr(begin, end - begin));
  }
  EXPECT_EQ(run_heed("predict " + model + " 'a question without a text'").exit_code, 3);
}

}  // namespace
}  // namespace heed::test
