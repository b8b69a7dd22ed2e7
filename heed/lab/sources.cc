#include "heed/lab/sources.h"

#include <map>

namespace heed::lab {
namespace {

// By the number of the experiment.
const std::map<std::string, Source>& all_sources() {
  using enum Course;
  static const std::map<std::string, Source> sources = {
      {"L1", {attention_sheets, "what the inverse temperature does at 0 and in the limit"}},
      {"L2", {attention_sheets, "a small noise on one key"}},
      {"L3", {attention_sheets, "a key that is multiplied by a factor"}},
      {"L4", {attention_sheets, "can self-attention be the identity, and a permutation?"}},
      {"L5", {attention_sheets, "can self-attention be a linear layer that runs over the tokens?"}},
      {"L6", {attention_sheets, "what in a convolution corresponds to heads?"}},
      {"L7", {attention_sheets, "mean and variance of q·k, and why to divide by √d", "Vaswani et al. 2017, section 3.2.1, footnote 4"}},
      {"L8", {attention_sheets, "the derivative of the softmax at z = (-3, 1, 100, 5, -1)"}},
      {"L9", {textbook, "attention as regression with a kernel", "Nadaraya 1964; Watson 1964; Buades, Coll and Morel 2005"}},
      {"L10", {attention_sheets, "parameters of attention and of a fully connected layer"}},
      {"L11", {attention_sheets, "the cost of one head and of several", "Vaswani et al. 2017, section 3.2.2 and table 1"}},
      {"L12", {convolution_sheet, "the cost of absolute and of Gaussian positions", "Cordonnier, Loukas and Jaggi 2020"}},
      {"L13", {attention_sheets, "what self-attention does to permuted tokens"}},
      {"L14", {attention_sheets, "the shape of the map for X of shape (768, 6)"}},
      {"L15", {attention_sheets, "attention between patches and between channels", "Ding et al. 2022 (DaViT)"}},
      {"L16", {attention_sheets, "what a new token costs under a causal mask"}},
      {"L17", {attention_sheets, "ways to make a vision transformer cheaper", "Liu et al. 2021 (Swin); Wang et al. 2021 (PVT)"}},
      {"L18", {attention_sheets, "attention with a kernel, in linear time", "Katharopoulos et al. 2020, section 3.2"}},
      {"L19", {convolution_sheet, "heads with Gaussian positions express a convolution", "Cordonnier, Loukas and Jaggi 2020, theorem 1"}},
      {"L20", {convolution_sheet, "the limit of a sharp head", "Cordonnier, Loukas and Jaggi 2020, lemma 2"}},
      {"L21", {convolution_sheet, "what the layer computes at the border", "Cordonnier, Loukas and Jaggi 2020"}},
      {"L22", {convolution_sheet, "dilated convolutions", "Cordonnier, Loukas and Jaggi 2020"}},
      {"L23", {convolution_sheet, "strided convolutions", "Cordonnier, Loukas and Jaggi 2020"}},
      {"L24", {convolution_sheet, "which heads of a trained model act as a convolution", "Cordonnier, Loukas and Jaggi 2020, section 4"}},
      {"L25", {convolution_sheet, "what absolute and relative positions look like", "Cordonnier, Loukas and Jaggi 2020"}},
      {"L26", {coursework, "the two forms of GELU", "Hendrycks and Gimpel 2016, section 2"}},
      {"L27", {coursework, "what layer norm normalises over", "Ba, Kiros and Hinton 2016, section 3"}},
      {"L28", {coursework, "class token, mean, attention or all tokens before the classifier", "Dosovitskiy et al. 2021, appendix D.3"}},
      {"L30", {coursework, "patches as a strided convolution", "Dosovitskiy et al. 2021, section 3.1"}},
      {"L31", {coursework, "what each pre-training task teaches", "Devlin et al. 2019, section 3.1"}},
      {"L32", {attention_sheets, "attention with tokens as columns (first answer)"}},
      {"L33", {attention_sheets, "can self-attention be a convolution?", "Cordonnier, Loukas and Jaggi 2020"}},
      {"L34", {attention_sheets, "several heads, and widths in cross-attention", "Vaswani et al. 2017, section 3.2.2"}},
      {"L35", {attention_sheets, "the derivative of the softmax at z = (-3, 1, 100, 5, -1): what saturation means"}},
      {"L36",
       {coursework, "why positions are added, and which", "Vaswani et al. 2017, section 3.5; Dosovitskiy et al. 2021, appendix D.4"}},
      {"L37", {coursework, "what feed-forward layers, residuals and norms are for", "Vaswani et al. 2017, section 3; Xiong et al. 2020"}},
      {"L38", {coursework, "a fully connected head fixes the number of patches", "Dosovitskiy et al. 2021, section 3.2"}},
      {"L39", {coursework, "convolution against attention as the training set grows", "Dosovitskiy et al. 2021, section 4.3"}},
      {"L40", {attention_sheets, "ways to make a vision transformer cheaper", "Beltagy, Peters and Cohan 2020; Child et al. 2019"}},
      {"L41", {textbook, "recurrent layers against attention", "Vaswani et al. 2017, section 4 and table 1"}},
      {"L42", {attention_sheets, "what several heads change, if not the cost", "Vaswani et al. 2017, section 3.2.2"}},
      {"L44", {attention_sheets, "Gaussian noise on one key"}},
      {"L46", {coursework, "training and validation curves over 10, 30 and 50 epochs"}},
      {"L48", {convolution_sheet, "the four terms of a score with absolute positions", "Dai et al. 2019, section 3.3"}},
  };
  return sources;
}

}  // namespace

std::string title_of(Course course) {
  switch (course) {
    case Course::attention_sheets: return "Problem sheets on attention and its statistics";
    case Course::convolution_sheet: return "Problem sheet on attention and convolution";
    case Course::coursework: return "Coursework: a transformer from scratch";
    case Course::textbook: return "Textbook chapter on attention";
  }
  return "";
}

const Source* find_source(const Experiment& experiment) {
  const auto found = all_sources().find(experiment.number);
  return found == all_sources().end() ? nullptr : &found->second;
}

std::string source_text(const Experiment& experiment) {
  const Source* source = find_source(experiment);
  if (source == nullptr) return "";
  return title_of(source->course) + ": " + source->question + (source->paper.empty() ? "" : ". " + source->paper);
}

}  // namespace heed::lab
