// Extractive question answering: its data, its scores and the task.
#include <gtest/gtest.h>

#include <cmath>

#include "heed/core/autograd.h"
#include "heed/train/answer_scores.h"
#include "heed/train/optimizer.h"
#include "heed/train/training_job.h"
#include "tests/expect_error.h"
#include "tests/io/files.h"
#include "tests/models/text_folder.h"

namespace heed::test {
namespace {

TEST(Questions, are_read_from_squad_and_tables) {
  const Folder folder;
  const auto path = [&](const char* name) { return (folder / name).string(); };
  put(folder / "a.json",
      R"({"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": "Zoë lives in Oslo, Oslo!", "qas": [)"
      R"({"id": "1", "question": "Where?", "answers": [{"text": "Oslo", "answer_start": 19}, {"text": "in Oslo", "answer_start": 10}]},)"
      R"({"id": "2", "question": "Why?", "answers": [], "is_impossible": true}]}]}]})");
  const Questions squad = read_questions(path("a.json"));
  ASSERT_EQ(squad.items.size(), 1u);
  EXPECT_EQ(squad.without_answer, 1);
  const Question& item = squad.items[0];
  EXPECT_EQ(item.context.substr(item.answers[0].begin, 4), "Oslo");
  EXPECT_EQ(item.answers[0].begin, 20u);  // bytes: ë has two
  EXPECT_EQ(item.answers[1].text, "in Oslo");

  put(folder / "b.csv", "question,context,answer\nWho?,It was Anna,Anna\n");
  const Questions table = read_questions(path("b.csv"));
  EXPECT_EQ(table.items.at(0).answers[0].begin, 7u);
  EXPECT_NE(table.columns.find("question_column=question, context_column=context, answer_column=answer"), std::string::npos);
  for (const auto& [name, comma] : {std::pair("spaces.csv", ","), std::pair("spaces.tsv", "\t")}) {
    const std::string header = std::string("question") + comma + " context " + comma + "answer" + comma + "answer_start\n";
    put(folder / name, header + "Who?" + comma + "  Anna and Anna " + comma + "Anna " + comma + " 11\nWho?" + comma + " Anna" + comma +
                           " Anna" + comma + "0\n");
    const Questions spaces = read_questions(path(name));  // counted from the first character, which may be a space
    ASSERT_EQ(spaces.items.size(), 2u);
    EXPECT_EQ(spaces.items[0].context, "  Anna and Anna ");
    EXPECT_EQ(spaces.items[0].answers[0].begin, 11u);
    EXPECT_EQ(spaces.items[1].context, "Anna");  // or without spaces after commas
    EXPECT_EQ(spaces.items[1].answers[0].begin, 0u);
  }
  put(folder / "c.jsonl",
      "{\"question\": \"Who?\", \"context\": \"Anna and Anna\", \"answers\": {\"text\": [\"Anna\"], \"answer_start\": [9]}}\n");
  EXPECT_EQ(read_questions(path("c.jsonl")).items.at(0).answers[0].begin, 9u);
  put(folder / "d.tsv", "q\tpage\tspan\nWho?\tIt was Anna\tAnna\n");
  EXPECT_EQ(read_questions(path("d.tsv"), {.question = "q", .context = "page", .answer = "3"}).items.at(0).answers[0].begin, 7u);

  // Spaces around an answer belong to no token; those around a context are counted.
  const auto listed = [](const std::string& answer, int start) {
    return R"({"question": "Who?", "context": " It was Anna today", "answers": {"text": [")" + answer + R"("], "answer_start": [)" +
           std::to_string(start) + "]}}\n";
  };
  put(folder / "spaces.jsonl", listed(" Anna ", 7));
  const Question spaces = read_questions(path("spaces.jsonl")).items.at(0);
  EXPECT_EQ(spaces.answers[0].text, "Anna");
  EXPECT_EQ(spaces.context.substr(spaces.answers[0].begin, 4), "Anna");
  put(folder / "blank.jsonl", listed(" ", 7));
  expect_error<FileError>([&] { read_questions(path("blank.jsonl")); },
                          "found the answer \" \" at character 7, expected a part of the context");

  put(folder / "e.csv", "question,context,answer\nWho?,It was Anna,Boris\n");
  expect_error<FileError>([&] { read_questions(path("e.csv")); }, "e.csv:2: found the answer \"Boris\", expected a part of the context");
  put(folder / "f.csv", "question,text\nWho?,It was Anna\n");
  expect_error<FileError>([&] { read_questions(path("f.csv")); }, "found no column of answers; choose it with answer_column=NAME");
  put(folder / "g.json", R"({"data": [{"paragraphs": [{"context": 3}]}]})");
  EXPECT_THROW(read_questions(path("g.json")), FileError);
  const std::string begin = R"({"data": [{"paragraphs": [{"context": "It was Anna", "qas": [{"question": "Who?", "answers": [)";
  put(folder / "h.json", begin + R"({"text": "Anna", "answer_start": "7"}]}]}]}]})");
  expect_error<FileError>([&] { read_questions(path("h.json")); }, "h.json: data[0].paragraphs[0].qas[0].answers[0].answer_start");
  put(folder / "i.jsonl", "{\"question\": \"Who?\", \"context\": \"Anna\", \"answers\": {\"answer_start\": [0]}}\n");
  expect_error<FileError>([&] { read_questions(path("i.jsonl")); }, "expected text and answer_start");
  expect_error<FileError>([&] { read_questions(path("g.txt")); }, "expected a file in SQuAD format");
}

TEST(Questions, about_facts_have_their_answers_in_the_text) {
  for (const DataPart part : {DataPart::train, DataPart::validation, DataPart::test})
    for (const Question& item : synthetic_facts(200, 1, part)) {
      ASSERT_EQ(item.answers.size(), 1u);
      EXPECT_EQ(item.context.compare(item.answers[0].begin, item.answers[0].text.size(), item.answers[0].text), 0) << item.context;
      EXPECT_EQ(item.question.back(), '?');
    }
  EXPECT_EQ(synthetic_facts(5, 1)[4].question, synthetic_facts(50, 1)[4].question);
}

TEST(AnswerScores, are_those_of_squad) {
  EXPECT_EQ(plain_answer("The  Grey-Cat, a  DOG!"), "greycat dog");
  EXPECT_EQ(plain_answer("ÉCOLE\u00a0«Übung»"), "école «übung»");  // only ASCII punctuation is removed
  EXPECT_TRUE(exact_answer("the Cat.", {.question = "", .context = "", .answers = {{"dog", 0}, {"cat", 0}}}));
  EXPECT_DOUBLE_EQ(answer_f1("in New York", "New York City"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(answer_f1("x x", "x"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(answer_f1("", "x"), 0);
}

TEST(AnswerWindows, overlap_and_cover_the_text) {
  const TextFolder folder("bert-answers");
  const Tokenizer tokenizer = Tokenizer::open(folder.path());
  std::string text;
  for (int i = 0; i < 30; ++i) text += i % 7 == 3 ? "hello " : "a ";
  const Encoding whole = tokenizer.encode("running", text);
  EXPECT_EQ(answer_windows(whole, whole.size()).size(), 1u);
  const std::vector<Encoding> windows = answer_windows(whole, 16, 4);
  size_t covered = 0;
  for (const Encoding& window : windows) {
    EXPECT_LE(window.size(), 16);
    EXPECT_EQ(window.ids.front(), whole.ids.front());
    EXPECT_EQ(window.ids.back(), whole.ids.back());
    const auto first = std::find(window.type_ids.begin(), window.type_ids.end(), 1) - window.type_ids.begin();
    const text::Span begin = window.offsets[static_cast<size_t>(first)], end = window.offsets[static_cast<size_t>(window.size() - 2)];
    EXPECT_LE(begin.begin, covered + 1);
    EXPECT_GT(end.end, covered);
    covered = end.end;
    // An answer has the same tokens in every window that contains it.
    const auto [start, last] = tokens_of_answer(window, begin.begin, begin.end - begin.begin);
    EXPECT_EQ(start, first);
    EXPECT_EQ(last, first);
  }
  EXPECT_EQ(covered, text.size() - 1);
  EXPECT_EQ(tokens_of_answer(windows[0], text.size() - 2, 1), std::pair(int64_t{0}, int64_t{0}));
  expect_error<UsageError>([&] { answer_windows(whole, 4); }, "expected fewer than 4");
}

TEST(AnswerWindows, find_answers_in_texts_longer_than_the_model) {
  const TextFolder folder("bert-answers");
  const TextModel model = load_text_model(folder.path());
  std::string text;
  for (int i = 0; i < 60; ++i) text += i % 7 == 3 ? "hello " : "a ";
  const std::vector<Encoding> long_text{model.tokenizer.encode("running", text)};
  ASSERT_GT(long_text[0].size(), model.max_tokens);
  const std::vector<AnswerSpan> found = find_answers(model, long_text, 3)[0];
  ASSERT_EQ(found.size(), 3u);
  EXPECT_GE(found[0].score, found[1].score);
  float best = 0;
  for (const Encoding& window : answer_windows(long_text[0], model.max_tokens))
    best = std::max(best, find_answers(model, std::vector<Encoding>{window})[0].at(0).score);
  EXPECT_NEAR(found[0].score, best, 1e-6f);
}

TEST(AnswersTask, holds_out_all_questions_about_a_text) {
  const Folder folder;
  std::string table = "question,context,answer\n";
  for (int i = 0; i < 40; ++i) {
    const std::string text = std::to_string(i % 10);
    table += "Who is " + std::to_string(i) + "?,Anna is here " + text + ",Anna\n";
  }
  put(folder / "train.csv", table);
  TrainingJob training("answers");
  training.apply({"layers=1", "heads=2", "width=16", "validation=0.3", "data=" + (folder / "train.csv").string()});
  // Each of the ten texts has four questions.
  EXPECT_EQ(training.make().counts, (decltype(Task::counts){{"train", 28}, {"validation", 12}, {"test", 0}}));
}

TEST(AnswersTask, notices_that_an_answer_begins_elsewhere) {
  const Folder folder;
  const auto data = [&](int start) {
    std::string lines;
    for (int i = 0; i < 4; ++i)
      lines += R"({"question": "Who?", "context": "Anna and Anna )" + std::to_string(i) +
               R"(", "answers": {"text": ["Anna"], "answer_start": [)" + std::to_string(start) + "]}}\n";
    put(folder / "train.jsonl", lines);
    TrainingJob training("answers");
    training.apply({"layers=1", "heads=2", "width=16", "data=" + (folder / "train.jsonl").string()});
    return training.make().data.at("train");
  };
  EXPECT_EQ(data(9), data(9));
  EXPECT_NE(data(0), data(9));
}

TEST(AnswersTask, names_a_question_that_leaves_no_room_for_the_text) {
  const Folder folder;
  std::string question = "Who";
  for (int i = 0; i < 30; ++i) question += " and who";
  put(folder / "train.csv", "question,context,answer\nWho?,It was Anna,Anna\n" + question + "?,It was Boris,Boris\n");
  TrainingJob training("answers");
  training.apply({"layers=1", "heads=2", "width=16", "max_length=16", "data=" + (folder / "train.csv").string()});
  expect_error<UsageError>([&] { training.make(); },
                           "so that the text has room; increase max_length, or shorten the question \"Who and who");
}

TEST(AnswersTask, learns_to_answer) {
  TrainingJob training("answers");
  training.apply({"layers=2", "heads=4", "width=64", "feed_forward=128", "dropout=0", "limit=1200", "batch=32", "vocabulary=400"});
  const Task task = training.make();
  EXPECT_EQ(task.metric, "f1");
  const auto figure = [&](const std::string& name) {
    const NoGrad no_grad;
    for (const auto& [key, value] : task.evaluate().figures)
      if (key == name) return value;
    return -1.0;
  };
  const double before = figure("f1");
  EXPECT_LT(before, 0.3);
  Tensors trainable;
  for (const Parameter& each : task.model->params().all())
    if (each.options.learned) trainable.push_back(each.tensor);
  Adam optimizer({{trainable, 0}}, {});
  Rng rng(1);
  for (int64_t epoch = 0; epoch < 3; ++epoch)
    for (const std::vector<int64_t>& which : task.batches(epoch)) {
      const StepOutput out = task.forward(task.batch(epoch, which), {.mode = training_with(rng)});
      EXPECT_TRUE(std::isfinite(out.loss.item()));
      backward(out.loss);
      optimizer.step(2e-3f);
      optimizer.zero_grad();
    }
  EXPECT_GT(figure("f1"), before + 0.15);
  const NoGrad no_grad;
  const std::vector<Sample> samples = task.samples();
  ASSERT_EQ(samples.size(), 16u);
  EXPECT_EQ(std::ssize(samples[0].columns), samples[0].map_columns);
}

}  // namespace
}  // namespace heed::test
