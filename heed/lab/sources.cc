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
      {"L39", {coursework, "convolution against attention as the training set grows (L29, L39)", "Dosovitskiy et al. 2021, section 4.3"}},
      {"L40", {attention_sheets, "ways to make a vision transformer cheaper", "Beltagy, Peters and Cohan 2020; Child et al. 2019"}},
      {"L41", {textbook, "recurrent layers against attention", "Vaswani et al. 2017, section 4 and table 1"}},
      {"L42", {attention_sheets, "what several heads change, if not the cost", "Vaswani et al. 2017, section 3.2.2"}},
      {"L43",
       {coursework, "which pre-training objective is generative, which contrastive, and what each teaches",
        "Devlin et al. 2019, section 3.1; probes: Alain and Bengio 2016"}},
      {"L44", {attention_sheets, "Gaussian noise on one key"}},
      {"L45",
       {convolution_sheet, "whether the heads of a trained model become a convolution", "Cordonnier, Loukas and Jaggi 2020, section 4"}},
      {"L46", {coursework, "training and validation curves over 10, 30 and 50 epochs"}},
      {"L47", {textbook, "how many heads are needed", "Michel, Levy and Neubig 2019; Voita et al. 2019"}},
      {"L49",
       {textbook, "a token that is copied over a growing distance", "Hochreiter and Schmidhuber 1997; Bahdanau, Cho and Bengio 2015"}},
      {"L48", {convolution_sheet, "the four terms of a score with absolute positions", "Dai et al. 2019, section 3.3"}},
  };
  return sources;
}

}  // namespace

const std::vector<CourseTask>& course_tasks() {
  using enum Course;
  static const std::vector<CourseTask> tasks{
      {attention_sheets, "D1", "attention: softmax of β Q Kᵀ, times V", "heed attend", "../attend.md", "L1"},
      {attention_sheets, "D2", "soft and hard attention, self and cross", "heed attend", "../attend.md", "L1", "hard attention"},
      {attention_sheets, "D3", "several heads, concatenated and projected", "heed inspect MODEL", "../layers.md", "L6"},
      {attention_sheets, "D4", "cross-attention between sequences of any lengths", "heed attend", "../attend.md", "L34",
       "combinations that run exactly"},
      {attention_sheets, "D5", "masks: causal, padding, any pattern", "heed attend", "../attention.md", "L41", "padded and masked"},
      {attention_sheets, "D14", "decoding with keys and values of past tokens kept", "heed generate", "../attention.md", "L16",
       "KV cache against recomputed"},
      {attention_sheets, "D15", "cheaper attention: windows, dilation, global tokens, blocks, pooled keys, channels, kernels",
       "heed train classify", "../cheaper_attention.md", "L40", "window and global tokens: multiply-adds relative"},
      {convolution_sheet, "D6", "absolute positions and the four terms of their scores, in one dimension and on grids",
       "heed inspect MODEL INPUT --terms", "../inspect.md", "L48"},
      {convolution_sheet, "D7", "relative positions: four terms with learned vectors, in one dimension and on grids",
       "heed train classify position=relative_content_2d", "../attention.md", "L36", "images, relative"},
      {convolution_sheet, "D8", "Gaussian positions per head, with and without content", "heed train classify preset=gaussian",
       "../models.md", "L20"},
      {convolution_sheet, "T6", "an encoder with Gaussian positions on CIFAR-10, and where its heads look while they train",
       "heed lab heads RUN", "heads.md", "L45"},
      {coursework, "D9", "the transformer layer, with norms before or after", "heed inspect MODEL", "../layers.md", "L37"},
      {coursework, "D10", "GELU, with erf and with tanh", "heed lab L26", "../layers.md", "L26", "largest difference"},
      {coursework, "D11", "the vision transformer, its four heads, and other image sizes", "heed predict MODEL IMAGE --image SIZE",
       "../models.md", "L38", "class token at"},
      {coursework, "D12", "BERT: segments, masked words, next sentence", "heed train pretrain", "../training.md", "L31", "masked words"},
      {coursework, "D13", "the original encoder-decoder", "heed train translate", "../training.md", "L47", "translator"},
      {coursework, "T1", "image classification: training, curves, prediction with the attention drawn", "heed train classify",
       "../training.md", "L46", "", "72.0% of the test set of CIFAR-10"},
      {coursework, "T2", "translation: training, BLEU, the alignment; recurrent models for comparison", "heed train translate",
       "../training.md", "L49", "", "35.7 BLEU on the test set of Multi30k"},
      {coursework, "T3", "sentiment of sentences; recurrent models for comparison", "heed train sentiment", "../training.md", "L49", "",
       "81.3% of the dev set of SST-2"},
      {coursework, "T4", "pre-training on masked words, next sentences, inverted sentences and inference", "heed train pretrain",
       "../training.md", "L31", "inversion"},
      {coursework, "T7", "the shape of every intermediate, parameters, arithmetic and memory", "heed inspect MODEL --shapes",
       "../inspect.md", "L10", "multi-head layer"},
      {textbook, "T5", "language modelling: greedy, temperature, top-k, top-p, beams", "heed train language", "../results.md", "L16", "",
       "validation loss of tinyshakespeare 1.4482"},
      {textbook, "T8", "fusing text and images: words attend to patches; two encoders and a contrastive loss", "heed train caption",
       "../training.md", "L34", "", "87.8% of the tokens of the test captions"},
      {textbook, "T9", "importance and pruning of heads; feed-forward layers of several experts", "heed prune RUN OUT", "../training.md",
       "L47"},
  };
  return tasks;
}

std::string title_of(Course course) {
  switch (course) {
    case Course::attention_sheets: return "Problem sheets on attention and its statistics";
    case Course::convolution_sheet: return "Problem sheet on attention and convolution";
    case Course::coursework: return "Coursework: a transformer from scratch";
    case Course::textbook: return "Textbook chapter on attention";
  }
  return "";
}

std::string name_of(Course course) {
  switch (course) {
    case Course::attention_sheets: return "attention";
    case Course::convolution_sheet: return "convolution";
    case Course::coursework: return "coursework";
    case Course::textbook: return "textbook";
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
  const std::string end = source->question.ends_with('?') ? " " : ". ";
  return title_of(source->course) + ": " + source->question + (source->paper.empty() ? "" : end + source->paper);
}

}  // namespace heed::lab
