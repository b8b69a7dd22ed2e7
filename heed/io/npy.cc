#include "heed/io/npy.h"

#include <cstring>
#include <optional>

#include "heed/io/elements.h"

namespace heed {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr int64_t kMaxDictBytes = 1 << 16;  // eight axes need about 250

// NumPy's dtype names; bf16 has none.
const char* npy_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "<f4";
    case DType::f16: return "<f2";
    case DType::i64: return "<i8";
    case DType::i32: return "<i4";
    case DType::u8: return "|u1";
    case DType::boolean: return "|b1";
    case DType::bf16: break;
  }
  return nullptr;
}

// Parses the header, a Python dict with three keys.
class DictReader {
 public:
  DictReader(const std::string& source, std::string_view text) : source_(source), text_(text) {}

  std::optional<std::string_view> descr;
  std::optional<bool> fortran_order;
  std::optional<Shape> shape;

  void read() {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr") {
        if (peek() == '[')
          refuse("found a structured dtype, expected one of <f4 <f2 <i8 <i4 |u1 |b1; save each field as an array of its own");
        set(descr, string(), key);
      } else if (key == "fortran_order") {
        set(fortran_order, boolean(), key);
      } else if (key == "shape") {
        set(shape, tuple(), key);
      } else {
        refuse("found the key ", in_quotes(key), ", expected descr, fortran_order and shape");
      }
      if (!accept(',') && peek() != '}') refuse("found ", next(), ", expected , or }");
    }
    if (peek() != '\0') refuse("found ", next(), " after the dict, expected spaces");
    if (!descr || !fortran_order || !shape)
      refuse("found no ", !descr ? "descr" : !shape ? "shape" : "fortran_order", ", expected it in the header");
  }

 private:
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail<FileError>(source_, ": ", parts..., " (byte ", at_, " of the header)");
  }
  template <class T>
  void set(std::optional<T>& field, T value, std::string_view key) {
    if (field) refuse("found the key ", in_quotes(key), " a second time, expected it once");
    field = value;
  }

  char peek() {  // the next non-space character; zero at the end
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    if (at_ < text_.size() && text_[at_] == '\0') refuse("found a zero byte, expected text");
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  std::string next() { return peek() == '\0' ? "the end" : in_quotes(text_.substr(at_, 1)); }
  bool accept(char letter) {
    if (peek() != letter) return false;
    ++at_;
    return true;
  }
  void expect(char letter) {
    if (!accept(letter)) refuse("found ", next(), ", expected ", letter);
  }

  std::string_view string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') refuse("found ", next(), ", expected a string");
    const size_t begin = at_ + 1, end = text_.find(quote, begin);
    if (end == text_.npos) refuse("found no end of a string, expected ", quote);
    at_ = end + 1;
    return text_.substr(begin, end - begin);
  }
  bool boolean() {
    peek();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    refuse("found ", next(), ", expected True or False");
  }
  Shape tuple() {
    Shape out;
    expect('(');
    bool comma = true;  // a size may follow
    while (!accept(')')) {
      if (!comma) refuse("found ", next(), ", expected , or )");
      if (out.rank() == kMaxRank) refuse("found more than ", kMaxRank, " axes, expected at most that many");
      out.push_back(size());
      comma = accept(',');
    }
    if (out.rank() == 1 && !comma) refuse("found a number in brackets, expected a tuple such as (3,)");
    return out;
  }
  int64_t size() {
    if (peek() < '0' || peek() > '9') refuse("found ", next(), ", expected a size of 0 or more");
    int64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value))
        refuse("found a size of more than 2^63 - 1, expected one that memory can hold");
    return value;
  }

  const std::string& source_;
  std::string_view text_;
  size_t at_ = 0;
};

DType dtype_named(const std::string& source, std::string_view name) {
  for (DType dtype : kEveryDType)
    if (npy_name(dtype) && name == npy_name(dtype)) return dtype;
  const char* advice = name == "<f8" || name == ">f8"   ? "save it with .astype('float32')"
                       : name.starts_with('>')          ? "it is big-endian: save it with .astype of the little-endian dtype"
                       : name == "|V2" || name == "<V2" ? "bf16 has no name in this format: save it as float32"
                                                        : "convert the array before it is saved";
  fail<FileError>(source, ": found dtype ", in_quotes(name), ", expected one of <f4 <f2 <i8 <i4 |u1 |b1; ", advice);
}

}  // namespace

