// How good a model is on data that it is given: by classes, by the next word, by masked words, by translations.
#pragma once

#include "heed/data/text_data.h"
#include "heed/models/classify.h"
#include "heed/train/task.h"

namespace heed {

// Which of the model's labels each name of the data is: by name where the model knows them all, else by number ("1" is label 1). A
// FileError that shows both where neither fits. source: of the data, for messages
std::vector<int64_t> matched_labels(const std::vector<std::string>& data, const std::vector<std::string>& model, const std::string& source);

// As ClassScores has it, with the model's names. A model whose names are LABEL_0, LABEL_1, ... takes classes by their places.
Evaluation evaluate_pictures(const Model& model, const Path& folder, const PictureData& data, const Done& done = {});
// Of single sentences and of pairs. cut: how many were longer than the model reads
Evaluation evaluate_labelled(const TextModel& model, const std::vector<LabelledText>& texts, const std::string& source,
                             int64_t* cut = nullptr, const Done& done = {});

struct NamedText {
  std::string name, text;
};
std::vector<NamedText> read_texts(const Path& path);  // a file, or every .txt (.gz) of a folder by name; each is one text

// Of a language model: loss and perplexity per token, bits_per_byte of the text, and accuracy of the next token. Every token is told
// from those before it in its window of at most `length`; the first one of a text is not told.
Evaluation evaluate_language(const TextModel& model, const std::vector<NamedText>& texts, int64_t length, const Done& done = {});

struct TranslatedSet {
  Evaluation evaluation;  // bleu, chrf, exact, brevity; detail: "precisions" of 1- to 4-grams
  std::vector<std::string> written;
};
// beams, length: of translations, in tokens; 0: as the files of the model say, with at most 512 tokens
TranslatedSet evaluate_translation(const Model& model, const Path& folder, const std::vector<Translation>& pairs, int64_t beams = 0,
                                   int64_t length = 0, const Done& done = {});

// Sentences of documents: plain text as read_documents takes it; "opinions": made by rule, of the test part.
std::vector<std::vector<std::string>> read_judged_documents(const std::string& where);
// Of models with heads for masked words, for next sentences, or for both: their loss and accuracy. What is masked and what goes together
// is a function of the seed. length: tokens of a sample at most
Evaluation evaluate_pretraining(const TextModel& model, const std::vector<std::vector<std::string>>& documents, const std::string& source,
                                int64_t length, uint64_t seed, const Done& done = {});

}  // namespace heed
