// Errors of heed attend: messages and exit codes. A refused call leaves no output file.
#include <cmath>

#include "tests/cli/attend_run.h"

namespace heed::test {
namespace {

void expect_refused(int exit_code, const TensorMap& more, const std::string& options, const std::string& message) {
  TensorMap inputs = small_inputs();
  for (const auto& [name, tensor] : more) inputs[name] = tensor;
  const Attended got = run_attend(inputs, options);
  EXPECT_EQ(got.exit_code, exit_code) << options << message;
  EXPECT_EQ(got.err, "heed: " + message + "\n");
  EXPECT_EQ(got.out, "");
  EXPECT_TRUE(got.tensors.empty());
}

void expect_usage(const std::string& options, const std::string& message, const TensorMap& more = {}) {
  expect_refused(2, more, options, "attend: " + message);
}

void expect_bad_attend(const TensorMap& more, const std::string& message, const std::string& options = "") {
  expect_refused(3, more, options, "in.safetensors: " + message);
}

// 0.5 everywhere except `value` at index `at`.
Tensor constant_except_at(const Shape& shape, size_t at, float value) {
  std::vector<float> values(static_cast<size_t>(count(shape)), 0.5f);
  values.at(at) = value;
  return Tensor::from(values, shape, kCpu);
}

TEST(AttendErrors, command_lines) {
  const auto expect = [](const std::string& arguments, const std::string& message) {
    const Attended got = run_attend(small_inputs(), "", arguments);
    EXPECT_EQ(got.exit_code, 2) << arguments;
    EXPECT_EQ(got.err, "heed: " + message + "\n");
  };
  const std::string usage = "heed attend FILE.safetensors [name=value ...] -o OUT.safetensors";
  expect("attend", "attend: no input file; " + usage);
  expect("attend IN beta=1", "attend: no output file; " + usage);
  expect("attend IN IN -o OUT", "attend: unexpected argument 'in.safetensors'; " + usage);
  expect("attend IN causal -o OUT", "attend: causal without a value, expected causal=..., true or false");
  expect("attend IN -o IN", "attend: in.safetensors is the input file, expected another one to write to");
  expect("attend IN --casual true -o OUT", "unknown flag '--casual'; did you mean '--causal'?");
}

TEST(AttendErrors, arguments_and_flags_are_equivalent) {
  const TensorMap t = small_inputs();
  const Attended arguments = run_attend(t, "causal=true beta=0.5"), flags = run_attend(t, "", "attend -o OUT --beta=0.5 IN --causal true");
  EXPECT_EQ(flags.exit_code, 0) << flags.err;
  expect_same(arguments.tensors.at("out"), flags.tensors.at("out"));
}

TEST(AttendErrors, options) {
  expect_usage("casual=true", "unknown option 'casual'; did you mean 'causal'?");
  expect_usage("nonsense=1", "unknown option 'nonsense'");
  expect_usage("alpha=2", "alpha is a tensor, not an option; expected it in the file");
  expect_usage("beta=1 beta=2", "beta is given twice");
  expect_usage("beta=1 scale=2", "beta and scale are the same, expected one of them");
  expect_usage("beta=1 content=false", "content=false with beta=1, expected one of them: it means beta=0");
}

TEST(AttendErrors, values) {
  for (const char* text : {"", "x", "1x", "nan", "inf", "1e99"})
    expect_usage("beta=" + std::string(text), "beta=" + std::string(text) + ", expected a number");
  expect_usage("kind=fast", "kind=fast, expected softmax, linear or channel");
  expect_usage("causal=maybe", "causal=maybe, expected true or false");
  for (const char* text : {"a", "-1", "1.5"})
    expect_usage("window=" + std::string(text),
                 "window=" + std::string(text) + ": before='" + text + "', expected a whole number of 0 or more");
  expect_usage("window=1,", "window=1,: after='', expected a whole number of 0 or more");
  expect_usage("window=1,2,3,4", "window=1,2,3,4: found 4 parts, expected window:BEFORE:AFTER:GLOBALS");
  expect_usage("window=", "window=, expected BEFORE,AFTER,GLOBALS; trailing ones may be missing");
  expect_usage("window=1,2,3 globals=3", "globals=3 sets globals again");
  for (const char* text : {"12", "3x", "0x12", "3x4x1", "3,4"})
    expect_usage("grid=" + std::string(text), "grid=" + std::string(text) + ", expected ROWSxCOLUMNS, for example 16x16");
  expect_usage("causal=true offset=1e3", "offset=1e3, expected a whole number");
  expect_usage("causal=true offset=9999999999", "offset=9999999999, expected at most 2147483647");
  expect_usage("chunk=0", "chunk=0: size='0', expected a whole number of 1 or more");
  expect_usage("softcap=0", "softcap=0: limit='0', expected a number above 0");
  expect_usage("dropout=1", "dropout=1, expected a probability of 0 or more, below 1");
  expect_usage("hard=true hard_gradient=soft", "hard_gradient=soft, expected straight-through or none");
  expect_usage("kind=linear features=tanh", "features=tanh, expected elu, relu or random");
}

TEST(AttendErrors, missing_requirements) {
  expect_usage("offset=1", "offset needs causal=...");
  expect_usage("globals=1", "globals needs window=...");
  expect_usage("shift=1", "shift needs chunks=...");
  expect_usage("grid_window=1", "grid_window needs grid=...");
  expect_usage("pool=2", "pool needs grid=...");
  expect_usage("block=2", "block needs the tensor block_pattern");
  expect_usage("heads=1", "heads needs probabilities=...");
  expect_usage("seed=1", "seed needs dropout=... or features=... or random_features=...");
  expect_usage("causal=true kind=channel", "causal has no meaning with kind=channel, only with kind=softmax or linear");
  expect_usage("features=elu", "features has no meaning with kind=softmax, only with kind=linear");
  expect_usage("kind=linear beta=-1", "kind=linear with beta=-1, expected 0 or more");
  expect_usage("kind=linear random_features=65537", "random_features=65537, expected at most 65536");
  expect_usage("kind=linear features=relu random_features=3", "random_features with features=relu, expected features=random");
  expect_usage("grid=2x2", "grid=2x2 has 4 cells, expected one for each of the 12 keys");
  expect_usage("first_query=1 grid=3x4", "grid=3x4 has 12 cells, expected 13 or more, as the first of 12 queries is at 1");
  expect_usage("grid=3x4", "grid=3x4 has 12 cells, expected one for each of the 5 queries", {{"q", Tensor::ones({2, 4, 5, 5}, kCpu)}});
  expect_usage("pool=2 grid=2x2", "grid=2x2 has 4 cells, expected one for each of the 12 keys");
  expect_usage("pool=2 grid=3x4 grid_window=1", "pool with grid_window: pooled keys have no position on the grid");
  expect_usage("lengths=1", "1 lengths for 2 items");
  expect_usage("lengths=1,13", "a length of 13, expected 0 to M = 12");
  expect_usage("probabilities=true heads=1,4", "heads=4, but there are only 4, counted from 0");
  expect_usage("probabilities=true rows=12", "rows=12, but there are only 12, counted from 0");
  expect_usage("", "relative_table of shape (4, 3, 3) needs grid=...", {{"relative_table", Tensor::ones({4, 3, 3}, kCpu)}});
  expect_usage("beta=1", "beta is an option and a tensor of the file, expected one of them", {{"beta", Tensor::ones({4}, kCpu)}});
  expect_usage("alibi=true", "alibi=true and the tensor slopes, expected one of them", {{"slopes", Tensor::ones({4}, kCpu)}});
  const TensorMap lengths{{"lengths", Tensor::ones({2}, DType::i64, kCpu)}}, projection{{"projection", Tensor::ones({3, 5}, kCpu)}};
  expect_usage("lengths=1,1", "lengths is an option and a tensor of the file, expected one of them", lengths);
  expect_usage("kind=linear features=elu", "features=elu with the tensor projection, expected features=random", projection);
  expect_usage("kind=linear features=exp random_features=3", "random_features and the tensor projection, expected one of them", projection);
  expect_bad_attend({{"alpha", Tensor::ones({4}, kCpu)}}, "the tensor alpha needs the tensor center (ignore=alpha leaves it out)");
  expect_bad_attend({{"center", Tensor::ones({4, 2}, kCpu)}},
                    "the tensor center needs the tensor alpha or the tensor spread (ignore=center leaves it out)");
  expect_bad_attend({{"alpha", Tensor::ones({4}, kCpu)}, {"center", Tensor::ones({4, 2}, kCpu)}},
                    "the tensor alpha needs grid=... (ignore=alpha leaves it out)");
  expect_bad_attend({{"w", Tensor::ones({4, 5}, kCpu)}}, "the tensor w needs the tensor relative_keys (ignore=w leaves it out)");
  expect_bad_attend(projection,
                    "the tensor projection has no meaning with kind=softmax, only with kind=linear (ignore=projection leaves it out)");
}

TEST(AttendErrors, unknown_and_missing_tensors) {
  const TensorMap wrong{{"alhpa", Tensor::ones({4}, kCpu)}};
  expect_bad_attend(wrong, "unknown tensor \"alhpa\"; did you mean 'alpha'? (ignore=alhpa leaves it out)");
  expect_usage("ignore=alpa", "ignore=alpa, but in.safetensors has no such tensor; did you mean 'alhpa'?", wrong);
  TensorMap all = small_inputs();
  const Attended without = run_attend(all, "");
  all["alhpa"] = Tensor::ones({4}, kCpu);
  const Attended ignored = run_attend(all, "ignore=alhpa");
  EXPECT_EQ(ignored.exit_code, 0) << ignored.err;
  expect_same(ignored.tensors.at("out"), without.tensors.at("out"));
  const Attended missing = run_attend({{"q", Tensor::ones({2, 2}, kCpu)}, {"k", Tensor::ones({2, 2}, kCpu)}}, "");
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_EQ(missing.err, "heed: in.safetensors: no tensor v, expected q, k and v\n");
}

TEST(AttendErrors, shapes) {
  const auto of = [](const std::string& name, const Shape& shape) { return TensorMap{{name, Tensor::ones(shape, kCpu)}}; };
  const auto shapes = [](const std::string& q, const std::string& k, const std::string& v) {
    return "q " + q + ", k " + k + " and v " + v;
  };
  const std::string q = "(2, 4, 12, 5)", k = "(2, 2, 12, 5)", v = "(2, 2, 12, 3)",
                    plain = ", expected (B, H, N, D), (B, G, M, D), (B, G, M, E), all without B or without B and H: ";
  expect_bad_attend(of("q", {2, 4, 12, 6}), shapes("(2, 4, 12, 6)", k, v) + plain + "widths of q and k differ, 6 and 5");
  expect_bad_attend(of("q", {3, 4, 12, 5}), shapes("(3, 4, 12, 5)", k, v) + plain + "items of q and k differ, 3 and 2");
  expect_bad_attend(of("q", {2, 3, 12, 5}), shapes("(2, 3, 12, 5)", k, v) + plain + "3 heads of q are not a multiple of the 2 heads of k");
  expect_bad_attend(of("q", {4, 12, 5}), shapes("(4, 12, 5)", k, v) + plain + "their ranks differ");
  expect_bad_attend(of("q", {5}), shapes("(5)", k, v) + plain + "q has 1 axes");
  expect_bad_attend(of("v", {2, 2, 11, 3}), shapes(q, k, "(2, 2, 11, 3)") + plain + "tokens of k and v differ, 12 and 11");
  expect_bad_attend(
      {},
      shapes(q, k, v) +
          ", expected (B, H, N, C), (B, H, N, D), (B, H, M, D), all without B or without B and H: heads of q and k differ, 4 and 2",
      "kind=channel");
  const std::string here = "; here B = 2, H = 4, N = 12, M = 12, D = 5, E = 3";
  const auto expect_shape = [&](const std::string& name, const Shape& shape, const std::string& expected, const std::string& options = "") {
    std::ostringstream text;
    text << name << " has shape " << shape << ", expected " << expected << here;
    const bool numbers = name != "key_mask" && name != "block_pattern" && name != "lengths";
    expect_bad_attend({{name, Tensor::ones(shape, numbers ? DType::f32 : DType::u8, kCpu)}}, text.str(), options);
  };
  expect_shape("beta", {3}, "(H) or (1)");
  expect_shape("bias", {2, 12}, "any shape that broadcasts to (B, H, N, M)");
  expect_shape("mask", {1, 2, 4, 12, 12}, "any shape that broadcasts to (B, H, N, M)");
  expect_shape("key_mask", {3, 12}, "(B, M) or (M)");
  expect_shape("lengths", {3}, "(B)");
  expect_shape("block_pattern", {2, 2}, "(H, N / BLOCK, M / BLOCK)", "block=4");
  expect_shape("relative_table", {4, 4}, "(H, 2 reach + 1) or (2 reach + 1), or with grid (H, 2 rows + 1, 2 columns + 1)");
  expect_shape("relative_keys", {4, 3, 6}, "(H, 2 R + 1, D)");
  expect_shape("u", {3, 5}, "(H, D)");
  expect_shape("slopes", {2}, "(H) or (1)");
  expect_shape("bucket_table", {4, 8}, "(H, buckets) or (buckets)", "bucketed=16");
  expect_shape("projection", {3, 4}, "(R, D)", "kind=linear features=exp");
  expect_bad_attend(of("grad_out", {2, 4, 12, 5}), "grad_out has shape (2, 4, 12, 5), expected that of out, (2, 4, 12, 3)");
}

TEST(AttendErrors, elements) {
  const Shape q{2, 4, 12, 5}, v{2, 2, 12, 3};
  expect_bad_attend({{"q", constant_except_at(q, 239, NAN)}}, "q is nan at (0, 3, 11, 4), expected finite numbers");
  expect_bad_attend({{"v", constant_except_at(v, 0, INFINITY)}}, "v is infinity at (0, 0, 0, 0), expected finite numbers");
  expect_bad_attend({{"grad_out", constant_except_at({2, 4, 12, 3}, 3, -INFINITY)}},
                    "grad_out is -infinity at (0, 0, 1, 0), expected finite numbers");
  expect_bad_attend({{"bias", constant_except_at({12, 12}, 13, INFINITY)}},
                    "bias is infinity at (1, 1), expected finite numbers or -infinity");
  expect_bad_attend({{"mask", constant_except_at({12}, 3, NAN)}}, "mask is nan at (3), expected finite numbers or -infinity");
  expect_bad_attend({{"q", Tensor::ones(q, DType::i64, kCpu)}}, "q is i64, expected f32, f16 or bf16");
  expect_bad_attend({{"key_mask", Tensor::ones({2, 12}, kCpu)}}, "key_mask is f32, expected bool or integers");
  expect_bad_attend({{"lengths", Tensor::ones({2}, kCpu)}}, "lengths is f32, expected integers");
  expect_bad_attend({{"lengths", Tensor::from(std::vector<int64_t>{3, -1}, {2}, kCpu)}}, "lengths holds -1, expected 0 to M = 12");
  expect_refused(1, {{"q", Tensor::full(q, 1e30, kCpu)}, {"k", Tensor::full({2, 2, 12, 5}, 1e30, kCpu)}}, "",
                 "attend: out holds nan, though all inputs are finite: values overflowed f32, try a smaller beta");
}

TEST(AttendErrors, a_float_mask_of_zeros_and_ones_gives_a_warning) {
  TensorMap all = small_inputs();
  all["mask"] = converted(random_mask({12, 12}, DType::boolean, 3), DType::f32);
  const Attended got = run_attend(all, "");
  EXPECT_EQ(got.exit_code, 0);
  EXPECT_EQ(got.err,
            "heed: attend: mask holds only 0 and 1, but as floats, which are added to the scores. For a boolean mask store bool or u8\n");
}

TEST(AttendErrors, files) {
  const auto expect = [](const std::string& arguments, const std::string& message, int exit_code = 3) {
    const Attended got = run_attend(small_inputs(), "", arguments);
    EXPECT_EQ(got.exit_code, exit_code) << arguments;
    EXPECT_TRUE(got.err.starts_with("heed: " + message)) << got.err;
  };
  expect("attend IN.none -o OUT", "in.safetensors.none: there is no such file");
  expect("attend / -o OUT", "/: a folder, expected a safetensors file");
  expect("attend IN -o /nowhere/out.safetensors", "/nowhere/out.safetensors: cannot be written", 1);
}

TEST(AttendErrors, the_document_shows_the_help) {
  const std::string help = run_attend(small_inputs(), "", "attend --help").out, page = get(Path(HEED_SOURCE_DIR) / "docs/attend.md");
  const size_t begin = help.find("Computes attention");
  ASSERT_NE(begin, std::string::npos) << help;
  EXPECT_NE(page.find("```text\n" + help.substr(begin) + "```\n"), std::string::npos) << help.substr(begin);
}

}  // namespace
}  // namespace heed::test
