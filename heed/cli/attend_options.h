// The options and tensors of `heed attend`, one table each. Parsing, validation and --help all read these tables.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "heed/attention/attention.h"

namespace heed::cli {

enum class AttendKind { softmax, linear, channel };

struct AttendOptions {
  AttendKind kind = AttendKind::softmax;
  std::optional<float> beta;
  bool content = true, causal = false, alibi = false, probabilities = false, quadratic = false;
  int64_t offset = 0, first_query = 0, seed = 1;
  std::optional<int64_t> block, pool, random_features;
  std::optional<std::array<int64_t, 2>> grid;  // {rows, columns}
  std::map<std::string, TermValues> terms;     // settings of score terms, by the term's name
  std::vector<int64_t> lengths, heads, rows;
  std::string features = "elu";
  Hard hard = Hard::no, hard_gradient = Hard::straight_through;
  float dropout = 0;
  std::vector<std::string> ignore;
  std::set<std::string> given;  // names of the options on the command line
};

using AttendKinds = std::vector<AttendKind>;
struct AttendArgument;

// `needs` lists options and tensors that must all be present; a|b means either of them.
struct AttendOption {
  std::string name, value;  // value: description of the expected value
  AttendKinds kinds;
  std::string needs, meaning;
  std::function<void(AttendOptions&, const AttendArgument&)> read;
  std::vector<std::string> aliases = {};

  bool is_named(const std::string& typed) const {
    return name == typed || std::find(aliases.begin(), aliases.end(), typed) != aliases.end();
  }
};
struct AttendTensor {
  std::string name, shape;
  AttendKinds kinds;
  std::string needs, meaning;
  bool learned = false;  // its gradient is written if grad_out is present

  bool is_named(const std::string& typed) const { return name == typed; }
};

// Those of score terms come from their descriptors (attention/term_info.h).
const std::vector<AttendOption>& attend_options();
const std::vector<AttendTensor>& attend_tensors();

bool attend_tensors_decide(const TermInfo& info);  // every setting of the term is a size of one of its tensors

std::string name_of(AttendKind kind);
AttendOptions parse_attend(const std::vector<std::string>& arguments);  // each name=value

// Throws unless every option and every tensor of the file fits the kind and has what it needs.
void check_attend_needs(const AttendOptions& options, const std::string& file, const std::set<std::string>& tensors);

std::string attend_help();

}  // namespace heed::cli
