// Scores of extractive answers, as the evaluation script of SQuAD computes them.
#pragma once

#include "heed/data/questions.h"
#include "heed/models/answer.h"
#include "heed/train/task.h"

namespace heed {

// The tokens of the second text that cover these bytes; {0, 0} if the window does not have all of them.
std::pair<int64_t, int64_t> tokens_of_answer(const Encoding& window, size_t begin, size_t bytes);

// Lowercase, without punctuation and articles: "The  Cat!" -> "cat".
std::string plain_answer(const std::string& answer);
bool exact_answer(const std::string& guess, const Question& item);
double answer_f1(const std::string& guess, const std::string& truth);  // of words

// exact, f1: means over the questions; each question counts the reference answer with the best score. detail: "answers", the first 20
Evaluation answer_evaluation(const std::vector<Question>& items, const std::vector<std::vector<AnswerSpan>>& found);
// Runs the model on the questions, with texts of any length.
Evaluation evaluate_answers(const TextModel& model, const std::vector<Question>& items, const Done& done = {});

}  // namespace heed
