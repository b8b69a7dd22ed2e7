// The options and tensors that `heed attend` knows. One table of each is all there is: words are parsed by it, tensors are
// checked by it, and the help is printed from it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "heed/attention/attention.h"

namespace heed::cli {

enum class AttendKind { softmax, linear, channel };

struct AttendOptions {
  AttendKind kind = AttendKind::softmax;
  std::optional<float> beta, softcap;
  bool content = true, causal = false, alibi = false, probabilities = false, quadratic = false;
  int64_t offset = 0, first_query = 0, globals = 0, shift = 0, seed = 1;
  std::optional<int64_t> chunk, dilation, block, pool, random_features;
  std::optional<std::array<int64_t, 2>> window, grid, grid_window;  // before and after; rows and columns, twice
  std::vector<int64_t> lengths, heads, rows;
  std::string features = "elu";
  Hard hard = Hard::no, hard_gradient = Hard::straight_through;
  float dropout = 0;
  std::vector<std::string> ignore;
  std::set<std::string> given;  // their names
};

using AttendKinds = std::vector<AttendKind>;
struct AttendWord;

// `needs` names options and tensors, all of which must be there; a|b: one of them.
struct AttendOption {
  std::string name, value;  // value: what is expected
  AttendKinds kinds;
  std::string needs, meaning;
  std::function<void(AttendOptions&, const AttendWord&)> read;
};
struct AttendTensor {
  std::string name, shape;
  AttendKinds kinds;
  std::string needs, meaning;
  bool learned = false;  // with grad_out its gradient is written
};

const std::vector<AttendOption>& attend_options();
const std::vector<AttendTensor>& attend_tensors();

std::string name_of(AttendKind kind);
AttendOptions parse_attend(const std::vector<std::string>& words);  // each name=value

// Whether everything that each option and each tensor of the file (those named) needs is there, and fits the kind.
void check_attend_needs(const AttendOptions& options, const std::string& file, const std::set<std::string>& tensors);

std::string attend_help();

}  // namespace heed::cli
