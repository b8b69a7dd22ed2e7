// Errors name the file, the tensor, what was found and what was expected.
#include "heed/cli/attend_file.h"

#include <cmath>
#include <sstream>

#include "heed/core/nearest.h"
#include "heed/io/paths.h"
#include "heed/ops/ops.h"

namespace heed::cli {
namespace {

Safetensors opened(const Path& path) {
  check<FileError>(!is_folder(path), path.string(), ": a folder, expected a safetensors file");
  return Safetensors::open(path);
}

Shape index_of(int64_t flat, const Shape& shape) {
  Shape index = shape;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index[axis] = flat % shape[axis];
    flat /= shape[axis];
  }
  return index;
}

}  // namespace

Tensor with_axes(const Tensor& x, int rank) {
  Shape shape;
  for (int axis = x.rank(); axis < rank; ++axis) shape.push_back(1);
  for (const int64_t size : x.shape()) shape.push_back(size);
  return reshape(x, shape);
}

Tensor without_axes(const Tensor& x, int rank) {
  return reshape(x, Shape(std::span(x.shape().begin() + x.rank() - rank, static_cast<size_t>(rank))));
}

AttendFile::AttendFile(const Path& path, const AttendOptions& options) : path_(path.string()), file_(opened(path)) {
  const std::vector<std::string> all = file_.names();
  names_.insert(all.begin(), all.end());
  for (const std::string& name : options.ignore)
    check<UsageError>(names_.erase(name) == 1, "attend: ignore=", name, ", but ", path_, " has no such tensor", did_you_mean(name, all));
  for (const char* name : {"q", "k", "v"}) check<FileError>(has(name), path_, ": no tensor ", name, ", expected q, k and v");
  check_attend_needs(options, path_, names_);
  read_sizes(options.kind);
}

void AttendFile::read_sizes(AttendKind kind) {
  const Shape q = file_.entry("q").shape, k = file_.entry("k").shape, v = file_.entry("v").shape;
  const auto require = [&](bool ok, const std::string& what) {
    const char* expected =
        kind == AttendKind::channel ? "(B, H, N, C), (B, H, N, D), (B, H, M, D)" : "(B, H, N, D), (B, G, M, D), (B, G, M, E)";
    check<FileError>(ok, path_, ": q ", q, ", k ", k, " and v ", v, ", expected ", expected, ", all without B or without B and H: ", what);
  };
  rank_ = q.rank();
  require(rank_ >= 2 && rank_ <= 4, "q has " + std::to_string(rank_) + " axes");
  require(k.rank() == rank_ && v.rank() == rank_, "their ranks differ");
  const auto size = [](const Shape& shape, int axis) { return axis + shape.rank() < 4 ? 1 : shape[axis + shape.rank() - 4]; };
  const auto same = [&](int axis, const Shape& a, const Shape& b, const std::string& what) {
    require(size(a, axis) == size(b, axis), what + " differ, " + std::to_string(size(a, axis)) + " and " + std::to_string(size(b, axis)));
  };
  same(0, q, k, "items of q and k");
  same(0, k, v, "items of k and v");
  same(1, k, v, "heads of k and v");
  if (kind == AttendKind::channel) {
    same(1, q, k, "heads of q and k");
    same(2, q, k, "tokens of q and k");
    same(3, k, v, "channels of k and v");
  } else {
    same(2, k, v, "tokens of k and v");
    same(3, q, k, "widths of q and k");
    require(size(k, 1) > 0 && size(q, 1) % size(k, 1) == 0,
            std::to_string(size(q, 1)) + " heads of q are not a multiple of the " + std::to_string(size(k, 1)) + " heads of k");
  }
  sizes_ = {size(q, 0), size(q, 1), size(k, 1), size(q, 2), size(k, 2), size(q, 3), size(v, 3)};
}

void AttendFile::refuse_shape(const std::string& name) const {
  std::string expected;
  for (const AttendTensor& row : attend_tensors())
    if (row.name == name) expected = row.shape;
  const AttentionSizes& z = sizes_;
  refuse(name, " has shape ", file_.entry(name).shape, ", expected ", expected, "; here B = ", z.B, ", H = ", z.H, ", N = ", z.N,
         ", M = ", z.M, ", D = ", z.D, ", E = ", z.E);
}

void AttendFile::check_finite(const std::string& name, const Tensor& x, bool may_mask) const {
  const std::vector<float> values = x.to_vector<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i]) || (may_mask && values[i] == -INFINITY)) continue;
    refuse(name, " is ",
           std::isnan(values[i]) ? "nan"
           : values[i] < 0       ? "-infinity"
                                 : "infinity",
           " at ", index_of(static_cast<int64_t>(i), x.shape()), ", expected ",
           may_mask ? "finite numbers or -infinity" : "finite numbers");
  }
}

