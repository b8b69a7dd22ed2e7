#include "heed/io/json.h"

#include <iterator>
#include <vector>

namespace heed {
namespace {

// Feeds text to the parser and counts bytes. The parser buffers the current token, so its length is limited here.
struct Feed {
  const std::string& source;
  std::string_view text;
  size_t position = 0, token = 0;  // bytes read; start of the current token

  void advance() {
    ++position;
    check<FileError>(position - token <= kMaxJsonToken, source, ": byte ", position, ": found a string, number or whitespace of more than ",
                     kMaxJsonToken, " bytes, expected shorter ones");
  }
};

class FeedIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  explicit FeedIterator(Feed* feed) : feed_(feed) {}
  char operator*() const { return feed_->text[feed_->position]; }
  FeedIterator& operator++() {
    feed_->advance();
    return *this;
  }
  void operator++(int) { feed_->advance(); }
  // The parser compares only with the end iterator.
  bool operator==(const FeedIterator&) const { return feed_->position == feed_->text.size(); }
  bool operator!=(const FeedIterator& other) const { return !(*this == other); }

 private:
  Feed* feed_;
};

// Forwards nlohmann's SAX events.
class Adapter : public nlohmann::json_sax<Json> {
 public:
  Adapter(Feed& feed, JsonEvents& events) : feed_(feed), events_(events) {}

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(int64_t value) override { return scalar(value); }
  bool number_unsigned(uint64_t value) override { return scalar(value); }
  bool number_float(double value, const std::string&) override { return scalar(value); }
  bool string(std::string& value) override { return scalar(std::move(value)); }
  bool binary(Json::binary_t&) override { return false; }  // never in JSON text
  bool start_object(size_t) override { return begin(true); }
  bool start_array(size_t) override { return begin(false); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool key(std::string& name) override {
    next_token();
    events_.key(name);
    return true;
  }
  bool parse_error(size_t, const std::string&, const Json::exception& error) override {
    std::string what = error.what();  // "[json.exception...] parse error at line 1, column 2: the readable part"
    if (const size_t bracket = what.find("] "); bracket != std::string::npos) what.erase(0, bracket + 2);
    if (const size_t colon = what.find(": "); colon != std::string::npos) what.erase(0, colon + 2);
    fail<FileError>(feed_.source, ": byte ", feed_.position, ": found a syntax error, expected JSON: ", in_quotes(what, 300));
  }

 private:
  void next_token() {
    feed_.token = feed_.position;
    events_.position = static_cast<int64_t>(feed_.position);
  }
  bool scalar(Json value) {
    next_token();
    events_.scalar(value);
    return true;
  }
  bool begin(bool object) {
    next_token();
    check<FileError>(++depth_ <= kMaxJsonDepth, feed_.source, ": byte ", feed_.position, ": found values nested more than ", kMaxJsonDepth,
                     " levels deep, expected at most that many");
    events_.begin(object);
    return true;
  }
  bool end() {
    next_token();
    --depth_;
    events_.end();
    return true;
  }

  Feed& feed_;
  JsonEvents& events_;
  int depth_ = 0;
};

// Builds the whole document.
class Builder : public JsonEvents {
 public:
  explicit Builder(const std::string& source) : source_(source) {}

  void begin(bool object) override { open_.push_back(store(object ? Json::object() : Json::array())); }
  void key(std::string& name) override {
    const auto [found, inserted] = open_.back()->get_ref<Json::object_t&>().emplace(std::move(name), nullptr);
    check<FileError>(inserted, source_, ": byte ", position, ": found the key ", in_quotes(found->first),
                     " a second time, expected it once; ", "remove one of the two");
    slot_ = &found->second;
  }
  void scalar(Json& value) override { store(std::move(value)); }
  void end() override { open_.pop_back(); }

  Json root;

 private:
  Json* store(Json value) {
    check<FileError>(++values_ <= kMaxJsonValues, source_, ": byte ", position, ": found more than ", kMaxJsonValues,
                     " values, expected at most that many");
    if (open_.empty()) return &(root = std::move(value));
    if (open_.back()->is_object()) return &(*slot_ = std::move(value));
    open_.back()->push_back(std::move(value));
    return &open_.back()->back();
  }

  const std::string& source_;
  std::vector<Json*> open_;  // stay valid: a list does not grow while one of its elements is open
  Json* slot_ = nullptr;     // the value of the last key
  int64_t values_ = 0;
};

}  // namespace

void walk_json(const std::string& source, std::string_view text, JsonEvents& events) {
  // The parser treats a zero byte as the end of the text and would ignore the rest.
  const size_t zero = text.find('\0');
  check<FileError>(zero == text.npos, source, ": byte ", zero, ": found a zero byte, expected JSON text");
  Feed feed{source, text};
  Adapter adapter(feed, events);
  Json::sax_parse(FeedIterator(&feed), FeedIterator(&feed), &adapter);
}

Json parse_json(const std::string& source, std::string_view text, int64_t limit) {
  check<FileError>(static_cast<int64_t>(text.size()) <= limit, source, ": found ", text.size(), " bytes of JSON, expected at most ", limit);
  Builder builder(source);
  walk_json(source, text, builder);
  return std::move(builder.root);
}

Json read_json(const Path& path, int64_t limit) { return parse_json(path.string(), read_text(path, limit), limit); }

void write_json(const Path& path, const Json& json) {
  std::string text;
  try {
    text = json.dump(2) + "\n";
  } catch (const Json::exception&) {
    fail<FileError>(path.string(), ": found text that is not UTF-8 among the values to write, expected UTF-8");
  }
  write_text(path, text);
}

}  // namespace heed