Tensor parse_npy(const std::shared_ptr<const MappedFile>& file) {
  const std::string& source = file->name();
  const auto magic = static_cast<int64_t>(kMagic.size());
  check<FileError>(file->size() >= magic + 4 && file->text(0, magic) == kMagic, source, ": found no NumPy signature, expected a .npy file");
  const int major = std::to_integer<int>(file->data()[magic]), minor = std::to_integer<int>(file->data()[magic + 1]);
  check<FileError>(major >= 1 && major <= 3 && minor == 0, source, ": found version ", major, ".", minor, ", expected 1.0, 2.0 or 3.0");
  const int64_t width = major == 1 ? 2 : 4, begin = magic + 2 + width;
  check<FileError>(file->size() >= begin, source, ": found ", file->size(), " bytes, expected at least ", begin,
                   "; the file was cut short");
  uint32_t dict_bytes = 0;
  std::memcpy(&dict_bytes, file->data() + magic + 2, static_cast<size_t>(width));
  check<FileError>(dict_bytes <= kMaxDictBytes, source, ": found a header of ", dict_bytes, " bytes, expected at most ", kMaxDictBytes);
  check<FileError>(dict_bytes <= file->size() - begin, source, ": found a header of ", dict_bytes, " bytes, expected at most the ",
                   file->size() - begin, " that follow; the file was cut short");

  DictReader dict(source, file->text(begin, dict_bytes));
  dict.read();
  const DType dtype = dtype_named(source, *dict.descr);
  const int64_t bytes = checked_bytes_of(source, *dict.shape, dtype), rest = file->size() - begin - dict_bytes;
  check<FileError>(rest == bytes, source, ": found ", rest, " bytes of data, expected ", bytes, " for shape ", *dict.shape, " of ",
                   *dict.descr, rest < bytes ? "; the file was cut short" : "; a .npy file holds one array");
  if (!*dict.fortran_order) return elements_at(file, source, begin + dict_bytes, *dict.shape, dtype);
  // Fortran order is row-major order of the reversed axes.
  Shape reversed = *dict.shape, strides = *dict.shape;
  const int last = reversed.rank() - 1;
  for (int axis = 0; axis <= last; ++axis) reversed[axis] = (*dict.shape)[last - axis];
  const Tensor stored = elements_at(file, source, begin + dict_bytes, reversed, dtype);
  for (int axis = 0; axis <= last; ++axis) strides[axis] = stored.strides()[last - axis];
  return stored.view(*dict.shape, strides);
}

Tensor read_npy(const Path& path) { return parse_npy(MappedFile::open(path)); }

void write_npy(const Path& path, const Tensor& tensor) {
  check(tensor.defined(), "write_npy: the tensor is undefined, expected one with data");
  check(tensor.dtype() != DType::bf16, "write_npy: found bf16, which NumPy does not know; cast the tensor to f32 first");
  std::string header(kMagic);
  header += {'\1', '\0', '\0', '\0'};  // version, placeholder for the dict size
  header += std::string("{'descr': '") + npy_name(tensor.dtype()) + "', 'fortran_order': False, 'shape': (";
  for (int axis = 0; axis < tensor.rank(); ++axis) header += (axis ? ", " : "") + std::to_string(tensor.shape()[axis]);
  header += tensor.rank() == 1 ? ",), }" : "), }";
  header.resize((header.size() + 1 + 63) / 64 * 64, ' ');  // data is aligned to 64 bytes
  header.back() = '\n';
  const auto size = static_cast<uint16_t>(header.size() - kMagic.size() - 4);
  std::memcpy(header.data() + kMagic.size() + 2, &size, sizeof size);
  FileWriter out(path);
  out.write(header);
  write_elements(out, tensor);
  out.commit();
}

}  // namespace heed