bool AttendFile::is_floating(const std::string& name) const { return heed::is_floating(file_.entry(name).dtype); }

Tensor AttendFile::read(const std::string& name, bool may_mask) {
  if (const auto known = read_.find(name); known != read_.end()) return known->second;
  if (!is_floating(name)) refuse(name, " is ", heed::name_of(file_.entry(name).dtype), ", expected f32, f16 or bf16");
  Tensor x = converted(file_.tensor(name), DType::f32);
  check_finite(name, x, may_mask);
  for (const AttendTensor& row : attend_tensors())
    if (row.name == name && row.learned && has("grad_out")) x.require_grad();
  read_[name] = x;
  return x;
}

Tensor AttendFile::numbers(const std::string& name) { return read(name, false); }

Tensor AttendFile::queries_keys_values(const std::string& name) { return with_axes(numbers(name), 4); }

bool AttendFile::has_term(const TermInfo& info) const {
  if (info.parameters.empty() || !has(info.parameters[0].file_name)) return false;
  const std::string& name = info.parameters[0].file_name;
  const auto axes = [](const TermInfo& term) { return std::ssize(term.parameters[0].sizes) + 1; };
  const int64_t rank = file_.entry(name).shape.rank();
  return std::none_of(term_infos().begin(), term_infos().end(), [&](const TermInfo& other) {
    const bool shares = &other != &info && !other.parameters.empty() && other.parameters[0].file_name == name;
    return shares && (rank == axes(other) || (&other < &info && rank != axes(info)));
  });
}

Tensor AttendFile::per_head(const std::string& name, const std::vector<TermSize>& sizes, TermValues& values) {
  const Tensor x = numbers(name);
  const int64_t own = x.rank() - std::ssize(sizes);  // axes before `sizes`: 1 (heads) or 0
  if (own < 0 || own > 1 || (own == 1 && x.size(0) != 1 && x.size(0) != sizes_.H)) refuse_shape(name);
  Shape whole{sizes_.H};
  for (const TermSize& size : sizes) {
    const int64_t found = x.size(static_cast<int>(own + (&size - sizes.data()))), more = found - size.plus;
    if (size.times == 0 ? more != 0 : more < 0 || more % size.times != 0) refuse_shape(name);
    if (size.times > 0) {
      const auto value = static_cast<double>(more / size.times);
      if (values.try_emplace(size.setting, value).first->second != value) refuse_shape(name);
    }
    whole.push_back(found);
  }
  return expand(with_axes(x, whole.rank()), whole);
}

Tensor AttendFile::per_head(const std::string& name, const std::vector<TermSize>& sizes) {
  TermValues values;
  return per_head(name, sizes, values);
}

Tensor AttendFile::addend(const std::string& name) {
  const Tensor x = read(name, true);
  const Shape all{sizes_.B, sizes_.H, sizes_.N, sizes_.M};
  if (x.rank() > 4) refuse_shape(name);
  for (int axis = 0; axis < x.rank(); ++axis)
    if (x.size(axis) != 1 && x.size(axis) != all[axis + 4 - x.rank()]) refuse_shape(name);
  return with_axes(x, 4);
}

Tensor AttendFile::keep_mask(const std::string& name, const Shape& to, const Shape& shape) {
  const Shape stored = file_.entry(name).shape;
  if (is_floating(name)) refuse(name, " is ", heed::name_of(file_.entry(name).dtype), ", expected bool or integers");
  if (stored.rank() > to.rank()) refuse_shape(name);
  for (int axis = 0; axis < stored.rank(); ++axis)
    if (stored[axis] != 1 && stored[axis] != to[axis + to.rank() - stored.rank()]) refuse_shape(name);
  const Tensor keep = converted(file_.tensor(name), DType::boolean);
  return shape == to ? with_axes(keep, to.rank()) : reshape(contiguous(expand(with_axes(keep, to.rank()), to)), shape);
}

Tensor AttendFile::lengths() {
  if (is_floating("lengths")) refuse("lengths", " is ", heed::name_of(file_.entry("lengths").dtype), ", expected integers");
  if (file_.entry("lengths").shape != Shape{sizes_.B}) refuse_shape("lengths");
  return converted(file_.tensor("lengths"), DType::i64);
}

NamedTensors AttendFile::gradients() const {
  NamedTensors all;
  for (const AttendTensor& row : attend_tensors()) {
    const auto found = read_.find(row.name);
    if (found == read_.end() || !row.learned) continue;
    const Tensor g = found->second.grad();
    all.emplace_back("grad_" + row.name, g.defined() ? g : Tensor::zeros(found->second.shape(), kCpu));
  }
  return all;
}

}  // namespace heed::cli
